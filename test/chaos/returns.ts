/**
 * Detects apps that are published again although they were not installed again.
 *
 * Even with late information, a bridge publishes an app as new at most once for each installation on the hub: events of
 * one session keep their order, lists are read one after another, and an event that overtakes a list is applied over
 * it. So each publication needs its own installation. The first message on a topic is not judged, because the earlier
 * content of the broker is unknown. Times are not compared, so a busy machine can neither hide nor fake a bug.
 */
import type { EmulatedHub } from '../../src/emulator/hub.ts'

type Hub = Pick<EmulatedHub, 'apps' | 'requests'>

export class Returns {
  readonly #hub: Hub
  /** App id → whether the last message on the app's topic was a state. */
  readonly #published = new Map<string, boolean>()
  /** App id → the number of installations that the hub made without a command. */
  readonly #created = new Map<string, number>()
  /** All app ids that the hub has ever had; the checker `ghosts` covers all other ids. */
  readonly #had = new Set<string>()
  /** App id → the number of publications that an installation explains. */
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

  /** Must be called when a new episode starts and the retained messages match the hub's state. */
  forget(): void {
    this.#created.clear()
    this.#accounted.clear()
    this.#remember()
  }

  /** Must be called when the content of the broker is unknown, for example after a restart of the broker. */
  forgetPublished(): void {
    this.#published.clear()
  }

  /** Records a published or cleared state. Returns `true` if the message publishes a removed app again. */
  take(id: string, isThere: boolean): boolean {
    const before = this.#published.get(id)
    this.#published.set(id, isThere)
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
