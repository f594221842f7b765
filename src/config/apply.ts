/** Brings the running parts in line with a configuration that was taken over. */
import { isDeepStrictEqual } from 'node:util'
import type { Reloaded } from './live-config.ts'
import type { Config, HubConfig } from './options.ts'

export interface Parts {
  readonly hubs: {
    readonly all: ReadonlyMap<string, { readonly hub: { renewed(): void } }>
    close(name: string): unknown
    /** Shows other apps from now on. */
    refilter(): void
    /** Apps whose ids hold a key that is new are gone at once. */
    hideUnshown(): void
  }
  readonly bridge: {
    removeHub(name: string): void
    hubsKnown(): void
    reconfigured(): void
    setLogLevel(level: Config['log']['level']): void
  }
  /** Opens and starts a hub, known to everybody. */
  readonly openHub: (name: string, config: HubConfig) => void
  /** Says whose a new hub is. */
  readonly fleet?: { hubsChanged(): void } | undefined
}

export function applyChanges({ before, after }: Reloaded, { hubs, bridge, openHub, fleet }: Parts): void {
  // A level that was changed by command stays, unless the configuration has an opinion that is new.
  if (before.log.level !== after.log.level) bridge.setLogLevel(after.log.level)
  for (const name of Object.keys(before.hubs)) {
    if (!Object.hasOwn(after.hubs, name)) {
      hubs.close(name)
      bridge.removeHub(name)
    }
  }
  if (!isDeepStrictEqual(before.apps, after.apps)) hubs.refilter()
  const keysOf = ({ hubs: all }: Config) => Object.values(all).map(({ api_key }) => api_key)
  if (!isDeepStrictEqual(keysOf(before), keysOf(after))) hubs.hideUnshown()
  const ofBridge = ({ commands, settings, guard, updates, http }: Config) => [
    commands,
    settings,
    guard,
    updates,
    http.public_url,
  ]
  if (!isDeepStrictEqual(ofBridge(before), ofBridge(after))) bridge.reconfigured()
  for (const [name, config] of Object.entries(after.hubs)) {
    const known = before.hubs[name]
    if (known === undefined) {
      if (fleet === undefined) openHub(name, config)
    } else if (known.api_key !== config.api_key) hubs.all.get(name)?.hub.renewed()
  }
  // With the new ones: what the broker holds of a hub that is not open yet belongs to nothing.
  bridge.hubsKnown()
  fleet?.hubsChanged()
}
