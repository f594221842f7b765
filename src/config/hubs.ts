/** The hubs: any number by name in the file, and one by the environment alone. */
import { dirname, resolve } from 'node:path'
import * as v from 'valibot'
import { type ConfigFile, example, type FileMap } from './file.ts'
import type { HubFile } from './hubs-dir.ts'
import type { Mistakes } from './mistakes.ts'
import { DEFAULT_HUB_NAME, EXPECTED_NAME, HUB_NAME_VARIABLE, type HubConfig, hubName, hubOptions } from './options.ts'
import { type Reading, readTable } from './read.ts'
import { type Environment, environmentSource, fileSource, fileSubject, type Source } from './sources.ts'
import { environmentName, fileKey, fileKeys, type Option } from './table.ts'
import { checkKeys } from './unknown.ts'

interface HubsRequest {
  readonly file: ConfigFile
  readonly env: Environment
  readonly inFile: (path: string) => string
  readonly inEnv: (path: string) => string
  readonly reading: Reading
  /** Hubs with a file of their own; `undefined` where no folder is named. */
  readonly files: readonly HubFile[] | undefined
  /** Whether it is a mistake to have none. */
  readonly required: boolean
}

/** Hubs of the file by name; anything else there is a mistake. */
function hubsOfFile(file: ConfigFile, mistakes: Mistakes): Map<string, FileMap> {
  const hubs = new Map<string, FileMap>()
  const root = file.root.get('hubs')
  if (root === undefined || root === null) return hubs
  if (!(root instanceof Map)) {
    const such = example(file.path, ['hubs', 'home', 'url'])
    mistakes.add(fileSubject(file, ['hubs']), `expected hubs by name, such as ${such}`, 'hubs')
    return hubs
  }
  for (const [key, value] of root) {
    const name = String(key)
    const keys = ['hubs', name]
    if (fileKeys(hubOptions).includes(name) && value !== null && !(value instanceof Map)) {
      const such = example(file.path, ['hubs', 'home', name])
      mistakes.add(fileSubject(file, keys), `expected a hub's name above it: ${such}`, 'hubs')
    } else if (!v.is(hubName, name)) {
      const subject = mistakes.name(name) === undefined ? `a hub's name (${file.where(keys)})` : fileSubject(file, keys)
      mistakes.add(subject, EXPECTED_NAME, 'hubs')
    } else if (value !== null && !(value instanceof Map)) {
      mistakes.add(fileSubject(file, keys), "expected the hub's options below it, such as url and api_key", 'hubs')
    } else {
      hubs.set(name, value ?? new Map())
    }
  }
  return hubs
}

/** The hub that the variables describe; `undefined` without such variables. */
function hubOfEnvironment(env: Environment, inFile: readonly string[], mistakes: Mistakes): string | undefined {
  const given = env.get(HUB_NAME_VARIABLE)
  if (given !== undefined && !v.is(hubName, given)) {
    mistakes.add(HUB_NAME_VARIABLE, `${EXPECTED_NAME}${mistakes.quote(given)}`, 'hubs')
    return undefined
  }
  if (!fileKeys(hubOptions).some((path) => env.has(environmentName(`hub.${path}`)))) return undefined
  // With one hub in the file, a variable like HUB2MQTT_HUB_API_KEY can only mean that one.
  return given ?? (inFile.length === 1 ? inFile[0] : undefined) ?? DEFAULT_HUB_NAME
}

/** Where a hub's options stand in a file. */
interface Declared {
  readonly file: ConfigFile
  readonly options: FileMap
  readonly resolvePath: (path: string) => string
}

/** How to fix a missing required option. */
function missing(byEnvironment: boolean) {
  return (path: string, option: Option): string => {
    const example = option.sensitive ? ` (or ${fileKey(path)})` : ` such as ${String(option.example)}`
    const name = environmentName(`hub.${path}`)
    const variable = option.sensitive ? `${name} (or ${name}_FILE)` : name
    return `missing; give ${path}${example} in the configuration file${byEnvironment ? `, or ${variable}` : ''}`
  }
}

/** All valid hubs by name; adds the mistakes in the others. */
export function readHubs({
  file,
  env,
  inFile,
  inEnv,
  reading,
  files,
  required,
}: HubsRequest): Readonly<Record<string, HubConfig>> {
  const { mistakes } = reading
  const hubs = new Map<string, Declared>()
  for (const [name, keys] of hubsOfFile(file, mistakes)) hubs.set(name, { file, options: keys, resolvePath: inFile })
  for (const { name, file: hubFile, options } of files ?? []) {
    const twice = hubs.get(name)
    if (twice !== undefined) {
      const [one, other] = [twice.file, hubFile].map((each) => each.where(['hubs', name]))
      mistakes.add(`hubs.${name}`, `stands in ${one} and in ${other}; keep one of them`, 'hubs')
    }
    const resolvePath = (path: string) => resolve(dirname(hubFile.path ?? ''), path)
    hubs.set(name, { file: hubFile, options, resolvePath })
  }
  const own = hubOfEnvironment(env, [...hubs.keys()], mistakes)
  const names = new Set([...hubs.keys(), ...(own === undefined ? [] : [own])])
  const none = file.root.get('hubs')
  const isMeant = (none instanceof Map && none.size === 0) || files !== undefined
  if (names.size === 0 && required && !isMeant && !mistakes.concerns('hubs')) {
    const url = environmentName('hub.url')
    const key = environmentName('hub.api_key')
    mistakes.add(
      'hubs',
      `no hub configured; give hubs: { home: { url: …, api_key: … } } in a file named by --config or HUB2MQTT_CONFIG, or set ${url} and ${key}. Without a hub, try hub2mqtt demo`,
    )
  }
  const read = (name: string): [string, HubConfig][] => {
    const at = ['hubs', name]
    const declared = hubs.get(name)
    const sources: Source[] = []
    if (declared !== undefined) {
      checkKeys(declared.options, { file: declared.file, table: hubOptions, at, mistakes })
      sources.push(fileSource(declared.file, { at, resolvePath: declared.resolvePath }))
    }
    if (name === own) sources.push(environmentSource(env, { prefix: 'hub.', at, resolvePath: inEnv }))
    const byEnvironment = name === own || names.size === 1
    const prefix = `hubs.${name}.`
    const hub = readTable({ table: hubOptions, sources, prefix, missing: missing(byEnvironment), reading })
    return hub === undefined ? [] : [[name, hub]]
  }
  return Object.fromEntries([...names].flatMap(read))
}
