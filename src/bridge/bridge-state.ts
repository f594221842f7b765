/** The facts about the bridge itself, and their retained topics. */
import { Throttle } from '../base/throttle.ts'
import type { Facts } from '../contract/publications.ts'
import type { Hub } from '../hub/hub.ts'
import type { BridgeOptions } from './bridge-options.ts'
import { OwnerRows, type RowTable } from './owner-rows.ts'

export class BridgeState {
  readonly #hubs: BridgeOptions['hubs']
  readonly #rows: OwnerRows<'bridge'>
  /** Publishes once if many hubs are added at the same time. */
  readonly #publishingHubs: Throttle
  #facts: Facts['bridge']

  constructor({ hubs, live, version, startedAt, clock }: BridgeOptions, table: RowTable) {
    const unknown = { protocol: null, hubs: {}, health: undefined, prefixes: undefined, fleet: undefined }
    this.#facts = { version, startedAt, logLevel: live.value.log.level, ...unknown }
    this.#hubs = hubs
    this.#rows = new OwnerRows({ kind: 'bridge' }, table)
    this.#publishingHubs = new Throttle(clock, () => this.hubsChanged())
  }

  set(changed: Partial<Facts['bridge']>): void {
    this.#facts = { ...this.#facts, ...changed }
    this.#rows.set(this.#facts)
  }

  /** Publishes the list of hubs. */
  hubsChanged(): void {
    const entries = [...this.#hubs].map(
      ([name, { url, hub }]) => [name, { url_host: new URL(url).host, api: hub.status.api }] as const,
    )
    this.set({ hubs: Object.fromEntries(entries) })
  }

  /** Follows a new hub, whose API becomes known later. */
  follow(name: string, hub: Hub): void {
    hub.subscribe(({ api }) => {
      if (this.#facts.hubs[name]?.api !== api) this.#publishingHubs.request()
    })
    this.#publishingHubs.request()
  }

  rendered(): ReturnType<OwnerRows<'bridge'>['rendered']> {
    return this.#rows.rendered()
  }

  stop(): void {
    this.#publishingHubs.stop()
  }
}
