import * as v from 'valibot'
import { UsageError } from '../base/errors.ts'
import { fromText } from '../config/schemas.ts'

export const exitCodes = {
  ok: { code: 0, doc: 'the command succeeded, or run, demo or emulate was stopped' },
  failed: {
    code: 1,
    doc: 'the command failed, doctor or conformance found a problem, or conformance was stopped while it was testing changes',
  },
  usage: { code: 2, doc: 'the command line or the configuration has a mistake' },
} as const

export interface Io {
  readonly env: NodeJS.ProcessEnv
  readonly stdin: NodeJS.ReadStream
  /** Writes a line to standard output. */
  readonly print: (line: string) => void
  /** Writes a line to standard error. */
  readonly warn: (line: string) => void
}

/** The function that executes a command. Returns the exit code. */
export type Body<T> = (io: Io, flags: T) => number | Promise<number>

export type ConfigFlag = { readonly config: string | undefined }

export type Command = ReturnType<ReturnType<typeof command>['doc']>

/** Defines a command. @param row.body imports the body when the command runs, so that only its modules are loaded */
export function command<F, P = Record<never, never>>(row: {
  readonly flags: Flags<F>
  /** Arguments without a flag. Optional arguments must be last. */
  readonly positionals?: Flags<P>
  /** Marks a command that runs until it is stopped. */
  readonly lasts?: true
  readonly body: () => Promise<Body<F & P>>
}) {
  const { body, lasts = false } = row
  const flags: Readonly<Record<string, Flag>> = row.flags
  const positionals: Readonly<Record<string, Flag>> = row.positionals ?? {}
  const read = (given: ReadonlyMap<string, readonly string[]>) => {
    const all = Object.entries({ ...flags, ...positionals })
    const values = Object.fromEntries(all.map(([name, flag]) => [name, flag.read(given.get(name) ?? [], name)]))
    // The assertion is safe, because the object has each key of `F` and `P`, with a value of that flag's type.
    return { flags: values, run: async (io: Io) => (await body())(io, values as F & P) }
  }
  return { doc: (summary: string) => ({ summary, flags, positionals, lasts, read }) }
}

export interface Flag<T = unknown> {
  readonly doc: string
  /** The name of the value in the help. A flag without this name takes no value. */
  readonly value?: string
  readonly multiple?: true
  readonly optional?: true
  /** The default value, as shown in the help. */
  readonly default?: string
  /** Converts the given values. @throws UsageError that states what was expected */
  readonly read: (given: readonly string[], name: string) => T
}

type Flags<T> = { readonly [K in keyof T]: Flag<T[K]> }
export type Values<F> = { readonly [K in keyof F]: F[K] extends Flag<infer T> ? T : never }

/** Parses a value in the format of environment variables. */
function parse<S extends v.GenericSchema>(schema: S, text: string, name: string): v.InferOutput<S> {
  const result = v.safeParse(schema, fromText(schema, text))
  if (result.success) return result.output
  throw new UsageError(`--${name}: ${result.issues[0].message}`)
}

export const given = (doc: string): Flag<boolean> => ({ doc, read: (all) => all.length > 0 })

export function parsed<S extends v.GenericSchema>(
  value: string,
  schema: S,
  doc: string,
  shown: Pick<Flag, 'default'> = {},
): Flag<v.InferOutput<S> | undefined> {
  const read = ([text]: readonly string[], name: string) => (text === undefined ? text : parse(schema, text, name))
  return { value, doc, ...shown, read }
}

export const text = (value: string, doc: string) => parsed(value, v.string(), doc)

export function several<S extends v.GenericSchema>(
  value: string,
  schema: S,
  doc: string,
): Flag<readonly v.InferOutput<S>[]> {
  return { value, doc, multiple: true, read: (all, name) => all.map((text) => parse(schema, text, name)) }
}

export function required<T>(flag: Flag<T>): Flag<NonNullable<T>> {
  return {
    ...flag,
    read(all, name) {
      const value = flag.read(all, name)
      if (all.length === 0 || value === undefined || value === null) throw new UsageError(`--${name} is missing`)
      return value
    },
  }
}

export function withDefault<T>(text: string, flag: Flag<T>): Flag<NonNullable<T>> {
  const { read } = required(flag)
  return { ...flag, default: text, read: (all, name) => read(all.length === 0 ? [text] : all, name) }
}

export const argument = (doc: string): Flag<string> => ({ doc, read: ([text = '']) => text })

export const optionalArgument = (doc: string): Flag<string | undefined> => ({
  doc,
  optional: true,
  read: ([text]) => text,
})
