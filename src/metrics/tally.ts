/**
 * Counts events in plain numbers: this lies on the way from a hub's event to the broker, where a metric library's
 * look-up by labels would cost more than the event itself. The library reads the numbers when it is asked.
 */
import type { AppEventPayload, EventType } from '../contract/events.ts'

/** Apps of a hub that have a crash counter of their own; all others share one. */
const MAX_APPS = 200
/** No app id has a space. */
export const OTHER_APPS = 'all others'

export interface HubTally {
  readonly events: Record<EventType, number>
  /** Only apps that have crashed. */
  readonly crashes: Map<string, number>
}

export class Tally {
  readonly #hubs = new Map<string, HubTally>()

  /** A hub that nothing is known of has zeros. */
  of(hub: string): HubTally {
    const known = this.#hubs.get(hub)
    if (known !== undefined) return known
    const tally = { events: zeros(), crashes: new Map<string, number>() }
    this.#hubs.set(hub, tally)
    return tally
  }

  event(hub: string, { event_type, app }: AppEventPayload): void {
    const tally = this.of(hub)
    tally.events[event_type] += 1
    if (event_type === 'crashed') countCrash(tally.crashes, app)
  }
}

function zeros(): Record<EventType, number> {
  return {
    installed: 0,
    updated: 0,
    removed: 0,
    crashed: 0,
    recovered: 0,
    enabled: 0,
    disabled: 0,
    started: 0,
    stopped: 0,
    changed: 0,
  }
}

function countCrash(crashes: Map<string, number>, app: string): void {
  const name = crashes.has(app) || crashes.size < MAX_APPS ? app : OTHER_APPS
  crashes.set(name, (crashes.get(name) ?? 0) + 1)
}
