/** The common interface of the sources of options, and the environment in the form of a file. */
import { resolve } from 'node:path'
import type { FileMap, Keys } from './file.ts'
import type { Mistakes } from './mistakes.ts'
import { fromText } from './schemas.ts'
import { environmentName, fileKeys, nest, type Table, VARIABLE_PREFIX, valueAt } from './table.ts'

export interface Source {
  /** The path of the file; `undefined` for the environment. */
  readonly path?: string | undefined
  readonly root: FileMap
  /** Returns the place of an option or the existing part of its path: `hub2mqtt.yaml line 3`, or a variable's name. */
  readonly where: (keys: Keys) => string
  /** Resolves a path against the location of this source. */
  readonly resolvePath: (path: string) => string
}

export type Environment = ReadonlyMap<string, string>

/** Returns hub2mqtt's own variables. An empty variable is treated as not set. */
export function ownEnvironment(env: Readonly<Record<string, string | undefined>>): Environment {
  const own = Object.entries(env).filter(([name]) => name.startsWith(VARIABLE_PREFIX))
  return new Map(own.flatMap(([name, value]) => (value ? [[name, value]] : [])))
}

/** Reads options from variables. The variables' names begin with `prefix`, the options' paths with `at`. */
export function environmentSource(env: Environment, table: Table, prefix = '', at = ''): Source {
  const names = new Map<string, string>()
  const values = fileKeys(table).flatMap((path) => {
    const name = environmentName(prefix + path)
    const text = env.get(name)
    if (text === undefined) return []
    names.set(at + path, name)
    // Parse only values of options. Paths of files with secrets have no schema.
    const schema = table[path]?.schema
    return [[at + path, schema === undefined ? text : fromText(schema, text)] as const]
  })
  const where = (keys: Keys) => {
    const paths = keys.map((_, index) => keys.slice(0, index + 1).join('.'))
    return names.get(paths.find((path) => names.has(path)) ?? '') ?? ''
  }
  return { root: nest(values), where, resolvePath: (path) => resolve(path) }
}

const ADDRESS: ReadonlySet<string> = new Set(['enabled', 'host', 'port'])

/**
 * Finds the listener's address in the text of a file that may be neither valid YAML nor valid JSON. The parser cannot
 * be used: after a missing quote, for example, it finds no keys. In JSON, later sections count as part of `http`.
 */
export function httpInText(text: string, table: Table): Source {
  const found = new Map<string, unknown>()
  let isInside = false
  for (const line of text.split('\n')) {
    const words = wordsOf(line)
    if (line.trimStart() === line && words.length > 0) isInside = false
    for (const [i, word] of words.entries()) {
      const [key = '', ...value] = word.split(':')
      const schema = ADDRESS.has(key) ? table[`http.${key}`]?.schema : undefined
      if (word === 'http' || word === 'http:') isInside = true
      else if (isInside && schema !== undefined && !found.has(key)) {
        found.set(key, fromText(schema, value.join(':') || (words[i + 1] ?? '')))
      }
    }
  }
  const root = nest([...found].map(([key, value]) => [`http.${key}`, value] as const))
  return { root, where: () => '', resolvePath: (path) => path }
}

/** Returns the keys and values before a comment, without quotes and braces. */
function wordsOf(line: string): string[] {
  const words = line.split(/[\s\uFEFF{},"']+/).filter((word) => word !== '' && word !== ':')
  const comment = words.findIndex((word) => word.startsWith('#'))
  return comment === -1 ? words : words.slice(0, comment)
}

/** Returns the value at a path. A key without a value counts as an omitted option. */
export const valueIn = ({ root }: Source, path: string): unknown => valueAt(root, path) ?? undefined

/** Returns the beginning of a message: `mqtt.url (hub2mqtt.yaml line 3)`. */
export const subjectOf = ({ where }: Source, keys: readonly string[]): string => `${keys.join('.')} (${where(keys)})`

/** Messages must not repeat the values of secret keys, even if these keys are in the wrong places. */
export function protectSecrets(root: FileMap, env: Environment, tables: readonly Table[], mistakes: Mistakes): void {
  const sensitive = tables.map((table) => Object.fromEntries(Object.entries(table).filter(([, row]) => row.sensitive)))
  const names = new Set(sensitive.flatMap(fileKeys).map((path) => path.slice(path.lastIndexOf('.') + 1)))
  const walk = (value: unknown, secret: boolean): void => {
    // Do not mask the value of a token's `access`, because it is a common word, not a secret.
    const isSecret = (key: unknown) => (secret && key !== 'access') || names.has(String(key))
    if (value instanceof Map) for (const [key, child] of value) walk(child, isSecret(key))
    else if (Array.isArray(value)) for (const child of value) walk(child, secret)
    else if (secret && value !== null && value !== undefined) mistakes.protect(String(value))
  }
  walk(root, false)
  for (const [name, value] of env) {
    if ([...names].some((key) => name.endsWith(`_${key.toUpperCase()}`))) mistakes.protect(value)
  }
}
