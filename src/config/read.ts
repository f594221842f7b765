/** Reads one table's options from its sources, and secrets also from separate files. */
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import * as v from 'valibot'
import { path as filePath } from './addresses.ts'
import { type Keys, type ReadFile, readFailure } from './file.ts'
import type { Mistakes } from './mistakes.ts'
import { about, fromText, secretsIn } from './schemas.ts'
import { type Source, subjectOf, valueIn } from './sources.ts'
import { fileKey, merge, type Option, type Table, type Values } from './table.ts'

export interface Reading {
  readonly mistakes: Mistakes
  readonly readFile: ReadFile
  /** Collects all secrets that were read, whether they are used or not. */
  readonly secrets: Set<string>
  readonly warnings: string[]
}

interface Place {
  /** The option's path in the whole configuration. */
  readonly path: string
  readonly option: Option
  readonly source: Source
  /** Whether a source of higher precedence sets the option; if so, a file named here need not exist. */
  readonly overridden: boolean
  readonly reading: Reading
}

/** Maximum number of reported problems per option, because each requires a search in the file. */
const MAX_PROBLEMS = 50
/** Minimum length of a token of `http.tokens`. */
const MIN_TOKEN_LENGTH = 16

/** Returns the problems of a value, each with its place. If several forms are permitted, uses the closest one. */
function problemsOf(
  issues: readonly v.BaseIssue<unknown>[],
  value: unknown,
  at: Keys = [],
): { readonly keys: Keys; readonly message: string; readonly value: unknown }[] {
  return issues.flatMap(({ path = [], issues: ofForms = [], message }) => {
    const keys = [...at, ...path.map(({ key }) => (typeof key === 'number' ? key : String(key)))]
    const inner = path.length === 0 ? value : path.at(-1)?.value
    const nearest = ofForms.filter((issue) => issue.path !== undefined)
    return nearest.length === 0 ? [{ keys, message, value: inner }] : problemsOf(nearest, inner, keys)
  })
}

/** Returns the valid value; `undefined` after adding mistakes. `at` is the option's path, or its `_file` key. */
function check({ path, option, source, reading }: Place, schema: v.GenericSchema, raw: unknown, at = path): unknown {
  const { mistakes } = reading
  const result = v.safeParse(schema, raw, { abortPipeEarly: true })
  if (result.success) return result.output
  const quotable = about(schema).quotable && !option.sensitive
  for (const { keys, message, value } of problemsOf(result.issues, raw).slice(0, MAX_PROBLEMS)) {
    // A key may be a misplaced secret, so messages about a sensitive option contain a key only if it is short.
    const name = keys.slice(0, 1).map((key) => (String(key).length < MIN_TOKEN_LENGTH ? key : ''))
    const where = source.where([...at.split('.'), ...keys])
    const subject = `${at}${mistakes.describeKeys(option.sensitive ? name : keys)} (${where})`
    mistakes.add(subject, message + (quotable ? mistakes.quote(value) : ''), path)
  }
  return undefined
}

const subjectAt = ({ source }: Place, at: string) => subjectOf(source, at.split('.'))

/** Reads a file. The given path may be the secret itself, so the message does not repeat the path. */
function open(place: Place, file: string, at: string, lenient = false): string | undefined {
  const { mistakes, readFile } = place.reading
  try {
    return readFile(file, lenient)
  } catch (error) {
    const why = `the file that it names cannot be read: ${readFailure(error)}`
    if (!place.overridden) mistakes.add(subjectAt(place, at), why, place.path)
    return undefined
  }
}

const READ_BY_OTHERS = 0o004
const ENTER_BY_OTHERS = 0o001

/** Returns whether every user of this machine can read the file. */
function isExposed(path: string): boolean {
  // On Windows, the mode does not show permissions.
  if (process.platform === 'win32') return false
  try {
    return (statSync(path).mode & READ_BY_OTHERS) !== 0 && (statSync(dirname(path)).mode & ENTER_BY_OTHERS) !== 0
  } catch {
    return false
  }
}

function warnIfExposed(place: Place, file: string, at: string, what = 'the file that it names'): void {
  if (!isExposed(file)) return
  place.reading.warnings.push(`${subjectAt(place, at)}: every user of this machine can read ${what}; chmod 600 it`)
}

function readInline(place: Place, raw: unknown): unknown {
  const value = check(place, place.option.schema, raw)
  const { path: file } = place.source
  if (value !== undefined && file !== undefined) warnIfExposed(place, file, place.path, 'this file')
  return value
}

