/** Combines the configuration file and the environment into one validated value, or reports all mistakes. */
import { readdirSync } from 'node:fs'
import { systemClock } from '../base/clock.ts'
import { readPlainText } from '../base/read-plain.ts'
import { type FileMap, noFile, type ReadFile, readConfigFile } from './file.ts'
import { readHubs } from './hubs.ts'
import { type ReadFolder, readHubsDir } from './hubs-dir.ts'
import { ConfigError, Mistakes } from './mistakes.ts'
import { CONFIG_VARIABLE, type Config, HUB_NAME_VARIABLE, httpOptions, hubOptions, options } from './options.ts'
import { type Reading, readTable } from './read.ts'
import { checkRules } from './rules.ts'
import { environmentSource, httpInText, ownEnvironment, protectSecrets, subjectOf, valueIn } from './sources.ts'
import { environmentName, fileKey, fileKeys, type Table, type Values } from './table.ts'
import { checkKeys, checkRemoved, checkVariables } from './unknown.ts'

export interface LoadOptions {
  /** Path of the configuration file (`--config`); default: the value of `HUB2MQTT_CONFIG`, otherwise no file. */
  readonly file?: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  /** Reads a file; default: from disk. */
  readonly readFile?: ReadFile
  /** Lists the files of a folder; default: from disk. */
  readonly readFolder?: ReadFolder
  /** Whether a configuration without a hub is a mistake; default: `true`. */
  readonly requireHub?: boolean
  /** Whether a missing file is a mistake; if not, a missing file is treated as empty. Default: `true`. */
  readonly requireFile?: boolean
  /** Whether an empty file is a mistake, as on a reload; default: `false`. */
  readonly requireContent?: boolean
  /** Options to ignore in the file, such as `hubs` and `mqtt.url`; default: none. */
  readonly without?: readonly string[]
}

export type Loaded = Readonly<ReturnType<typeof loadConfig>>

export const variables: readonly string[] = [
  CONFIG_VARIABLE,
  HUB_NAME_VARIABLE,
  ...fileKeys(hubOptions).map((path) => environmentName(`hub.${path}`)),
  ...fileKeys(options).map(environmentName),
]

/** Returns the path of the configuration file, which need not exist; `null` if no file is configured. */
export function configFileOf({ file, env }: LoadOptions): string | null {
  return file ?? ownEnvironment(env).get(CONFIG_VARIABLE) ?? null
}

function open(request: LoadOptions) {
  const { readFile = readPlainText, requireFile, without = [] } = request
  const mistakes = new Mistakes()
  const env = ownEnvironment(request.env)
  const path = configFileOf(request)
  const read = path === null ? noFile : readConfigFile(path, readFile, mistakes, requireFile)
  const whole = read ?? noFile
  const file = { ...whole, root: without.reduce((root, option) => omit(root, option.split('.')), whole.root) }
  const sources = [file, environmentSource(env, options)]
  const reading: Reading = { mistakes, readFile, secrets: new Set(), warnings: [] }
  return { path, file, readable: read !== undefined, env, sources, reading }
}

/** Returns the map without the value at `keys`. */
function omit(map: FileMap, [key = '', ...below]: readonly string[]): FileMap {
  const value: unknown = map.get(key)
  if (below.length > 0) return value instanceof Map ? new Map(map).set(key, omit(value, below)) : map
  const rest = new Map(map)
  rest.delete(key)
  return rest
}

type Opened = ReturnType<typeof open>

function readTop<T extends Table>(table: T, { sources, reading }: Opened): Values<T> {
  const values = readTable({ table, sources, reading })
  if (values === undefined) throw new Error('an option at the top of the configuration is required: it needs a default')
  return values
}

/** Returns a copy of `opened` that collects its mistakes separately. */
function withOwnMistakes(opened: Opened): Opened {
  return { ...opened, reading: { ...opened.reading, mistakes: new Mistakes() } }
}

/** Returns the source that determines the value of an option; `undefined` if no source sets the option. */
const sourceOf = (path: string, { sources }: Opened) => sources.findLast((one) => valueIn(one, path) !== undefined)

/** Reads the hubs in the folder of `hubs_dir`; returns `undefined` if no folder is configured. */
function readFolderOf({ readFolder = (path) => readdirSync(path) }: LoadOptions, opened: Opened) {
  // Ignore mistakes here, because a mistake in the option itself is reported later, with all other mistakes.
  const { hubs_dir } = readTop({ hubs_dir: options.hubs_dir }, withOwnMistakes(opened))
  if (hubs_dir === null) return undefined
  const source = sourceOf('hubs_dir', opened)
  const subject = source === undefined ? 'hubs_dir' : subjectOf(source, ['hubs_dir'])
  return readHubsDir(hubs_dir, subject, readFolder, opened.reading)
}

