/** Reads one table's options from its sources: checks each value at its place, reads secrets in either form. */

import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import * as v from 'valibot'
import { path as filePath } from './addresses.ts'
import { type Keys, type ReadFile, readFailure } from './file.ts'
import type { Mistakes } from './mistakes.ts'
import { about, fromText, secretsIn } from './schemas.ts'
import type { Found, Source } from './sources.ts'
import { fileKey, type Layer, merge, type Option, type Table, type Values } from './table.ts'

export interface Reading {
  readonly mistakes: Mistakes
  readonly readFile: ReadFile
  /** Collects the values of all secrets that were read, used or not. */
  readonly secrets: Set<string>
  /** Collects warnings. */
  readonly warnings: string[]
  readonly isExposed: (path: string) => boolean
}

interface Request {
  readonly path: string
  readonly option: Option
  readonly source: Source
  /** The option's path in the whole configuration. */
  readonly full: string
  /** Whether a stronger source has it too: a file that this one names need not exist then. */
  readonly overridden: boolean
}

/** Of one option: more are not read, and each is looked up in the file. */
const MAX_PROBLEMS = 50
/** A token of `http.tokens` has at least as many characters. */
const LEAST_OF_TOKEN = 16

export const subjectOf = ({ name, where }: Found) => `${name} (${where([])})`

/** The parsed value, or `undefined` and its mistakes. */
function check({ option, full }: Request, schema: v.GenericSchema, found: Found, { mistakes }: Reading): unknown {
  const result = v.safeParse(schema, found.raw, { abortPipeEarly: true })
  if (result.success) return result.output
  const quotable = about(schema).quotable && !option.sensitive
  for (const { keys, message, value } of problemsOf(result.issues, found.raw).slice(0, MAX_PROBLEMS)) {
    // A secret may be used as a key by mistake: below a sensitive option only short names of entries are repeated.
    const name = keys.slice(0, 1).map((key) => (String(key).length < LEAST_OF_TOKEN ? key : ''))
    const subject = `${found.name}${describeKeys(option.sensitive ? name : keys, mistakes)} (${found.where(keys)})`
    mistakes.add(subject, message + (quotable ? mistakes.quote(value) : ''), full)
  }
  return undefined
}

/** The content of a file. Messages omit its path, which may be the secret itself. Failures are reported at once. */
function open(request: Request, path: string, found: Found, { mistakes, readFile }: Reading): string | undefined {
  try {
    return readFile(path)
  } catch (error) {
    const why = `the file that it names cannot be read: ${readFailure(error)}`
    if (!request.overridden) mistakes.add(subjectOf(found), why, request.full)
    return undefined
  }
}

function warnIfExposed(path: string, found: Found, what: string, { isExposed, warnings }: Reading): void {
  if (!isExposed(path)) return
  warnings.push(`${subjectOf(found)}: every user of this machine can read ${what}; chmod 600 it`)
}

/** The text of a secret's file, without the final line break. */
function fromSecretFile(request: Request, found: Found, reading: Reading): string | undefined {
  const named = check(request, filePath, found, reading)
  if (typeof named !== 'string') return undefined
  const path = request.source.resolvePath(named)
  const text = open(request, path, found, reading)?.trim()
  if (text === '') {
    reading.mistakes.add(subjectOf(found), 'the file that it names is empty; write the secret into it', request.full)
    return undefined
  }
  if (text !== undefined) warnIfExposed(path, found, 'the file that it names', reading)
  return text
}

/** A secret, which may be in a separate file. */
function readSecret(request: Request, inline: Found | undefined, reading: Reading): unknown {
  const { path, option, source, full } = request
  const { mistakes, secrets } = reading
  const named = source.find(fileKey(path), filePath)
  if (inline !== undefined && named !== undefined) {
    mistakes.add(`${subjectOf(inline)} and ${subjectOf(named)}`, 'both are given; keep one of them', full)
    return undefined
  }
  const text = named && fromSecretFile(request, named, reading)
  if (text !== undefined) mistakes.protect(text)
  const found = named === undefined || text === undefined ? inline : { ...named, raw: fromText(option.schema, text) }
  const value = found && check(request, option.schema, found, reading)
  if (value !== undefined) for (const secret of secretsIn(option.schema, value)) secrets.add(secret)
  if (inline && value !== undefined && source.file !== undefined) {
    warnIfExposed(source.file, inline, 'this file', reading)
  }
  return value
}

