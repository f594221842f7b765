// An app that uses all available CPU time, until the hub terminates it.
export default ({ log }) => {
  log('calculates the shortest path through the house')
  const turn = () => {
    const until = Date.now() + 100
    let paths = 0
    while (Date.now() < until) paths += Math.sqrt(paths)
    setImmediate(turn)
  }
  setImmediate(turn)
}
