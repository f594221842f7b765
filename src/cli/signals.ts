import { isatty } from 'node:tty'

const STDIN = 0
const ENDING = ['SIGINT', 'SIGTERM'] as const

/** Aborts on any of these signals. Ignores repeated signals: a terminal and a launcher may send the same one. */
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
  let reload: (() => void) | undefined
  let isPending = false
  process.on('SIGHUP', () => {
    // SIGHUP requests a reload, or reports that the terminal was closed. In the second case, stop.
    if (hadTerminal && !isatty(STDIN)) stop.abort()
    else if (reload === undefined) isPending = true
    else reload()
  })
  return {
    signal: stop.signal,
    /** Sets what a reload does. If one was requested during the start, it happens now. */
    onReload(call: () => void) {
      reload = call
      if (isPending) call()
      isPending = false
    },
  }
}
