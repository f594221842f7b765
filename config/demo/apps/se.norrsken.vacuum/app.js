// Uses all available CPU time, until the hub terminates the app.
export default ({ log }) => {
  log('looks for the shortest way through the house')
  const turn = () => {
    const until = Date.now() + 100
    let ways = 0
    while (Date.now() < until) ways += Math.sqrt(ways)
    setImmediate(turn)
  }
  setImmediate(turn)
}
