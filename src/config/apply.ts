/** Applies a reloaded configuration to the running parts. */
import { isDeepStrictEqual } from 'node:util'
import type { Reloaded } from './live-config.ts'
import type { Config, HubConfig } from './options.ts'

export interface Parts {
  readonly hubs: {
    readonly all: ReadonlyMap<string, { readonly hub: { renewed(): void } }>
    close(name: string): unknown
    /** Applies changed filters of apps. */
    refilter(): void
    /** Hides apps whose ids contain a new key. */
    hideUnshown(): void
  }
  readonly bridge: {
    removeHub(name: string): void
    hubsKnown(): void
    reconfigured(): void
    setLogLevel(level: Config['log']['level']): void
  }
  /** Opens and starts a hub, and announces it to the other parts. */
  readonly openHub: (name: string, config: HubConfig) => void
  /** Updates which member of a fleet serves a new hub. */
  readonly fleet?: { hubsChanged(): void } | undefined
}

export function applyChanges({ before, after }: Reloaded, { hubs, bridge, openHub, fleet }: Parts): void {
  // A level that was changed by command stays, unless the level in the configuration has changed.
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
