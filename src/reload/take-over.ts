/** What a configuration that was changed while the daemon runs may change at once, and what waits for the next start. */
import { isDeepStrictEqual } from 'node:util'
import { type Config, type HubConfig, hubOptions, options } from '../config/options.ts'
import type { Table } from '../config/table.ts'

/** The configuration that may hold from now on: the present one with everything of the next that can change live. */
export function takeOver(now: Config, next: Config): Config {
  return {
    ...now,
    log: { ...now.log, level: next.log.level },
    commands: next.commands,
    apps: next.apps,
    settings: next.settings,
    // The next login uses them; the embedded broker took its own at the start.
    mqtt:
      now.mqtt.url === null || now.mqtt.url !== next.mqtt.url
        ? now.mqtt
        : { ...now.mqtt, username: next.mqtt.username, password: next.mqtt.password },
    hubs: Object.fromEntries(
      Object.entries(next.hubs).map(([name, hub]) => [name, takeOverHub(now.hubs[name], hub)] as const),
    ),
  }
}

function takeOverHub(now: HubConfig | undefined, next: HubConfig): HubConfig {
  if (now === undefined) return next
  // A key belongs to the hub that it was made on.
  return now.url === next.url ? { ...now, api_key: next.api_key } : now
}

/** Paths of the options that differ; a hub that only one of them has counts as one. */
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

function valueAt(config: object, path: string): unknown {
  return path.split('.').reduce<unknown>((node, key) => {
    return typeof node === 'object' && node !== null ? Reflect.get(node, key) : undefined
  }, config)
}
