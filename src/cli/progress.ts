/** Progress of what takes a while: one line that is written over on a terminal, and nothing in a pipe. */

const STEP_MS = 200
/** Who waits for less need not be told. */
const PATIENCE_MS = 2_000
const CLEAR_LINE = '\r\u001b[K'

type Terminal = Pick<NodeJS.WriteStream, 'isTTY' | 'write'>

/** Tells how much of something is done. */
export function progress(verb: string, terminal: Terminal = process.stderr): (done: number, of: number) => void {
  let toldAt = performance.now()
  let told = false
  return (done, of) => {
    const now = performance.now()
    const isEnd = told && done === of
    if (!terminal.isTTY || (now - toldAt < STEP_MS && !isEnd)) return
    toldAt = now
    told = true
    terminal.write(`\r${verb} ${done} of ${of}${isEnd ? '\n' : ''}`)
  }
}

/** Tells what is waited for, and for how long already; the returned function ends that. */
export function waiting(what: string, terminal: Terminal = process.stderr): () => void {
  if (!terminal.isTTY) return () => {}
  const startedAt = performance.now()
  let told = false
  const tell = () => {
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    terminal.write(`${CLEAR_LINE}${what}: ${seconds} s`)
    told = true
  }
  let repeated: NodeJS.Timeout | undefined
  const first = setTimeout(() => {
    tell()
    repeated = setInterval(tell, 1000)
  }, PATIENCE_MS)
  return () => {
    clearTimeout(first)
    clearInterval(repeated)
    if (told) terminal.write(CLEAR_LINE)
  }
}
