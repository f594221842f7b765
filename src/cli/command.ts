/** What a command of the program is, and the kinds of flags and arguments that it can have. */
import * as v from 'valibot'
import { UsageError } from '../base/errors.ts'
import { fromText } from '../config/schemas.ts'

/** What the process exits with. */
export const exitCodes = {
  ok: { code: 0, doc: 'done, or stopped as asked' },
  failed: { code: 1, doc: 'failed at run time, or doctor or conformance found a problem' },
  usage: { code: 2, doc: 'the command line or the configuration has a mistake' },
} as const

/** What a body reads besides its flags, and where it writes. */
export interface Io {
  readonly env: NodeJS.ProcessEnv
  readonly stdin: NodeJS.ReadStream
  /** Writes a line to standard output. */
  readonly print: (line: string) => void
  /** Writes a line to standard error. */
  readonly warn: (line: string) => void
}

/** What a command does; returns the exit code. */
export type Body<T> = (io: Io, flags: T) => number | Promise<number>

export interface Command {
  readonly summary: string
  readonly flags: Readonly<Record<string, Flag>>
  /** What stands after the command without a flag before it, the optional ones last. */
  readonly positionals: Readonly<Record<string, Flag>>
  /** Whether it runs until it is stopped. */
  readonly lasts: boolean
  /** Reads the texts that were given for flags and positionals, and returns the body with their values. */
  readonly read: (given: ReadonlyMap<string, readonly string[]>) => {
    readonly flags: object
    readonly run: (io: Io) => Promise<number>
  }
}

/** @param row.body - Imports the body: a command loads only what it uses. */
export function command<F, P = Record<never, never>>(row: {
  readonly summary: string
  readonly flags: Flags<F>
  readonly positionals?: Flags<P>
  readonly lasts?: true
  readonly body: () => Promise<Body<F & P>>
}): Command {
  const { summary, body, flags, lasts = false } = row
  const positionals: Readonly<Record<string, Flag>> = row.positionals ?? {}
  return {
    ...{ summary, flags, positionals, lasts },
    read(given) {
      const all = Object.entries<Flag>({ ...flags, ...positionals })
      const values = all.map(([name, flag]) => [name, flag.read(given.get(name) ?? [], name)])
      // Each of the keys of `F` and `P`, with the value of its flag's type.
      const read = Object.fromEntries(values) as F & P
      return { flags: Object.fromEntries(values), run: async (io) => (await body())(io, read) }
    },
  }
}

/** What a flag or an argument is, with the value that a body gets for it. */
export interface Flag<T = unknown> {
  readonly doc: string
  /** Shown after the flag in help; without it, the flag takes no value. */
  readonly value?: string
  readonly multiple?: true
  /** An argument that may be left out. */
  readonly optional?: true
  /** Shown in help. */
  readonly default?: string
  /** @throws a text that says what was expected */
  readonly read: (given: readonly string[], name: string) => T
}

/** The flags that give a body these values, by their names. */
type Flags<T> = { readonly [K in keyof T]: Flag<T[K]> }
/** The values that a body gets of these flags. */
export type Values<F> = { readonly [K in keyof F]: F[K] extends Flag<infer T> ? T : never }

/** As one would write a value in an environment variable. */
function parse<S extends v.GenericSchema>(schema: S, text: string, name: string): v.InferOutput<S> {
  const result = v.safeParse(schema, fromText(schema, text))
  if (result.success) return result.output
  throw new UsageError(`--${name}: ${result.issues[0].message}`)
}

export const given = (doc: string): Flag<boolean> => ({ doc, read: (all) => all.length > 0 })

/** A value that `schema` takes; `undefined` if it is not given. */
export function parsed<S extends v.GenericSchema>(
  value: string,
  schema: S,
  doc: string,
  shown: Pick<Flag, 'default'> = {},
): Flag<v.InferOutput<S> | undefined> {
  const read = ([text]: readonly string[], name: string) => (text === undefined ? text : parse(schema, text, name))
  return { value, doc, ...shown, read }
}

/** Any text. */
export const text = (value: string, doc: string) => parsed(value, v.string(), doc)

/** Any number of values that `schema` takes. */
export function several<S extends v.GenericSchema>(
  value: string,
  schema: S,
  doc: string,
): Flag<readonly v.InferOutput<S>[]> {
  return { value, doc, multiple: true, read: (all, name) => all.map((text) => parse(schema, text, name)) }
}

export const texts = (value: string, doc: string) => several(value, v.string(), doc)

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

/** A value that has this text if it is not given. */
export function withDefault<T>(text: string, flag: Flag<T>): Flag<NonNullable<T>> {
  const { read } = required(flag)
  return { ...flag, default: text, read: (all, name) => read(all.length === 0 ? [text] : all, name) }
}

/** What has to stand after the command; its value is a text. */
export const argument = (doc: string): Flag<string> => ({ doc, read: ([text = '']) => text })

/** What may stand there. */
export const optionalArgument = (doc: string): Flag<string | undefined> => ({
  doc,
  optional: true,
  read: ([text]) => text,
})
