/**
 * Counts in plain numbers what happens in the daemon; a scrape reads them. An event is counted on its way from the hub to
 * the broker, where a metric library's look-up by labels would cost more than the event itself.
 */
import { EVENT_TYPES, type EventPayload, type EventType, GUARD_EVENT_TYPES } from '../contract/events.ts'
import type { HubCall } from '../hub/proven-hub.ts'

/** Apps of a hub that have a crash counter of their own; all others share one. */
const MAX_APPS = 200
/** No app id has a space. */
export const OTHER_APPS = 'all others'

const CALL_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const COMMAND_SECONDS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** How often something ended, by outcome, and how long it took: a counter and a histogram. */
export interface Timed {
  readonly outcomes: Map<string, number>
  /** Upper bounds in seconds, ascending, and how many were in the bucket below each; those above the last in none. */
  readonly buckets: { readonly bound: number; count: number }[]
  count: number
  /** All durations together. */
  seconds: number
}

/** What ends after a while, by its name. */
export class Timings<K> {
  readonly all = new Map<K, Timed>()
  readonly #bounds: readonly number[]

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
  }

  add(key: K, outcome: string, ms: number): void {
    const seconds = ms / 1000
    let timed = this.all.get(key)
    if (timed === undefined) {
      timed = { outcomes: new Map(), buckets: this.#bounds.map((bound) => ({ bound, count: 0 })), count: 0, seconds: 0 }
      this.all.set(key, timed)
    }
    timed.outcomes.set(outcome, (timed.outcomes.get(outcome) ?? 0) + 1)
    timed.count += 1
    timed.seconds += seconds
    for (const bucket of timed.buckets) {
      if (seconds > bucket.bound) continue
      bucket.count += 1
      break
    }
  }
}

export interface HubTally {
  readonly events: Map<EventType, number>
  /** Only apps that have crashed. */
  readonly crashes: Map<string, number>
  readonly calls: Timings<HubCall['operation']>
}

interface EventSource {
  onEvent(listener: (event: EventPayload) => void): void
}

export class Tally {
  readonly #hubs = new Map<string, HubTally>()
  /** Those that were answered, by their name in the configuration, from their arrival to the answer. */
  readonly commands = new Timings<string>(COMMAND_SECONDS)
  readonly #reloads = { ok: 0, refused: 0 }

  /** Every hub that something was counted of or asked for; one that was closed keeps its numbers. */
  get hubs(): ReadonlyMap<string, HubTally> {
    return this.#hubs
  }

  /** A hub that nothing is known of has zeros. */
  of(hub: string): HubTally {
    const known = this.#hubs.get(hub)
    if (known !== undefined) return known
    const tally: HubTally = { events: zeros(), crashes: new Map(), calls: new Timings(CALL_SECONDS) }
    this.#hubs.set(hub, tally)
    return tally
  }

  /** Times that the configuration was read again. */
  get reloads(): Readonly<Record<'ok' | 'refused', number>> {
    return this.#reloads
  }

  /** Counts the events of a hub from now on. */
  follow(hub: string, state: EventSource): void {
    state.onEvent((event) => this.event(hub, event))
  }

  /** A call to a hub has ended. */
  readonly called = (hub: string, { operation, outcome, ms }: HubCall): void =>
    this.of(hub).calls.add(operation, outcome, ms)

  event(hub: string, { event_type, app }: EventPayload): void {
    const { events, crashes } = this.of(hub)
    events.set(event_type, (events.get(event_type) ?? 0) + 1)
    if (event_type === 'crashed' && app !== null) countCrash(crashes, app)
  }

  reload(outcome: 'ok' | 'refused'): void {
    this.#reloads[outcome] += 1
  }
}

const zeros = () => new Map<EventType, number>([...EVENT_TYPES, ...GUARD_EVENT_TYPES].map((type) => [type, 0]))

function countCrash(crashes: Map<string, number>, app: string): void {
  const name = crashes.has(app) || crashes.size < MAX_APPS ? app : OTHER_APPS
  crashes.set(name, (crashes.get(name) ?? 0) + 1)
}
