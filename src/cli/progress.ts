/** Progress of what takes a while: one line that is written over on a terminal, and nothing in a pipe. */

const STEP_MS = 200

/** Tells how much of something is done. What is done within a moment is not told. */
export function progress(
  verb: string,
  stream: NodeJS.WriteStream = process.stderr,
): (done: number, of: number) => void {
  let toldAt = performance.now()
  let told = false
  return (done, of) => {
    const now = performance.now()
    if (!stream.isTTY || (now - toldAt < STEP_MS && !(told && done === of))) return
    toldAt = now
    told = true
    stream.write(`\r${verb} ${done} of ${of}${done === of ? '\n' : ''}`)
  }
}
