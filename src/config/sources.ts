/** The sources of options, file and environment, with one interface. */
import type { GenericSchema } from 'valibot'
import type { ConfigFile, FileMap, Keys } from './file.ts'
import type { Mistakes } from './mistakes.ts'
import { fromText } from './schemas.ts'
import { environmentName, fileKey, type Table, VARIABLE_PREFIX } from './table.ts'

export interface Found {
  /** As it stands in a file, or would stand in one. */
  readonly raw: unknown
  /** The option's path in the whole configuration. */
  readonly name: string
  /** The place of what these keys lead to within the value: `hub2mqtt.yaml line 3`, or the variable's name. */
  readonly where: (within: Keys) => string
}

export interface Source {
  /** The value of an option in this source, read for its schema, or `undefined`. */
  find(path: string, schema: GenericSchema): Found | undefined
  /** Makes a path absolute, relative to this source. */
  readonly resolvePath: (path: string) => string
  /** The file that this place is. */
  readonly file?: string | undefined
}

export type Environment = ReadonlyMap<string, string>

/** The environment variables of hub2mqtt; an empty one counts as not set. */
export function ownEnvironment(env: Readonly<Record<string, string | undefined>>): Environment {
  const own = new Map<string, string>()
  for (const [name, value] of Object.entries(env)) {
    if (name.startsWith(VARIABLE_PREFIX) && value !== undefined && value !== '') own.set(name, value)
  }
  return own
}

interface Place {
  /** Where the table stands in the whole configuration: nothing, or `hubs`, `home`. */
  readonly at: readonly string[]
  readonly resolvePath: (path: string) => string
}

const pathBelow = (at: readonly string[], path: string) => [...at, path].join('.')

/** Options by the name of their variable; `prefix` is the path of the table within the names (`hub.`), or empty. */
export function environmentSource(
  env: Environment,
  { prefix, at, resolvePath }: Place & { readonly prefix: string },
): Source {
  return {
    resolvePath,
    find(path, schema) {
      const variable = environmentName(prefix + path)
      const value = env.get(variable)
      if (value === undefined) return undefined
      return { raw: fromText(schema, value), name: pathBelow(at, path), where: () => variable }
    },
  }
}

/** Options of a file, or of the part of it that `at` leads to. */
export function fileSource(file: ConfigFile, { at, resolvePath }: Place): Source {
  return {
    resolvePath,
    file: file.path,
    find(path) {
      const keys = [...at, ...path.split('.')]
      let raw: unknown = file.root
      for (const key of keys) raw = raw instanceof Map ? raw.get(key) : undefined
      // A key without a value is an omitted option.
      if (raw === undefined || raw === null) return undefined
      return { raw, name: pathBelow(at, path), where: (within) => file.where([...keys, ...within]) }
    },
  }
}

export function fileSubject(file: ConfigFile, keys: readonly string[]): string {
  return `${keys.join('.')} (${file.where(keys)})`
}

/** The values under keys for secrets, at any place: messages must not repeat them. */
export function protectSecrets(root: FileMap, env: Environment, tables: readonly Table[], mistakes: Mistakes): void {
  const paths = tables.flatMap((table) => Object.keys(table).filter((path) => table[path]?.sensitive))
  const names = new Set(paths.flatMap((path) => [path, fileKey(path)]).map((path) => path.split('.').at(-1)))
  const walk = (value: unknown, secret: boolean): void => {
    // The access of a token is a common word, not a secret.
    const isSecret = (key: unknown) => (secret && key !== 'access') || names.has(String(key))
    if (value instanceof Map) for (const [key, child] of value) walk(child, isSecret(key))
    else if (Array.isArray(value)) for (const child of value) walk(child, secret)
    else if (secret && value !== null && value !== undefined) mistakes.protect(String(value))
  }
  walk(root, false)
  for (const [name, value] of env) {
    if ([...names].some((key) => key !== undefined && name.endsWith(`_${key.toUpperCase()}`))) mistakes.protect(value)
  }
}
