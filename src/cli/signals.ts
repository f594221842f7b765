/** The program's signals: SIGINT and SIGTERM stop the program, SIGHUP makes a daemon reload its configuration. */
import { isatty } from 'node:tty'

const STDIN = 0
const ENDING = ['SIGINT', 'SIGTERM'] as const

/** Aborts at these signals. Ignores repeated signals, because a terminal and a launcher may both send a signal. */
function abortedBy(...names: NodeJS.Signals[]): AbortController {
  const stop = new AbortController()
  for (const name of names) process.on(name, () => stop.abort())
  return stop
}

export const stopSignal = (): AbortSignal => abortedBy(...ENDING).signal

/** Returns a signal that aborts like `stopSignal`, and when the terminal is closed. */
export const endSignal = (): AbortSignal => abortedBy(...ENDING, 'SIGHUP').signal

export type Signals = ReturnType<typeof daemonSignals>

export function daemonSignals() {
  const stop = abortedBy(...ENDING)
  const hadTerminal = isatty(STDIN)
  let reload = () => {}
  process.on('SIGHUP', () => {
    // The original meaning of SIGHUP: the terminal was closed, so its programs must end.
    if (hadTerminal && !isatty(STDIN)) stop.abort()
    else reload()
  })
  return {
    /** Aborts when the program must end. */
    signal: stop.signal,
    /** Sets the function to call when the configuration must be reloaded. */
    onReload(call: () => void) {
      reload = call
    },
  }
}
