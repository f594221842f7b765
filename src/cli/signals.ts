import { isatty } from 'node:tty'

const STDIN = 0
const ENDING = ['SIGINT', 'SIGTERM'] as const

/** Ignores repeated signals, because both a terminal and a launcher may send the same signal. */
function abortedBy(...names: NodeJS.Signals[]): AbortController {
  const stop = new AbortController()
  for (const name of names) process.on(name, () => stop.abort())
  return stop
}

export const stopSignal = (): AbortSignal => abortedBy(...ENDING).signal

/** Returns a signal that aborts on SIGINT, on SIGTERM, or when the terminal is closed. */
export const endSignal = (): AbortSignal => abortedBy(...ENDING, 'SIGHUP').signal

export type Signals = ReturnType<typeof daemonSignals>

export function daemonSignals() {
  const stop = abortedBy(...ENDING)
  const hadTerminal = isatty(STDIN)
  let reload = () => {}
  process.on('SIGHUP', () => {
    // SIGHUP also means that the terminal was closed, so that its programs must end.
    if (hadTerminal && !isatty(STDIN)) stop.abort()
    else reload()
  })
  return {
    signal: stop.signal,
    onReload(call: () => void) {
      reload = call
    },
  }
}
