import { Throttle } from '../base/throttle.ts'
import type { Facts } from '../contract/publications.ts'
import type { Hub } from '../hub/hub.ts'
import type { BridgeOptions } from './bridge-options.ts'
import { OwnerRows, type RowTable } from './owner-rows.ts'

export function newBridgeState({ hubs, live, version, startedAt, clock }: BridgeOptions, table: RowTable) {
  const unknown = { protocol: null, hubs: {}, health: undefined, prefixes: undefined, fleet: undefined }
  let facts: Facts['bridge'] = { version, startedAt, logLevel: live.value.log.level, ...unknown }
  const rows = new OwnerRows({ kind: 'bridge' }, table)
  // Limit how often the list of hubs is published, because many hubs may be added at the same time.
  const publishingHubs = new Throttle(clock, hubsChanged)

  function set(changed: Partial<Facts['bridge']>): void {
    facts = { ...facts, ...changed }
    rows.set(facts)
  }

  function hubsChanged(): void {
    const entries = [...hubs].map(
      ([name, { url, hub }]) => [name, { url_host: new URL(url).host, api: hub.status.api }] as const,
    )
    set({ hubs: Object.fromEntries(entries) })
  }

  function follow(name: string, hub: Hub): void {
    hub.subscribe(({ api }) => {
      if (facts.hubs[name]?.api !== api) publishingHubs.request()
    })
    publishingHubs.request()
  }

  return { set, hubsChanged, follow, rendered: () => rows.rendered(), stop: () => publishingHubs.stop() }
}
export type BridgeState = ReturnType<typeof newBridgeState>
