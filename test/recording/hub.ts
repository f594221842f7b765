/** An emulated hub whose every answer and every step can be made to wait for the scenario. */

import { EmulatedHub, type EmulatedHubOptions } from '../../src/emulator/hub.ts'
import { until } from '../support/until.ts'
import { SteppedClock } from './clock.ts'

type Operation = 'ping' | 'getApps' | 'getAppLocales' | 'installFromAppStore'

/** How long an app stands in each state on its way: until the scenario takes the next step. */
const STEP_MS = 100
/** Beyond any step. */
const GATE_MS = 1_000_000
const DOWN_MS = 1_000

export class SteppedHub implements AsyncDisposable {
  readonly emulated: EmulatedHub
  readonly #clock: SteppedClock

  private constructor(emulated: EmulatedHub, clock: SteppedClock) {
    this.emulated = emulated
    this.#clock = clock
  }

  static async start(options: EmulatedHubOptions): Promise<SteppedHub> {
    const clock = new SteppedClock()
    return new SteppedHub(await EmulatedHub.start({ ...options, clock, settleMs: STEP_MS }), clock)
  }

  /** Answers to this operation wait from now on, until `release`. */
  hold(...operations: Operation[]): void {
    // Those that were never answered would look like ones that wait.
    this.emulated.forgetRequests()
    for (const operation of operations) this.emulated.behave('slow-headers', { ms: GATE_MS, operation })
  }

  /** Whether an answer to this operation waits. */
  isAsked(operation: Operation): boolean {
    return this.emulated.requests.some((request) => request.operation === operation && request.status === undefined)
  }

  /** Gives the answers that wait. */
  release(): void {
    this.#clock.jump(GATE_MS)
  }

  /** No answer waits any more. */
  open(): void {
    this.emulated.behave('slow-headers', false)
    this.release()
  }

  /** Takes each app that is on its way one state further. */
  step(): void {
    this.#clock.jump(STEP_MS)
  }

  /** Goes down; the returned function brings it back and resolves when it listens. */
  goDown(): () => Promise<void> {
    const back = this.emulated.reboot({ downMs: DOWN_MS })
    return async () => {
      await until('the hub to be down', () => Number.isFinite(this.#clock.next))
      this.#clock.jump(DOWN_MS)
      await back
    }
  }

  /** How often it has been asked and has answered. */
  get activity(): number {
    const { requests } = this.emulated
    return requests.length + requests.filter(({ status }) => status !== undefined).length
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.emulated.close()
  }
}
