/** The daemon's present health. Listeners hear when it may have changed. */
import { type Clock, sleep } from '../base/clock.ts'
import { Throttle } from '../base/throttle.ts'
import type { HealthReport, Role } from '../contract/schemas.ts'
import type { Hub } from '../hub/hub.ts'
import type { Pulse } from '../hub/pulse.ts'
import type { LinkStatus } from '../mqtt/types.ts'
import { type HealthFacts, healthReport, hubHealth } from './report.ts'

/** Some parts of the report change without an event. */
const INTERVAL_MS = 15_000

/** For so long something counts as recent: time enough to notice it. */
const RECENT_MS = 10 * 60_000

export class Recent {
  readonly #clock: Clock
  #count = 0
  #at = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Takes the present count, and says whether it has grown in the last ten minutes; ask now and then. */
  grew(count: number): boolean {
    if (count > this.#count) this.#at = this.#clock.elapsed()
    this.#count = count
    return this.#clock.elapsed() - this.#at < RECENT_MS
  }
}

interface Parts extends Pick<HealthFacts, 'version' | 'startedAt' | 'mayBeIdle'> {
  readonly link: { status(): LinkStatus }
  readonly bridge: { readonly contested: boolean; readonly role: Role; readonly failedSettings: number }
  readonly hubs: ReadonlyMap<string, { readonly hub: Hub; readonly pulse: Pulse }>
  readonly clock: Clock
}

export class Health {
  readonly #parts: Parts
  readonly #lost: Recent
  readonly #throttle: Throttle
  readonly #ready = Promise.withResolvers<void>()
  readonly #listeners: ((report: HealthReport) => void)[] = []

  constructor(parts: Parts) {
    this.#parts = parts
    this.#lost = new Recent(parts.clock)
    this.#throttle = new Throttle(parts.clock, () => this.#publish())
  }

  /** Resolves when it is ready for the first time. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  /** Whether this bridge works for its subscribers: it is connected and the active one. */
  get isOnline(): boolean {
    const { link, bridge } = this.#parts
    return link.status().state === 'connected' && bridge.role === 'active'
  }

  readonly report = (): HealthReport => {
    const { version, startedAt, mayBeIdle, link, bridge, hubs } = this.#parts
    const { contested, role, failedSettings } = bridge
    const mqtt = link.status()
    const losing = this.#lost.grew(mqtt.dropped)
    const ofHubs = { hubs: hubHealth(hubs), failedSettings }
    return healthReport({ version, startedAt, mqtt, losing, contested, role, mayBeIdle, ...ofHubs })
  }

  subscribe(listener: (report: HealthReport) => void): void {
    this.#listeners.push(listener)
  }

  /** Something has changed that it may depend on. */
  readonly changed = (): void => this.#throttle.request()

  /** Looks at it now and then, until the signal aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(this.#parts.clock, INTERVAL_MS, signal)
      if (signal.aborted) break
      this.changed()
    }
    this.#throttle.stop()
  }

  #publish(): void {
    const report = this.report()
    for (const listener of this.#listeners) listener(report)
    if (report.ready) this.#ready.resolve()
  }
}
