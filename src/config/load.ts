/** From file and environment to one checked value, or to all that is wrong with them. */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isExposed } from './exposure.ts'
import { noFile, type ReadFile, readConfigFile } from './file.ts'
import { readHubs } from './hubs.ts'
import { ConfigError, Mistakes } from './mistakes.ts'
import { CONFIG_VARIABLE, type Config, HUB_NAME_VARIABLE, hubOptions, options } from './options.ts'
import { type Reading, readTable } from './read.ts'
import { rules } from './rules.ts'
import { environmentSource, fileSource, ownEnvironment, protectSecrets } from './sources.ts'
import { environmentName, fileKeys } from './table.ts'
import { checkKeys, checkVariables } from './unknown.ts'

export interface LoadOptions {
  /** Path of the configuration file (`--config`); default: what `HUB2MQTT_CONFIG` says, else no file. */
  readonly file?: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  /** Reads a text file; default: from disk. */
  readonly readFile?: ReadFile
  /** Whether every user of the machine may read a file; default: as its mode says. */
  readonly isExposed?: (path: string) => boolean
  /** Whether a configuration without a hub is a mistake; default true. */
  readonly requireHub?: boolean
}

export interface Loaded {
  readonly config: Config
  /** Every secret that was read, for the log's scrubber. */
  readonly secrets: readonly string[]
  /** What works but is probably not meant, one line each. */
  readonly warnings: readonly string[]
}

/** All environment variables that mean something. */
export const variables: readonly string[] = [
  CONFIG_VARIABLE,
  HUB_NAME_VARIABLE,
  ...fileKeys(hubOptions).map((path) => environmentName(`hub.${path}`)),
  ...fileKeys(options).map(environmentName),
]

/**
 * Defaults, under the file, under the environment.
 * @throws {ConfigError} with all mistakes at once.
 */
export function loadConfig(request: LoadOptions): Loaded {
  const mistakes = new Mistakes()
  const reading: Reading = {
    mistakes,
    readFile: request.readFile ?? ((path) => readFileSync(path, 'utf8')),
    secrets: new Set(),
    warnings: [],
    isExposed: request.isExposed ?? isExposed,
  }
  const env = ownEnvironment(request.env)
  const path = request.file ?? env.get(CONFIG_VARIABLE)
  const read = path === undefined ? noFile : readConfigFile(path, reading.readFile, mistakes)
  const file = read ?? noFile
  const resolveFrom = (folder: string) => (name: string) => resolve(folder, name)
  const inFile = resolveFrom(path === undefined ? '.' : dirname(path))
  const inEnv = resolveFrom('.')

  // A file that could not be read would have named the hubs: that none is there is then no second mistake.
  const required = read !== undefined && request.requireHub !== false
  protectSecrets(file.root, env, [hubOptions, options], mistakes)
  checkVariables(env, variables, mistakes)
  checkKeys(file.root, { file, table: options, at: [], also: ['hubs'], mistakes })
  const hubs = readHubs({
    file,
    env,
    inFile,
    inEnv,
    reading,
    required,
  })
  const rest = readTable({
    table: options,
    sources: [
      fileSource(file, { root: file.root, at: [], resolvePath: inFile }),
      environmentSource(env, { prefix: '', display: '', resolvePath: inEnv }),
    ],
    prefix: '',
    missing: () => 'missing',
    reading,
  })
  // Every value in it has passed the format that the type is inferred from; where one did not, a mistake ends this.
  const config = { ...(rest as Omit<Config, 'hubs'>), hubs: hubs as Config['hubs'] }
  const warnings = [...checkRules(config, mistakes), ...reading.warnings]
  if (mistakes.lines.length > 0) throw new ConfigError(mistakes.lines)
  return { config, secrets: [...reading.secrets], warnings }
}

/**
 * Where the daemon listens, for a program beside it: the rest of the configuration may be broken by now, or hold
 * secrets that are none of its business.
 */
export function loadHttpConfig({ file: path, env: given, readFile }: LoadOptions): Config['http'] {
  const reading: Reading = {
    mistakes: new Mistakes(),
    readFile: readFile ?? ((name) => readFileSync(name, 'utf8')),
    secrets: new Set(),
    warnings: [],
    isExposed: () => false,
  }
  const env = ownEnvironment(given)
  const name = path ?? env.get(CONFIG_VARIABLE)
  const file = (name === undefined ? noFile : readConfigFile(name, reading.readFile, reading.mistakes)) ?? noFile
  const resolvePath = (other: string) => other
  const table = Object.fromEntries(Object.entries(options).filter(([key]) => key.startsWith('http.')))
  const sources = [
    fileSource(file, { root: file.root, at: [], resolvePath }),
    environmentSource(env, { prefix: '', display: '', resolvePath }),
  ]
  // The values have passed the formats that the type is inferred from; where one did not, it has its default.
  const values = readTable({ table, sources, prefix: '', missing: () => 'missing', reading }) as Pick<Config, 'http'>
  return values.http
}

function checkRules(config: Omit<Config, 'hubs'>, mistakes: Mistakes): string[] {
  const warnings: string[] = []
  const broken: string[] = []
  for (const { paths, severity, check } of rules) {
    if (paths.some((path) => mistakes.concerns(path))) continue
    const line = check(config)
    if (line !== undefined) (severity === 'mistake' ? broken : warnings).push(line)
  }
  for (const line of broken) mistakes.addLine(line)
  return warnings
}
