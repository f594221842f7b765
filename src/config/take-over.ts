/** Which changes of the configuration apply at run time, and which need a restart. */
import { isDeepStrictEqual } from 'node:util'
import { type Config, type HubConfig, hubOptions, options } from './options.ts'
import { type Table, valueAt } from './table.ts'

/** The configuration after a reload: the current one with all live options of the next. */
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
    // A secret belongs to its address; without an address, the secret of the start is in use.
    const address = valueAt(now, live.ifSame)
    return address !== null && isDeepStrictEqual(address, valueAt(next, live.ifSame)) ? [path] : []
  })
  return paths.reduce((values, path) => withValue(values, path.split('.'), valueAt(next, path)), now)
}

function withValue<T>(node: T, [key = '', ...rest]: readonly string[], value: unknown): T {
  return { ...node, [key]: rest.length === 0 ? value : withValue(valueAt(node, key), rest, value) }
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