/** The path of a file that is opened later, made absolute. */
function readPath(request: Request, found: Found, reading: Reading): string | undefined {
  const value = check(request, request.option.schema, found, reading)
  if (typeof value !== 'string') return undefined
  const path = request.source.resolvePath(value)
  if (request.option.opens === 'folder' || request.option.opens === 'made') return path
  if (open(request, path, found, reading) === undefined) return undefined
  if (request.option.opens === 'secret') warnIfExposed(path, found, 'the file that it names', reading)
  return path
}

/** One option from one source, or `undefined` if it is missing or invalid. */
function readOption(request: Request, reading: Reading): unknown {
  const { path, option, source } = request
  const found = source.find(path, option.schema)
  if (option.sensitive) return readSecret(request, found, reading)
  if (found === undefined) return undefined
  return option.opens ? readPath(request, found, reading) : check(request, option.schema, found, reading)
}

export interface ReadRequest<T extends Table> {
  readonly table: T
  /** From weak to strong. */
  readonly sources: readonly Source[]
  /** Where the table stands in the whole configuration: empty, or `hubs.home.`. */
  readonly prefix?: string
  /** How to fix a missing required option. */
  readonly missing?: (path: string, option: Option) => string
  readonly reading: Reading
}

/** The table's values, nested; `undefined` where a required one is missing. An option with a mistake has its default. */
export function readTable<T extends Table>({
  table,
  sources,
  prefix = '',
  missing = () => 'missing',
  reading,
}: ReadRequest<T>): Values<T> | undefined {
  const layers = sources.map((source, i): Layer => {
    const values = Object.entries(table).map(([path, option]) => {
      const has = (other: Source) =>
        (other.find(path, option.schema) ?? other.find(fileKey(path), filePath)) !== undefined
      const overridden = sources.slice(i + 1).some(has)
      return [path, readOption({ path, option, source, full: prefix + path, overridden }, reading)] as const
    })
    return new Map(values.filter(([, value]) => value !== undefined))
  })
  let complete = true
  for (const [path, option] of Object.entries(table)) {
    if (!option.required || layers.some((values) => values.has(path))) continue
    complete = false
    const full = prefix + path
    if (!reading.mistakes.concerns(full)) reading.mistakes.add(full, missing(path, option), full)
  }
  return complete ? merge(table, layers) : undefined
}

export interface Problem {
  /** From the value to what is wrong in it; empty for the value itself. */
  readonly keys: Keys
  /** What was expected. */
  readonly message: string
  /** The value there; `undefined` if it is missing. */
  readonly value: unknown
}

/** A value with several permitted forms has the problems of the closest form. */
export function problemsOf(issues: readonly v.BaseIssue<unknown>[], value: unknown, at: Keys = []): Problem[] {
  return issues.flatMap(({ path = [], issues: ofForms = [], message }) => {
    const keys = [...at, ...path.map(({ key }) => (typeof key === 'number' ? key : String(key)))]
    const inner = path.length === 0 ? value : path.at(-1)?.value
    const nearest = ofForms.filter((issue) => issue.path !== undefined)
    return nearest.length === 0 ? [{ keys, message, value: inner }] : problemsOf(nearest, inner, keys)
  })
}

/** `["com.athom.hue"].brightness item 2`; a name that may not be repeated is `[…]`. */
export function describeKeys(keys: Keys, mistakes: Mistakes): string {
  return keys
    .map((key) => {
      if (typeof key === 'number') return ` item ${key + 1}`
      const name = mistakes.name(key)
      if (name === undefined) return '[…]'
      return /^\w+$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`
    })
    .join('')
}

const READ_BY_OTHERS = 0o004
const ENTER_BY_OTHERS = 0o001

/** Whether every user of this machine may read the file; a folder that they cannot enter protects it. */
export function isExposed(path: string): boolean {
  // Permissions of other systems do not show in the mode.
  if (process.platform === 'win32') return false
  try {
    return (statSync(path).mode & READ_BY_OTHERS) !== 0 && (statSync(dirname(path)).mode & ENTER_BY_OTHERS) !== 0
  } catch {
    return false
  }
}
