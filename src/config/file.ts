/** Reads a configuration file, YAML or JSON, into maps, because maps have no prototype that could be polluted. */
import { createRequire } from 'node:module'
import { dirname, resolve } from 'node:path'
import type { Document, LineCounter } from 'yaml'
import type { Mistakes } from './mistakes.ts'
import type { Source } from './sources.ts'

/** A number is the index of an item in a list. */
export type Keys = readonly (string | number)[]
export type FileMap = ReadonlyMap<unknown, unknown>
/** Returns a text file's content, or throws with a `code` such as `ENOENT`. `lenient` accepts invalid UTF-8. */
export type ReadFile = (path: string, lenient?: boolean) => string

export interface ConfigFile extends Source {
  /** Whether the file has no content except comments, or is missing but not required. */
  readonly isEmpty: boolean
}

/** Returns an option as written in a file: `mqtt: { url: … }` in YAML, `"mqtt": { "url": … }` in JSON. */
export const example = (path: string | undefined, keys: readonly string[]): string =>
  keys.reduceRight((below, key) => `${isJson(path) ? `"${key}"` : key}: ${below === '' ? '…' : `{ ${below} }`}`, '')

export const isJson = (path: string | undefined): boolean => path?.endsWith('.json') === true

export const noFile: ConfigFile = { isEmpty: false, root: new Map(), where: () => '', resolvePath: (path) => path }

/** Maximum number of aliases in YAML: enough for repeated blocks, but too few to exhaust memory. */
const MAX_ALIASES = 50

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a directory',
  ENOTDIR: 'it is not a directory',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not valid UTF-8 text',
  EFBIG: 'it is larger than 1 MiB',
  NOT_PLAIN: 'it is not a plain file',
  // Sockets fail when they are opened; files that only appear to be plain files fail when they are read.
  ENXIO: 'it is not a plain file',
  EAGAIN: 'it is not a plain file',
}

/** Returns the reason without the file's path. */
export function readFailure(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
  return REASONS[code] ?? code
}

/** Maximum depth of nested values: deeper than any configuration, but too shallow to overflow the stack. */
const MAX_DEPTH = 64
const TOO_DEEP = 'its values are nested too deeply'

const TWICE = 'this key occurs twice; keep one'
const BAD_ALIAS = 'an alias (*name) has no anchor (&name) before it'

/** The parser's own messages quote the source, which may contain a secret, so only its error codes are used. */
const SYNTAX: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: TWICE,
  TAB_AS_INDENT: 'a tab is used for indentation; use spaces',
  BAD_INDENT: 'the indentation does not match the lines above',
  NON_STRING_KEY: 'a key must be plain text',
  BAD_ALIAS,
  RESOURCE_EXHAUSTION: TOO_DEEP,
  TAG_RESOLVE_FAILED: 'tags such as !secret are not supported; for a secret, use the option that ends in _file',
  MULTIPLE_DOCS: 'the file contains more than one document (---); keep one',
}

const NOT_YAML = 'this is not valid YAML or JSON; look for a missing quote, colon or space here'
/** The faults that can occur in JSON. All other faults concern syntax that only YAML has. */
const IN_JSON: ReadonlySet<string> = new Set([TWICE, TOO_DEEP])
const NOT_JSON = 'this is not valid JSON; look for a missing quote, comma or bracket here'

const require = createRequire(import.meta.url)
/** Loads the parser on demand, because it is not needed if all options come from environment variables. */
const yaml = (): typeof import('yaml') => require('yaml')