/** Ignores white space around the secret, such as a final line break. */
function readSecretFile(place: Place, raw: unknown): unknown {
  const { path, option, source, reading } = place
  const at = fileKey(path)
  const named = check(place, filePath, raw, at)
  if (typeof named !== 'string') return undefined
  const file = source.resolvePath(named)
  const text = open(place, file, at)?.trim()
  if (text === undefined) return undefined
  if (text === '') {
    reading.mistakes.add(subjectAt(place, at), 'the file that it names is empty; write the secret into it', path)
    return undefined
  }
  warnIfExposed(place, file, at)
  reading.mistakes.protect(text)
  return check(place, option.schema, fromText(option.schema, text), at)
}

function readSecret(place: Place, inline: unknown): unknown {
  const { path, option, source, reading } = place
  const named = valueIn(source, fileKey(path))
  if (inline !== undefined && named !== undefined) {
    const both = `${subjectAt(place, path)} and ${subjectAt(place, fileKey(path))}`
    reading.mistakes.add(both, 'both are given; keep one of them', path)
    return undefined
  }
  if (inline === undefined && named === undefined) return undefined
  const value = named === undefined ? readInline(place, inline) : readSecretFile(place, named)
  if (value !== undefined) for (const secret of secretsIn(option.schema, value)) reading.secrets.add(secret)
  return value
}

/** Returns the absolute path of a file that is opened later. */
function readPath(place: Place, raw: unknown): string | undefined {
  const { path, source } = place
  const { opens, schema } = place.option
  const value = check(place, schema, raw)
  if (typeof value !== 'string') return undefined
  const file = source.resolvePath(value)
  if (opens !== 'certificate' && opens !== 'key') return file
  // Comments in certificates may have any encoding.
  const text = open(place, file, path, true)
  if (text === undefined) return undefined
  const fault = faultInPem(opens, text)
  if (fault !== undefined) {
    place.reading.mistakes.add(subjectAt(place, path), fault, path)
    return undefined
  }
  if (opens === 'key') warnIfExposed(place, file, path)
  return file
}

const NAMES = { certificate: 'certificate', key: 'private key' } as const

/** Returns the reason if a file is not of the expected kind: `mqtt.cert_file` and `mqtt.key_file` are easily swapped. */
function faultInPem(opens: keyof typeof NAMES, text: string): string | undefined {
  const name = NAMES[opens]
  if (!text.includes(` ${name.toUpperCase()}-----`)) return `the file that it names has no ${name} in PEM format`
  const isEncrypted = opens === 'key' && text.includes('ENCRYPTED')
  return isEncrypted ? 'the key in it is encrypted; decrypt it with openssl pkey -in OLD -out NEW' : undefined
}

/** Returns `undefined` if the option is missing or invalid. */
function readOption(place: Place): unknown {
  const { path, option, source } = place
  const raw = valueIn(source, path)
  if (option.sensitive) return readSecret(place, raw)
  if (raw === undefined) return undefined
  return option.opens ? readPath(place, raw) : check(place, option.schema, raw)
}

interface ReadRequest<T extends Table> {
  readonly table: T
  /** The sources from lowest to highest precedence. */
  readonly sources: readonly Source[]
  /** The place of the table in the whole configuration, such as `hubs.home.`; empty for the top level. */
  readonly prefix?: string
  /** Explains how to fix a missing required option. */
  readonly missing?: (path: string, option: Option) => string
  readonly reading: Reading
}

/** Returns `undefined` if a required option is missing. An option with a mistake has its default. */
export function readTable<T extends Table>(request: ReadRequest<T>): Values<T> | undefined {
  const { table, sources, prefix = '', missing = () => 'missing', reading } = request
  const rows = Object.entries(table)
  const layers = sources.map((source, index) => {
    const values = rows.map(([key, option]) => {
      const path = prefix + key
      const stronger = sources.slice(index + 1)
      const overridden = stronger.some((one) => (valueIn(one, path) ?? valueIn(one, fileKey(path))) !== undefined)
      return [key, readOption({ path, option, source, overridden, reading })] as const
    })
    return new Map(values.filter(([, value]) => value !== undefined))
  })
  const lacking = rows.filter(([key, { required }]) => required && !layers.some((values) => values.has(key)))
  for (const [key, option] of lacking) {
    const path = prefix + key
    if (!reading.mistakes.concerns(path)) reading.mistakes.add(path, missing(key, option), path)
  }
  return lacking.length === 0 ? merge(table, layers) : undefined
}
