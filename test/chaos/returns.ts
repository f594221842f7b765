/**
 * Apps that come back on the broker without having come back on the hub.
 *
 * Whatever a bridge may know late, it tells of an app as new at most once for each time that the hub got the app: events
 * of one session keep their order, lists are read one after the other, and an event that overtakes a list is laid over
 * it. So one arrival on the hub accounts for each on the broker. What the broker held before is not known at its start,
 * so the first word on a topic is never judged; and how the two were in time does not matter, so a busy machine neither
 * hides a bug nor makes one up.
 */
import type { EmulatedHub } from '../../src/emulator/hub.ts'

type Hub = Pick<EmulatedHub, 'apps' | 'requests'>

export class Returns {
  readonly #hub: Hub
  /** By id: whether the broker holds something of the app, as it was seen last. */
  readonly #held = new Map<string, boolean>()
  /** By id: arrivals on the hub besides those by command. */
  readonly #created = new Map<string, number>()
  /** Those that the hub has ever had: others are somebody's invention, which what judges ghosts finds. */
  readonly #had = new Set<string>()
  /** By id: arrivals on the broker that one on the hub accounts for. */
  readonly #accounted = new Map<string, number>()

  constructor(hub: Hub) {
    this.#hub = hub
    this.#remember()
  }

  /** The hub has got an app. */
  created(id: string): void {
    add(this.#created, id)
    this.#had.add(id)
  }

  /** A new episode: until now the broker has what the hub has. */
  forget(): void {
    this.#created.clear()
    this.#accounted.clear()
    this.#remember()
  }

  /** The broker may hold anything from now on. */
  forgetHeld(): void {
    this.#held.clear()
  }

  /** The state of an app was published, or cleared. Returns whether that brings back an app that is gone. */
  take(id: string, isThere: boolean): boolean {
    const before = this.#held.get(id)
    this.#held.set(id, isThere)
    if (!isThere || before === true) return false
    const installed = this.#installed(id)
    if (installed > 0) this.#had.add(id)
    if ((this.#created.get(id) ?? 0) + installed > (this.#accounted.get(id) ?? 0)) {
      add(this.#accounted, id)
      return false
    }
    return before === false && this.#had.has(id) && !this.#hub.apps.has(id)
  }

  #remember(): void {
    for (const id of this.#hub.apps.keys()) this.#had.add(id)
  }

  /** How often a command may have brought it. */
  #installed(id: string): number {
    return this.#hub.requests.filter(
      ({ operation, body, executed }) =>
        operation === 'installFromAppStore' && executed === true && Object(body).id === id,
    ).length
  }
}

function add(counts: Map<string, number>, id: string): void {
  counts.set(id, (counts.get(id) ?? 0) + 1)
}