/** Returns `undefined` if the parser, which is recursive, has overflowed the stack. */
function documentOf(text: string, lineCounter: LineCounter): Document.Parsed | undefined {
  const { stackTraceLimit } = Error
  try {
    // The parser may create thousands of errors, and their stack traces would take longer than everything else.
    Error.stackTraceLimit = 0
    // `repeatedKeys` finds duplicate keys, because the parser would slowly compare each key with all others.
    return yaml().parseDocument(text, { lineCounter, prettyErrors: false, uniqueKeys: false, stringKeys: true })
  } catch {
    return undefined
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

function repeatedKeys(doc: Document.Parsed): number[] {
  const { isScalar, visit } = yaml()
  const found: number[] = []
  visit(doc, {
    Map(_, { items }) {
      const seen = new Set<unknown>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        if (seen.has(key.value)) found.push(key.range?.[0] ?? 0)
        seen.add(key.value)
      }
    },
  })
  return found
}

/** Returns the reason if the values cannot be traversed (deep nesting, or an alias that refers to its own parent). */
function faultOf(value: unknown, above: readonly unknown[] = []): string | undefined {
  if (!(value instanceof Map || Array.isArray(value))) return undefined
  if (above.includes(value)) return 'an alias (*name) is inside its own anchor (&name); write the value out'
  if (above.length === MAX_DEPTH) return TOO_DEEP
  const inside = [...above, value]
  return value
    .values()
    .map((entry) => faultOf(entry, inside))
    .find((fault) => fault !== undefined)
}

/** Returns the content, or the faults with their places, such as ` line 3, column 1` (empty for the whole file). */
function parse(text: string) {
  const lines = new (yaml().LineCounter)()
  const doc = documentOf(text, lines)
  if (doc === undefined) return [{ reason: TOO_DEEP, at: '' }]
  // Report all duplicate keys, but only the first syntax error, because it may cause misleading errors after it.
  const faults = [...doc.errors, ...doc.warnings].map(({ code, pos: [at] }) => ({ code, at }))
  const wrong = faults.length > 0 ? faults.slice(0, 1) : repeatedKeys(doc).map((at) => ({ code: 'DUPLICATE_KEY', at }))
  if (wrong.length > 0) {
    return wrong.map(({ code, at }) => {
      const { line, col } = lines.linePos(at)
      return { reason: SYNTAX[code] ?? NOT_YAML, at: ` line ${line}, column ${col}` }
    })
  }
  try {
    const root: unknown = doc.toJS({ mapAsMap: true, maxAliasCount: MAX_ALIASES })
    const reason = faultOf(root)
    return reason === undefined ? { doc, lines, root } : [{ reason, at: '' }]
  } catch (error) {
    const tooMany = error instanceof Error && error.message.startsWith('Excessive alias count')
    return [{ reason: tooMany ? 'its aliases (*name) multiply too often; write the values out' : BAD_ALIAS, at: '' }]
  }
}

/** Reads the file, or adds mistakes and returns `undefined`. A missing file counts as empty unless `required`. */
export function readConfigFile(
  path: string,
  readFile: ReadFile,
  mistakes: Mistakes,
  required = true,
): ConfigFile | undefined {
  const resolvePath = (name: string) => resolve(dirname(path), name)
  const empty = { path, isEmpty: true, root: new Map(), where: () => path, resolvePath }
  let text: string
  try {
    text = readFile(path)
  } catch (error) {
    if (!required && readFailure(error) === REASONS['ENOENT']) return empty
    mistakes.add(path, `the configuration file cannot be read: ${readFailure(error)}`)
    return undefined
  }
  const parsed = parse(text.replace(/^\uFEFF/, ''))
  if (!('root' in parsed)) {
    const inJson = (reason: string) => (IN_JSON.has(reason) ? reason : NOT_JSON)
    for (const { reason, at } of parsed) mistakes.add(path + at, isJson(path) ? inJson(reason) : reason)
    return undefined
  }
  const { doc, lines, root } = parsed
  if (root === null || root === undefined) return empty
  if (root instanceof Map) {
    return { path, isEmpty: false, root, where: (keys) => `${path}${lineOf(doc, lines, keys)}`, resolvePath }
  }
  mistakes.add(path, `expected options with their values, such as ${example(path, ['hubs', 'home', 'url'])}`)
  return undefined
}

function lineOf(doc: Document, lines: LineCounter, keys: Keys): string {
  for (const length of keys.keys()) {
    const start = startOf(doc, keys.slice(0, keys.length - length))
    if (start !== undefined) return ` line ${lines.linePos(start).line}`
  }
  return ''
}

function startOf(doc: Document, keys: Keys): number | undefined {
  const { isCollection, isMap, isNode } = yaml()
  const last = keys.at(-1)
  const parent = keys.length > 1 ? doc.getIn(keys.slice(0, -1), true) : doc.contents
  if (isMap<{ value?: unknown; range?: readonly number[] }>(parent)) {
    return parent.items.find(({ key }) => String(key.value) === last)?.key.range?.[0]
  }
  const item = isCollection(parent) ? parent.get(last, true) : undefined
  return isNode(item) ? item.range?.[0] : undefined
}
