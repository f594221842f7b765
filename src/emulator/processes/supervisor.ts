/** Starts and stops an app's process. If several requests arrive during a start or a stop, only the last one counts. */
import type { AppProcess, End } from './app-process.ts'

/**
 * @param onState called when a process is about to start or stop, or has started to run
 * @param onEnd called when a process has exited, on request or not; a crashed app is not started again
 */
export function supervise(
  launch: () => Promise<AppProcess>,
  onState: (state: 'starting' | 'running' | 'stopping') => void,
  onEnd: (end: End) => void,
) {
  let process: AppProcess | undefined
  /** Sequence number of the start that created `process`. */
  let running = 0
  /** Sequence number of the requested start; 0 if none is requested. */
  let wanted = 0
  let started = 0
  /** Sequence number of the latest start whose process exited by itself. */
  let crashed = 0
  let isBusy = false
  let settled = Promise.resolve()

  const isUp = () => wanted > crashed

  function settle(): Promise<void> {
    if (!isBusy) {
      isBusy = true
      settled = work()
    }
    return settled
  }

  async function work(): Promise<void> {
    for (;;) {
      if (process !== undefined && running !== wanted) {
        onState('stopping')
        await process.stop()
      } else if (process === undefined && isUp()) {
        await start(wanted)
      } else break
    }
    isBusy = false
  }

  async function start(number: number): Promise<void> {
    onState('starting')
    try {
      const launched = await launch()
      process = launched
      running = number
      void launched.ended.then((end) => ended(number, end))
      void launched.ready.then((ready) => {
        if (ready && process === launched && wanted === number) onState('running')
      })
    } catch (error) {
      const message = error instanceof Error ? `Error: ${error.message}` : String(error)
      ended(number, { requested: false, code: null, signal: null, message })
    }
  }

  function ended(number: number, end: End): void {
    process = undefined
    if (!end.requested) crashed = Math.max(crashed, number)
    onEnd(end)
  }

  return {
    process: () => process,
    isUp,
    /** Resolves when the process has started; waits for the previous process to end. */
    start(): Promise<void> {
      started += 1
      wanted = started
      return settle()
    },
    /** Stops the app. Resolves when its process has exited. */
    stop(): Promise<void> {
      wanted = 0
      return settle()
    },
  }
}
