/** Shows progress on a single terminal line. Prints nothing if the output is not a terminal. */

const STEP_MS = 200
const SHOW_AFTER_SECONDS = 2
const CLEAR_LINE = '\r\u001b[K'

type Terminal = Pick<NodeJS.WriteStream, 'isTTY' | 'write'>

export function progress(verb: string, terminal: Terminal = process.stderr): (done: number, of: number) => void {
  let shownAt = performance.now()
  let isShown = false
  return (done, of) => {
    const now = performance.now()
    const isEnd = isShown && done === of
    if (!terminal.isTTY || (now - shownAt < STEP_MS && !isEnd)) return
    shownAt = now
    isShown = true
    terminal.write(`\r${verb} ${done} of ${of}${isEnd ? '\n' : ''}`)
  }
}

/** Shows how long the program has been waiting. The returned function removes the line. */
export function waiting(what: string, terminal: Terminal = process.stderr): () => void {
  if (!terminal.isTTY) return () => {}
  const startedAt = performance.now()
  let isShown = false
  const show = () => {
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    if (seconds < SHOW_AFTER_SECONDS) return
    terminal.write(`${CLEAR_LINE}${what}: ${seconds} s`)
    isShown = true
  }
  const repeated = setInterval(show, 1000)
  return () => {
    clearInterval(repeated)
    if (isShown) terminal.write(CLEAR_LINE)
  }
}
