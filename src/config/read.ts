/** Reads one table's options from its sources: each value checked where it stands, secrets in either form. */
import { type ReadFile, readFailure } from './file.ts'
import { layer, merge } from './merge.ts'
import type { Mistakes } from './mistakes.ts'
import type { Source } from './sources.ts'
import { type AnyOption, fileKey, type Table } from './table.ts'

export interface Reading {
  readonly mistakes: Mistakes
  readonly readFile: ReadFile
  /** Collects the values of all secrets that were read, used or not. */
  readonly secrets: Set<string>
  /** Collects what works but is probably not meant. */
  readonly warnings: string[]
  readonly isExposed: (path: string) => boolean
}

interface Request {
  readonly path: string
  readonly option: AnyOption
  readonly source: Source
  /** The option's path in the whole configuration. */
  readonly full: string
}

/** The text of a secret's file, without the line break that editors leave. Its path is not shown: it may be the key. */
function fromSecretFile(
  { source, full }: Request,
  raw: unknown,
  subject: string,
  reading: Reading,
): string | undefined {
  const { mistakes, readFile } = reading
  if (typeof raw !== 'string') {
    mistakes.add(subject, 'expected the path of a file that holds the secret', full)
    return undefined
  }
  let text: string
  try {
    text = readFile(source.resolvePath(raw)).trim()
  } catch (error) {
    mistakes.add(subject, `the file that it names cannot be read: ${readFailure(error)}`, full)
    return undefined
  }
  if (text === '') {
    mistakes.add(subject, 'the file that it names is empty; write the secret into it', full)
    return undefined
  }
  warnIfExposed(
    source.resolvePath(raw),
    `${subject}: every user of this machine can read the file that it names`,
    reading,
  )
  return text
}

/** A secret that stands in the configuration file itself, or a file named there that is one. */
function warnOfSecret(
  { option, source }: Request,
  subject: string,
  { inline, value }: { readonly inline: boolean; readonly value: unknown },
  reading: Reading,
): void {
  const who = `${subject}: every user of this machine can read`
  if (option.namesSecret) warnIfExposed(String(value), `${who} the file that it names`, reading)
  if (option.sensitive && inline && source.file !== undefined) warnIfExposed(source.file, `${who} this file`, reading)
}

function warnIfExposed(path: string, line: string, { isExposed, warnings }: Reading): void {
  if (isExposed(path)) warnings.push(`${line}; chmod 600 it`)
}

/** A file that cannot be read is told now, not at the first connection. */
function canOpen(path: unknown, subject: string, full: string, { mistakes, readFile }: Reading): boolean {
  try {
    readFile(String(path))
    return true
  } catch (error) {
    mistakes.add(subject, `the file that it names cannot be read: ${readFailure(error)}`, full)
    return false
  }
}

/** One option from one source, or `undefined` where it is not there or not good. */
function readOption(request: Request, reading: Reading): { value: unknown } | undefined {
  const { path, option, source, full } = request
  const { mistakes } = reading
  const inline = source.find(path, option)
  let found = inline
  if (option.sensitive) {
    const other = source.find(fileKey(path), undefined)
    if (found !== undefined && other !== undefined) {
      mistakes.add(`${found.subject} and ${other.subject}`, 'both are given; keep one of them', full)
      return undefined
    }
    if (other !== undefined) {
      const text = fromSecretFile(request, other.raw, other.subject, reading)
      if (text === undefined) return undefined
      mistakes.protect(text)
      found = { raw: text, subject: other.subject }
    }
  }
  if (found === undefined) return undefined
  const parsed = option.format.parse(found.raw, { resolvePath: source.resolvePath })
  if (!parsed.ok) {
    const quote = option.format.quotable && !option.sensitive ? mistakes.quote(found.raw) : ''
    mistakes.add(found.subject, `expected ${parsed.expected}${quote}`, full)
    return undefined
  }
  if (option.format.opens && !canOpen(parsed.value, found.subject, full, reading)) return undefined
  if (option.sensitive && typeof parsed.value === 'string') reading.secrets.add(parsed.value)
  warnOfSecret(request, found.subject, { inline: found === inline, value: parsed.value }, reading)
  return { value: parsed.value }
}

export interface ReadRequest {
  readonly table: Table
  /** From weak to strong. */
  readonly sources: readonly Source[]
  /** Where the table stands in the whole configuration: empty, or `hubs.home.`. */
  readonly prefix: string
  /** How to mend a required option that is nowhere. */
  readonly missing: (path: string, option: AnyOption) => string
  readonly reading: Reading
}

/** The table's values, nested; `undefined` where a required one is missing. An option with a mistake has its default. */
export function readTable({ table, sources, prefix, missing, reading }: ReadRequest): unknown {
  const layers = sources.map((source) =>
    layer(table, (path, option) => readOption({ path, option, source, full: prefix + path }, reading)),
  )
  let complete = true
  for (const [path, option] of Object.entries(table)) {
    if (!option.required || layers.some((values) => values.has(path))) continue
    complete = false
    const full = prefix + path
    if (!reading.mistakes.concerns(full)) reading.mistakes.add(full, missing(path, option), full)
  }
  return complete ? merge(table, layers) : undefined
}
