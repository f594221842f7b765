/** The places that options come from: the file and the environment, asked the same way. */
import type { ConfigFile, FileMap } from './file.ts'
import type { Mistakes } from './mistakes.ts'
import { type AnyOption, environmentName, fileKey, type Table, VARIABLE_PREFIX } from './table.ts'

export interface Found {
  /** As it stands in a file, or would stand in one. */
  readonly raw: unknown
  /** How a mistake names it: `mqtt.port (hub2mqtt.yaml line 3)`. */
  readonly subject: string
}

export interface Source {
  /** What this place says about an option, or `undefined` where it is silent. */
  find(path: string, option: AnyOption | undefined): Found | undefined
  /** Makes a path absolute, as this place counts it. */
  readonly resolvePath: (path: string) => string
  /** The file that this place is. */
  readonly file?: string | undefined
}

export type Environment = ReadonlyMap<string, string>

/** The environment's part that is ours; an empty variable counts as not set. */
export function ownEnvironment(env: Readonly<Record<string, string | undefined>>): Environment {
  const own = new Map<string, string>()
  for (const [name, value] of Object.entries(env)) {
    if (name.startsWith(VARIABLE_PREFIX) && value !== undefined && value !== '') own.set(name, value)
  }
  return own
}

/** Options by the name of their variable; `prefix` is the path of the table within the names (`hub`), or empty. */
export function environmentSource(
  env: Environment,
  { prefix, display, resolvePath }: { prefix: string; display: string; resolvePath: (path: string) => string },
): Source {
  return {
    resolvePath,
    find(path, option) {
      const variable = environmentName(prefix + path)
      const value = env.get(variable)
      if (value === undefined) return undefined
      return { raw: option ? option.format.fromText(value) : value, subject: `${display}${path} (${variable})` }
    },
  }
}

/** Options of a (part of a) file; `at` is where `root` stands in it. */
export function fileSource(
  file: ConfigFile,
  { root, at, resolvePath }: { root: FileMap; at: readonly string[]; resolvePath: (path: string) => string },
): Source {
  return {
    resolvePath,
    file: file.path,
    find(path) {
      const keys = path.split('.')
      let value: unknown = root
      for (const key of keys) value = value instanceof Map ? value.get(key) : undefined
      // A key with nothing behind it is an option left out.
      if (value === undefined || value === null) return undefined
      return { raw: value, subject: fileSubject(file, [...at, ...keys]) }
    },
  }
}

export function fileSubject(file: ConfigFile, keys: readonly string[]): string {
  return `${keys.join('.')} (${file.where(keys)})`
}

/** The values under keys that hold secrets, wherever they stand: nothing of theirs may be repeated. */
export function protectSecrets(root: FileMap, env: Environment, tables: readonly Table[], mistakes: Mistakes): void {
  const paths = tables.flatMap((table) => Object.keys(table).filter((path) => table[path]?.sensitive))
  const names = new Set(paths.flatMap((path) => [path, fileKey(path)]).map((path) => path.split('.').at(-1)))
  const walk = (value: unknown, secret: boolean): void => {
    if (value instanceof Map) for (const [key, child] of value) walk(child, secret || names.has(String(key)))
    else if (Array.isArray(value)) for (const child of value) walk(child, secret)
    else if (secret && value !== null && value !== undefined) mistakes.protect(String(value))
  }
  walk(root, false)
  for (const [name, value] of env) {
    if ([...names].some((key) => key !== undefined && name.endsWith(`_${key.toUpperCase()}`))) mistakes.protect(value)
  }
}
