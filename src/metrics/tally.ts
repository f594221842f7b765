/**
 * Counts in plain numbers what happens in the daemon; a scrape reads them. An event is counted on its way from the hub to
 * the broker, where a metric library's look-up by labels would cost more than the event itself.
 */
import type { ErrorCode } from '../contract/errors.ts'
import type { AppEventPayload, AppEventType } from '../contract/events.ts'
import type { HubCall } from '../hub/proven-hub.ts'
import { Timed } from './timed.ts'

/** Apps of a hub that have a crash counter of their own; all others share one. */
const MAX_APPS = 200
/** No app id has a space. */
export const OTHER_APPS = 'all others'

const CALL_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const COMMAND_SECONDS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** A command that has been answered. */
export interface AnsweredCommand {
  /** As configuration names it, or `unknown`: a label of its own for each made-up name would have no bound. */
  readonly command: string
  readonly outcome: 'ok' | ErrorCode
  /** From its arrival to its answer. */
  readonly ms: number
}

export interface HubTally {
  readonly events: Record<AppEventType, number>
  /** Only apps that have crashed. */
  readonly crashes: Map<string, number>
  readonly calls: Map<HubCall['operation'], Timed>
}

export class Tally {
  readonly #hubs = new Map<string, HubTally>()
  readonly #commands = new Map<string, Timed>()
  readonly #reloads = { ok: 0, refused: 0 }

  /** Every hub that something was counted of or asked for; one that was closed keeps its numbers. */
  get hubs(): ReadonlyMap<string, HubTally> {
    return this.#hubs
  }

  /** A hub that nothing is known of has zeros. */
  of(hub: string): HubTally {
    const known = this.#hubs.get(hub)
    if (known !== undefined) return known
    const tally: HubTally = { events: zeros(), crashes: new Map(), calls: new Map() }
    this.#hubs.set(hub, tally)
    return tally
  }

  /** By the command's name. */
  get commands(): ReadonlyMap<string, Timed> {
    return this.#commands
  }

  /** Times that the configuration was read again. */
  get reloads(): Readonly<Record<'ok' | 'refused', number>> {
    return this.#reloads
  }

  event(hub: string, { event_type, app }: AppEventPayload): void {
    const tally = this.of(hub)
    tally.events[event_type] += 1
    if (event_type === 'crashed') countCrash(tally.crashes, app)
  }

  call(hub: string, { operation, outcome, ms }: HubCall): void {
    timedOf(this.of(hub).calls, operation, CALL_SECONDS).add(outcome, ms)
  }

  command({ command, outcome, ms }: AnsweredCommand): void {
    timedOf(this.#commands, command, COMMAND_SECONDS).add(outcome, ms)
  }

  reload(outcome: 'ok' | 'refused'): void {
    this.#reloads[outcome] += 1
  }
}

function zeros(): Record<AppEventType, number> {
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

function timedOf<K>(all: Map<K, Timed>, key: K, bounds: readonly number[]): Timed {
  const known = all.get(key)
  if (known !== undefined) return known
  const timed = new Timed(bounds)
  all.set(key, timed)
  return timed
}
