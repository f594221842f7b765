/** An emulated hub whose answers and state changes the scenario can delay. */

import { EmulatedHub, type EmulatedHubOptions } from '../../src/emulator/hub.ts'
import { until } from '../support/until.ts'
import { SteppedClock } from './clock.ts'

type Operation = 'ping' | 'getApps' | 'getAppLocales' | 'installFromAppStore'

/** The time that an app spends in each state of a transition, by the scenario's clock. */
const STEP_MS = 100
/** A delay that is longer than any sequence of steps. */
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

  hold(...operations: Operation[]): void {
    // Forget old requests without an answer, because they would seem to be waiting.
    this.emulated.forgetRequests()
    for (const operation of operations) this.emulated.behave('slow-headers', { ms: GATE_MS, operation })
  }

  isAsked(operation: Operation): boolean {
    return this.emulated.requests.some((request) => request.operation === operation && request.status === undefined)
  }

  release(): void {
    this.#clock.jump(GATE_MS)
  }

  /** Sends the waiting answers, and stops delaying. */
  open(): void {
    this.emulated.behave('slow-headers', false)
    this.release()
  }

  /** Moves each app in a transition to its next state. */
  step(): void {
    this.#clock.jump(STEP_MS)
  }

  /** Stops the hub. The returned function restarts it, and resolves when it is listening. */
  goDown(): () => Promise<void> {
    const back = this.emulated.reboot({ downMs: DOWN_MS })
    return async () => {
      await until('the hub to be down', () => Number.isFinite(this.#clock.next))
      this.#clock.jump(DOWN_MS)
      await back
    }
  }

  /** The number of requests plus the number of answers. */
  get activity(): number {
    const { requests } = this.emulated
    return requests.length + requests.filter(({ status }) => status !== undefined).length
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.emulated.close()
  }
}
