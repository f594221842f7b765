/** Compares configurations on a reload, and applies the changes that can take effect at run time. */
import { isDeepStrictEqual } from 'node:util'
import type { Bridge } from '../bridge/bridge.ts'
import type { Store } from '../hub/store.ts'
import type { Reloaded } from './live-config.ts'
import type { Hubs } from './open-hubs.ts'
import { type Config, type HubConfig, hubOptions, options } from './options.ts'
import { type Table, valueAt } from './table.ts'

/** Returns the current configuration with all live options of the next configuration. */
export function takeOver(now: Config, next: Config): Config {
  const hubs = Object.entries(next.hubs).map(([name, hub]): [string, HubConfig] => {
    const present = now.hubs[name]
    return [name, present === undefined ? hub : withLive(hubOptions, present, hub)]
  })
  return { ...withLive(options, now, next), hubs: Object.fromEntries(hubs) }
}

function withLive<T extends object>(table: Table, now: T, next: T): T {
  const paths = Object.entries(table).flatMap(([path, { live }]) => {
    if (live === undefined) return []
    if (live === true) return [path]
    // A secret belongs to its address, so do not change the secret if the address has changed or is missing.
    const address = valueAt(now, live.ifSame)
    return address !== null && isDeepStrictEqual(address, valueAt(next, live.ifSame)) ? [path] : []
  })
  return paths.reduce((values, path) => withValue(values, path.split('.'), valueAt(next, path)), now)
}

function withValue<T>(node: T, [key = '', ...rest]: readonly string[], value: unknown): T {
  return { ...node, [key]: rest.length === 0 ? value : withValue(valueAt(node, key), rest, value) }
}

/** Returns the paths of the options that differ. A hub that exists in only one configuration counts as one path. */
export function differences(one: Config, other: Config): string[] {
  const names = [...new Set([...Object.keys(one.hubs), ...Object.keys(other.hubs)])]
  const ofHubs = names.flatMap((name) => {
    const [before, after] = [one.hubs[name], other.hubs[name]]
    if (before === undefined || after === undefined) return [`hubs.${name}`]
    return differing(hubOptions, before, after).map((path) => `hubs.${name}.${path}`)
  })
  return [...ofHubs, ...differing(options, one, other)]
}

function differing(table: Table, one: object, other: object): string[] {
  return Object.keys(table).filter((path) => !isDeepStrictEqual(valueAt(one, path), valueAt(other, path)))
}

interface Parts {
  readonly hubs: Hubs
  readonly bridge: Bridge
  /** Opens and starts a hub, and adds it to the other parts. */
  readonly openHub: (name: string, config: HubConfig) => void
  readonly fleet?: { hubsChanged(): void } | undefined
  readonly store: Store
}

export function applyChanges({ before, after }: Reloaded, { hubs, bridge, openHub, fleet, store }: Parts): void {
  // Keep a level that was set by a command, unless the configured level has changed.
  if (before.log.level !== after.log.level) bridge.logLevels.set(after.log.level)
  for (const name of Object.keys(before.hubs)) {
    if (!Object.hasOwn(after.hubs, name)) {
      void hubs.close(name)
      bridge.removeHub(name)
    }
  }
  if (!isDeepStrictEqual(before.apps, after.apps)) hubs.refilter()
  const keysOf = ({ hubs: all, http }: Config) => [
    ...Object.values(all).map(({ api_key }) => api_key),
    ...[...http.tokens.values()].map(({ token }) => token),
  ]
  if (!isDeepStrictEqual(keysOf(before), keysOf(after))) hubs.hideUnshown()
  const ofBridge = ({ commands, settings, guard, updates, http: { public_url } }: Config) => {
    return { commands, settings, guard, updates, public_url }
  }
  if (!isDeepStrictEqual(ofBridge(before), ofBridge(after))) bridge.reconfigured()
  store.reconfigured()
  for (const [name, config] of Object.entries(after.hubs)) {
    const known = before.hubs[name]
    if (known === undefined) {
      if (fleet === undefined) openHub(name, config)
    } else if (known.api_key !== config.api_key) hubs.all.get(name)?.hub.renewed()
  }
  // Call `hubsComplete` after adding hubs, because it removes the topics of unknown hubs.
  bridge.hubsComplete()
  fleet?.hubsChanged()
}
