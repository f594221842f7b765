/** Starts and stops an app's process. The last of several requests in a row counts. */
import type { AppProcess, End } from './app-process.ts'

export class Supervisor {
  readonly #open: () => Promise<AppProcess>
  readonly #onState: (state: 'starting' | 'running' | 'stopping') => void
  readonly #onEnd: (end: End) => void
  #process: AppProcess | undefined
  /** The number of the start that `#process` comes from. */
  #running = 0
  /** The number of the wanted start; 0: none. Each start has a number. */
  #wanted = 0
  #started = 0
  /** The last start that ended by itself. */
  #over = 0
  #busy = false
  #settled: Promise<void> = Promise.resolve()

  /**
   * @param launch starts a process, or rejects
   * @param onState called when a process is about to start or stop, or has started to run
   * @param onEnd called when it has ended, whether on request or not. A crashed app is not started again
   */
  constructor(
    launch: () => Promise<AppProcess>,
    onState: (state: 'starting' | 'running' | 'stopping') => void,
    onEnd: (end: End) => void,
  ) {
    this.#open = launch
    this.#onState = onState
    this.#onEnd = onEnd
  }

  get process(): AppProcess | undefined {
    return this.#process
  }

  /** Whether the process runs or is about to. */
  get isUp(): boolean {
    return this.#wanted > this.#over
  }

  /** Resolves when the process has started, after the former one has ended. */
  start(): Promise<void> {
    this.#started += 1
    this.#wanted = this.#started
    return this.#settle()
  }

  /** Resolves when no process is left. */
  stop(): Promise<void> {
    this.#wanted = 0
    return this.#settle()
  }

  #settle(): Promise<void> {
    if (!this.#busy) {
      this.#busy = true
      this.#settled = this.#work()
    }
    return this.#settled
  }

  async #work(): Promise<void> {
    for (;;) {
      if (this.#process !== undefined && this.#running !== this.#wanted) {
        this.#onState('stopping')
        await this.#process.stop()
      } else if (this.#process === undefined && this.isUp) {
        await this.#launch(this.#wanted)
      } else break
    }
    this.#busy = false
  }

  async #launch(number: number): Promise<void> {
    this.#onState('starting')
    try {
      const process = await this.#open()
      this.#process = process
      this.#running = number
      void process.ended.then((end) => this.#end(number, end))
      void process.ready.then((ready) => {
        if (ready && this.#process === process && this.#wanted === number) this.#onState('running')
      })
    } catch (error) {
      const message = error instanceof Error ? `Error: ${error.message}` : String(error)
      this.#end(number, { asked: false, code: null, signal: null, message })
    }
  }

  #end(number: number, end: End): void {
    this.#process = undefined
    if (!end.asked) this.#over = Math.max(this.#over, number)
    this.#onEnd(end)
  }
}
