/**
 * Detects apps that are published again although they were not installed again.
 *
 * However late its information is, a bridge publishes an app as new at most once for each installation on the hub:
 * events of one session keep their order, lists are read one after the other, and an event that overtakes a list is
 * applied over it. So each publication needs its own installation. The first message on a topic is not judged: what the
 * broker held before is unknown. Times are not compared, so a busy machine neither hides nor invents a bug.
 */
import type { EmulatedHub } from '../../src/emulator/hub.ts'

type Hub = Pick<EmulatedHub, 'apps' | 'requests'>

export class Returns {
  readonly #hub: Hub
  /** By id: whether the broker held the app's state when it was last seen. */
  readonly #held = new Map<string, boolean>()
  /** By id: installations on the hub without a command. */
  readonly #created = new Map<string, number>()
  /** Ids that the hub has ever had: `ghosts` covers all others. */
  readonly #had = new Set<string>()
  /** By id: publications that an installation explains. */
  readonly #accounted = new Map<string, number>()

  constructor(hub: Hub) {
    this.#hub = hub
    this.#remember()
  }

  /** Must be called when an app was installed on the hub. */
  created(id: string): void {
    add(this.#created, id)
    this.#had.add(id)
  }

  /** Starts a new episode: the broker agrees with the hub. */
  forget(): void {
    this.#created.clear()
    this.#accounted.clear()
    this.#remember()
  }

  /** Must be called when the broker may hold anything, such as after its restart. */
  forgetHeld(): void {
    this.#held.clear()
  }

  /** Records that an app's state was published or cleared. Returns whether this publishes a removed app again. */
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

  /** Returns how often commands have installed the app. */
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
