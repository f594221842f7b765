/** The signals that the program obeys: SIGINT and SIGTERM end it, SIGHUP lets a daemon read its configuration again. */
import { isatty } from 'node:tty'

export interface Signals {
  /** Aborts when it is time to end. */
  readonly signal: AbortSignal
  /** Takes the function to call when the configuration has to be read again. */
  readonly onReload: (reload: () => void) => void
}

const STDIN = 0
const ENDING = ['SIGINT', 'SIGTERM'] as const

/** Aborts at these signals, however often they come: a terminal and a launcher may both send one. */
function abortedBy(...names: NodeJS.Signals[]): AbortController {
  const stop = new AbortController()
  for (const name of names) process.on(name, () => stop.abort())
  return stop
}

export const stopSignal = (): AbortSignal => abortedBy(...ENDING).signal

/** The same, and also when the terminal is closed. */
export const endSignal = (): AbortSignal => abortedBy(...ENDING, 'SIGHUP').signal

export function daemonSignals(): Signals {
  const stop = abortedBy(...ENDING)
  const hadTerminal = isatty(STDIN)
  let reload = () => {}
  process.on('SIGHUP', () => {
    // The older meaning of this signal: the terminal was closed, which ends what was started in it.
    if (hadTerminal && !isatty(STDIN)) stop.abort()
    else reload()
  })
  return {
    signal: stop.signal,
    onReload(call) {
      reload = call
    },
  }
}