/** Loads the configuration. The environment overrides the file. @throws ConfigError with all mistakes at once */
export function loadConfig(request: LoadOptions) {
  const readAt = systemClock.now()
  const opened = open(request)
  const { file, readable, env, reading } = opened
  const { mistakes } = reading
  // An unreadable file may configure hubs, so do not also report that hubs are missing.
  const required = readable && request.requireHub !== false
  if (file.isEmpty && request.requireContent) mistakes.add(file.path ?? '', 'the configuration file is now empty')
  const folder = readFolderOf(request, opened)
  const files = [file, ...(folder ?? []).map(([, hubFile]) => hubFile)]
  for (const { root } of files) protectSecrets(root, env, [hubOptions, options], mistakes)
  checkRemoved(file, env, reading)
  checkVariables(env, variables, reading)
  checkKeys(file, [], [...fileKeys(options), 'hubs'], mistakes)
  const hubs = readHubs({ file, env, reading, folder, required })
  const config: Config = { ...readTop(options, opened), hubs }
  const broken = checkRules(config, (path) => mistakes.concerns(path))
  for (const line of broken.mistakes) mistakes.addLine(line)
  if (mistakes.lines.length > 0) throw new ConfigError(mistakes.lines)
  return {
    config,
    path: file.path ?? null,
    /** Every secret that was read, to be masked in the log. */
    secrets: [...reading.secrets],
    warnings: [...broken.warnings, ...reading.warnings],
    /** Whether the file is empty, or is missing but not required. */
    fileIsEmpty: file.isEmpty,
    /** Number of files in the folder of `hubs_dir`; `null` if no folder is configured. */
    hubFiles: folder?.length ?? null,
    /** When reading began, in epoch milliseconds of the system clock. */
    readAt,
  }
}

/** Returns the configuration of a first run, which has no hubs and perhaps no file; `undefined` if there are hubs. */
export function loadWithoutHub(request: LoadOptions): Loaded | undefined {
  try {
    const loaded = loadConfig({ ...request, requireHub: false, requireFile: false })
    return Object.keys(loaded.config.hubs).length === 0 ? loaded : undefined
  } catch (error) {
    if (error instanceof ConfigError) return undefined
    throw error
  }
}

const ADDRESS = ['http.host', 'http.port'] as const

/**
 * Loads the HTTP options for programs other than the daemon. All other options may be invalid, and the file need not
 * be valid YAML. An option with a mistake has its default. `ofAddress` contains the mistakes in the host and the port.
 * If the file is not valid YAML, searches its text for these options, and ignores mistakes in the found text, because
 * it may be something else.
 */
export function loadHttpConfig(request: LoadOptions) {
  const opened = open(request)
  const { reading, sources, file, env } = opened
  // If a colon or a space is missing in the file, `http` may be a string instead of a map.
  const isMap = file.root.get('http') instanceof Map
  const salvaged = isMap ? [] : [httpInText(textOf(opened), httpOptions)]
  const { http } = readTop(httpOptions, { ...opened, sources: [...salvaged, ...sources] })
  const address = withOwnMistakes(opened)
  const { mistakes } = address.reading
  protectSecrets(file.root, env, [hubOptions, options], mistakes)
  for (const path of ADDRESS) {
    // Check only the value that applies, not the values that it overrides.
    const source = sourceOf(path, opened)
    if (source !== undefined) readTop({ [path]: httpOptions[path] }, { ...address, sources: [source] })
  }
  return { http, ofAddress: mistakes.lines, hasMistakes: reading.mistakes.lines.length > 0 }
}

/** Returns the file's text; empty if there is none. */
function textOf({ path, reading }: Opened): string {
  try {
    return path === null ? '' : reading.readFile(path, true)
  } catch {
    return ''
  }
}

/** Like `loadHttpConfig`, for programs that need the exact values. @throws ConfigError if the values are invalid */
export function loadValidHttpConfig(request: LoadOptions): Values<typeof httpOptions>['http'] {
  const opened = open(request)
  const { mistakes } = opened.reading
  protectSecrets(opened.file.root, opened.env, [hubOptions, options], mistakes)
  const { http } = readTop(httpOptions, opened)
  if (mistakes.lines.length > 0) throw new ConfigError(mistakes.lines)
  return http
}

export function hasPassword(request: LoadOptions): boolean {
  const { sources } = open(request)
  return ['http.password', fileKey('http.password')].some((path) =>
    sources.some((source) => valueIn(source, path) !== undefined),
  )
}
