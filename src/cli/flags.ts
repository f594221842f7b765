/** The kinds of flags and arguments that a command can have: what help shows, and how their text becomes a value. */
import * as v from 'valibot'
import { UsageError } from '../base/errors.ts'
import { fromText } from '../config/schemas.ts'

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
export type Flags<T> = { readonly [K in keyof T]: Flag<T[K]> }
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
