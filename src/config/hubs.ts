/** Reads the hubs from the configuration file, from the files of a folder, and at most one hub from the environment. */
import * as v from 'valibot'
import { type ConfigFile, example, type FileMap, type Keys } from './file.ts'
import type { Mistakes } from './mistakes.ts'
import { DEFAULT_HUB_NAME, EXPECTED_NAME, HUB_NAME_VARIABLE, type HubConfig, hubName, hubOptions } from './options.ts'
import { type Reading, readTable } from './read.ts'
import { type Environment, environmentSource, subjectOf, valueIn } from './sources.ts'
import { environmentName, fileKey, fileKeys, type Option } from './table.ts'
import { checkKeys } from './unknown.ts'

interface HubsRequest {
  readonly file: ConfigFile
  readonly env: Environment
  readonly reading: Reading
  /** The files in the folder of `hubs_dir`; `undefined` if no folder is configured. */
  readonly folder: readonly (readonly [name: string, file: ConfigFile])[] | undefined
  readonly required: boolean
}

const KEYS = fileKeys(hubOptions)

type NamedHub = readonly [name: string, file: ConfigFile]

/** Renames a hub whose name must not appear in messages, so that its options are checked as well. */
function unnamed(file: ConfigFile, name: string, hub: FileMap, number: number): NamedHub {
  const shown = `unnamed-${number}`
  const root: FileMap = new Map([['hubs', new Map([[shown, hub]])]])
  const where = ([hubs = '', , ...below]: Keys) => file.where([hubs, name, ...below])
  return [shown, { ...file, root, where }]
}

/** Returns the hubs, and adds a mistake for anything else below `hubs`. */
function hubsOfFile(file: ConfigFile, mistakes: Mistakes): NamedHub[] {
  const root = valueIn(file, 'hubs')
  if (root === undefined) return []
  if (!(root instanceof Map)) {
    const sample = example(file.path, ['hubs', 'home', 'url'])
    mistakes.add(subjectOf(file, ['hubs']), `expected hubs by name, such as ${sample}`, 'hubs')
    return []
  }
  return [...root].flatMap(([key, value], at): NamedHub[] => {
    const name = String(key)
    const subject = subjectOf(file, ['hubs', name])
    const isGroup = value === null || value instanceof Map
    if (KEYS.includes(name) && !isGroup) {
      const sample = example(file.path, ['hubs', 'home', name])
      mistakes.add(subject, `expected a hub's name above it: ${sample}`, 'hubs')
    } else if (!v.is(hubName, name)) {
      const isShown = mistakes.name(name) !== undefined
      mistakes.add(isShown ? subject : `a hub's name (${file.where(['hubs', name])})`, EXPECTED_NAME, 'hubs')
      if (isShown && value instanceof Map) return [[name, file]]
      if (value instanceof Map && value.size > 0) return [unnamed(file, name, value, at + 1)]
    } else if (!isGroup) {
      mistakes.add(subject, "expected the hub's options below it, such as url and api_key", 'hubs')
    } else return [[name, file]]
    return []
  })
}

/** Returns `undefined` if no variable configures a hub. */
function hubOfEnvironment(env: Environment, inFiles: readonly string[], mistakes: Mistakes): string | undefined {
  const given = env.get(HUB_NAME_VARIABLE)
  if (given !== undefined && !v.is(hubName, given)) {
    mistakes.add(HUB_NAME_VARIABLE, `${EXPECTED_NAME}${mistakes.quote(given)}`, 'hubs')
    return undefined
  }
  if (!KEYS.some((path) => env.has(environmentName(`hub.${path}`)))) return undefined
  // If the files have exactly one hub, a variable such as HUB2MQTT_HUB_API_KEY belongs to that hub.
  return given ?? (inFiles.length === 1 ? inFiles[0] : undefined) ?? DEFAULT_HUB_NAME
}

const missing = (byEnvironment: boolean) => (path: string, option: Option) => {
  const hint = option.sensitive ? ` (or ${fileKey(path)})` : ` such as ${String(option.example)}`
  const name = environmentName(`hub.${path}`)
  const variable = option.sensitive ? `${name} (or ${name}_FILE)` : name
  return `missing; give ${path}${hint} in the configuration file${byEnvironment ? `, or ${variable}` : ''}`
}

/** Returns the valid hubs by name, and adds the mistakes of invalid hubs. */
export function readHubs({ file, env, reading, folder, required }: HubsRequest): Readonly<Record<string, HubConfig>> {
  const { mistakes } = reading
  const files = new Map(hubsOfFile(file, mistakes))
  for (const [name, hubFile] of folder ?? []) {
    const twice = files.get(name)
    if (twice !== undefined) {
      const [one, other] = [twice, hubFile].map((each) => each.where(['hubs', name]))
      mistakes.add(`hubs.${name}`, `is in ${one} and in ${other}; keep one of them`, 'hubs')
    }
    files.set(name, hubFile)
  }
  const own = hubOfEnvironment(env, [...files.keys()], mistakes)
  const names = new Set([...files.keys(), ...(own === undefined ? [] : [own])])
  const section = valueIn(file, 'hubs')
  const isIntended = (section instanceof Map && section.size === 0) || folder !== undefined
  if (names.size === 0 && required && !isIntended && !mistakes.concerns('hubs')) {
    const [url, key] = [environmentName('hub.url'), environmentName('hub.api_key')]
    mistakes.add(
      'hubs',
      `no hub configured; give hubs: { home: { url: …, api_key: … } } in a file named by --config or HUB2MQTT_CONFIG, or set ${url} and ${key}. Without a hub, try hub2mqtt demo`,
    )
  }
  const read = (name: string): [string, HubConfig][] => {
    const at = `hubs.${name}`
    const declared = files.get(name)
    if (declared !== undefined) checkKeys(declared, ['hubs', name], KEYS, mistakes)
    const ofEnvironment = name === own ? [environmentSource(env, hubOptions, 'hub.', `${at}.`)] : []
    const sources = [...(declared === undefined ? [] : [declared]), ...ofEnvironment]
    const byEnvironment = name === own || names.size === 1
    const hub = readTable({ table: hubOptions, sources, prefix: `${at}.`, missing: missing(byEnvironment), reading })
    return hub === undefined ? [] : [[name, hub]]
  }
  return Object.fromEntries([...names].flatMap(read))
}
