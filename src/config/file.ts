/** Reads a configuration file, YAML or JSON, into maps: no prototype to pollute, and every key's line is known. */
import { createRequire } from 'node:module'
import type { Document, LineCounter, ParsedNode } from 'yaml'
import type { Mistakes } from './mistakes.ts'

/** The keys that lead to a value; a number counts the items of a list from 0. */
export type Keys = readonly (string | number)[]
export type FileMap = ReadonlyMap<unknown, unknown>
/** Returns a text file's content, or throws with a `code` such as `ENOENT`. */
export type ReadFile = (path: string) => string

export interface ConfigFile {
  readonly path?: string
  /** Whether it contains only comments. */
  readonly isEmpty: boolean
  readonly root: FileMap
  /** `hub2mqtt.yaml line 3`, for the end of a path, or as far as the file has it; its name alone for nothing of it. */
  where(keys: Keys): string
}

/** How an option is written in a file: `mqtt: { url: … }` in YAML, `"mqtt": { "url": … }` in JSON. */
export const example = (path: string | undefined, keys: readonly string[]): string =>
  keys.reduceRight((below, key) => `${isJson(path) ? `"${key}"` : key}: ${below === '' ? '…' : `{ ${below} }`}`, '')

export const isJson = (path: string | undefined): boolean => path?.endsWith('.json') === true

export const noFile: ConfigFile = { isEmpty: false, root: new Map(), where: () => '' }

/** Enough for repeated blocks, too few to exhaust memory. */
const MAX_ALIASES = 50

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a directory',
  EFBIG: 'it is larger than 1 MiB',
  NOT_PLAIN: 'it is not a plain file',
  // A socket says so when it is opened, and what only looks like a plain file when it is read.
  ENXIO: 'it is not a plain file',
  EAGAIN: 'it is not a plain file',
}

/** Why a file could not be read, without its path. */
export function readFailure(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
  return REASONS[code] ?? code
}

/** Deeper than any configuration, and far below the limit of the stack. */
const MAX_DEPTH = 64
const TOO_DEEP = 'its values nest too deeply'

const TWICE = 'the same key stands here twice; keep one'
const BAD_ALIAS = 'an alias (*name) has no anchor (&name) before it'

/** The parser's own messages quote the source, which may hold a secret: only its error codes are used. */
const SYNTAX: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: TWICE,
  TAB_AS_INDENT: 'a tab stands where only spaces may indent',
  BAD_INDENT: 'the indentation does not fit the lines above',
  NON_STRING_KEY: 'a key must be plain text',
  BAD_ALIAS,
  RESOURCE_EXHAUSTION: TOO_DEEP,
  MULTIPLE_DOCS: 'the file holds more than one document (---); keep one',
}

const NOT_YAML = 'this is not valid YAML or JSON; look for a missing quote, colon or space here'
/** Of JSON too; everything else is a part of YAML that JSON lacks. */
const IN_JSON: ReadonlySet<string> = new Set([TWICE, TOO_DEEP])
const NOT_JSON = 'this is not valid JSON; look for a missing quote, comma or bracket here'

/** What is wrong, in the words of what a file is to hold. */
const inWordsOf = (path: string, reason: string): string => (isJson(path) && !IN_JSON.has(reason) ? NOT_JSON : reason)

const require = createRequire(import.meta.url)
let parser: typeof import('yaml') | undefined
/** Loads the parser on demand: a configuration by environment alone does not need it. */
function yaml() {
  const loaded: typeof import('yaml') = parser ?? require('yaml')
  parser = loaded
  return loaded
}

function parseText(text: string, path: string, mistakes: Mistakes): { doc: Document; lines: LineCounter } | undefined {
  const { LineCounter, parseDocument } = yaml()
  const lines = new LineCounter()
  let doc: Document.Parsed<ParsedNode>
  const { stackTraceLimit } = Error
  try {
    // It creates an error for each mistake, perhaps thousands; their stack traces take longer than everything else.
    Error.stackTraceLimit = 0
    // The parser compares each key with all others, which is slow for thousands of keys.
    doc = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false, stringKeys: true })
  } catch {
    // The parser recurses for each level of a list, until the stack overflows.
    mistakes.add(path, TOO_DEEP)
    return undefined
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
  // One mistake often causes misleading errors further down; a duplicate key does not.
  const slips = [...doc.errors, ...doc.warnings].map(({ code, pos: [at] }) => ({ code, at }))
  const wrong = slips.length > 0 ? slips.slice(0, 1) : repeatedKeys(doc).map((at) => ({ code: 'DUPLICATE_KEY', at }))
  for (const { code, at } of wrong) {
    const { line, col } = lines.linePos(at)
    mistakes.add(`${path} line ${line}, column ${col}`, inWordsOf(path, SYNTAX[code] ?? NOT_YAML))
  }
  return wrong.length === 0 ? { doc, lines } : undefined
}

/** Where keys stand that their map has already. */
function repeatedKeys(doc: Document.Parsed<ParsedNode>): number[] {
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

/** Why the values cannot be traversed: an alias may refer to its own parent. */
function faultOf(value: unknown, above: readonly unknown[] = []): string | undefined {
  if (!(value instanceof Map || Array.isArray(value))) return undefined
  if (above.includes(value))
    return 'an alias (*name) stands inside of what its anchor (&name) names; write the value out'
  if (above.length === MAX_DEPTH) return TOO_DEEP
  const inside = [...above, value]
  return value
    .values()
    .map((entry) => faultOf(entry, inside))
    .find((fault) => fault !== undefined)
}

/**
 * Reads the file. If it has mistakes, adds them to `mistakes` and returns `undefined`.
 * @param required - Whether it must exist; otherwise a missing file counts as empty.
 */
export function readConfigFile(
  path: string,
  readFile: ReadFile,
  mistakes: Mistakes,
  required = true,
): ConfigFile | undefined {
  let text: string
  try {
    text = readFile(path)
  } catch (error) {
    if (!required && readFailure(error) === REASONS['ENOENT']) return emptyFile(path)
    mistakes.add(path, `the configuration file cannot be read: ${readFailure(error)}`)
    return undefined
  }
  const parsed = parseText(text.replace(/^\uFEFF/, ''), path, mistakes)
  if (parsed === undefined) return undefined
  const { doc, lines } = parsed
  let root: unknown
  try {
    root = doc.toJS({ mapAsMap: true, maxAliasCount: MAX_ALIASES })
  } catch (error) {
    const tooMany = error instanceof Error && error.message.startsWith('Excessive alias count')
    const reason = tooMany ? 'its aliases (*name) multiply too often; write the values out' : BAD_ALIAS
    mistakes.add(path, inWordsOf(path, reason))
    return undefined
  }
  const fault = faultOf(root)
  if (fault !== undefined) {
    mistakes.add(path, inWordsOf(path, fault))
    return undefined
  }
  if (root === null || root === undefined) return emptyFile(path)
  if (!(root instanceof Map)) {
    mistakes.add(path, `expected options with their values, such as ${example(path, ['hubs', 'home', 'url'])}`)
    return undefined
  }
  return { path, isEmpty: false, root, where: (keys) => `${path}${lineOf(doc, lines, keys)}` }
}

const emptyFile = (path: string): ConfigFile => ({ path, isEmpty: true, root: new Map(), where: () => path })

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
