/** The signals that a daemon obeys: SIGINT and SIGTERM end it, SIGHUP lets it read its configuration again. */
import { isatty } from 'node:tty'

export interface Signals {
  /** Aborts when it is time to end. */
  readonly signal: AbortSignal
  /** Takes the function to call when the configuration shall be read again. */
  readonly onReload: (reload: () => void) => void
}

const STDIN = 0

/** Aborts at SIGINT or SIGTERM. A terminal and a launcher may both send one, so that a second is no impatience. */
export function stopSignal(): AbortSignal {
  return stopper().signal
}

/** The same, and also when the terminal is closed. */
export function endSignal(): AbortSignal {
  const stop = stopper()
  process.on('SIGHUP', () => stop.abort())
  return stop.signal
}

export function daemonSignals(): Signals {
  const stop = stopper()
  const hadTerminal = isatty(STDIN)
  let reload = () => {}
  process.on('SIGHUP', () => {
    // The older meaning of this signal: the terminal was closed, and who was started in it is to go as well.
    if (hadTerminal && !isatty(STDIN)) stop.abort()
    else reload()
  })
  return {
    signal: stop.signal,
    onReload: (call) => {
      reload = call
    },
  }
}

function stopper(): AbortController {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => stop.abort())
  return stop
}
