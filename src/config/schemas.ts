/** Schemas for the kinds of option values. Messages state what was expected; `read.ts` may add the rejected value. */
import * as v from 'valibot'
import { amountIn, amountPattern, DURATION_UNITS, type Units } from '../base/durations.ts'
import { nearest } from '../base/nearest.ts'
import { type Option, option } from './table.ts'

/** The properties of a schema that tables and messages need. */
export interface About {
  readonly name: string
  /** Whether `read.ts` may show a rejected value; never set for text that could be a secret. Default: `false`. */
  readonly quotable?: true
}

export function about(schema: v.GenericSchema): About {
  const { name, quotable } = v.getMetadata(schema)
  return { name: typeof name === 'string' ? name : schema.type, ...(quotable === true && { quotable }) }
}

/** Returns a value as written in a file. This is the inverse of parsing. */
export function show(schema: v.GenericSchema, value: unknown): unknown {
  const { show: inverse } = v.getMetadata(schema)
  return typeof inverse === 'function' && value !== null ? inverse(value) : value
}

export function secretsIn(schema: v.GenericSchema, value: unknown): string[] {
  const { secretOf } = v.getMetadata(schema)
  if (typeof value === 'string') return [value]
  if (!(value instanceof Map) || typeof secretOf !== 'function') return []
  return [...value.values()].map((one) => String(secretOf(one)))
}

/** Converts an environment variable's text to the value that a file would contain. Returns other text unchanged. */
export function fromText(schema: v.GenericSchema, text: string): unknown {
  switch (schema.type) {
    case 'boolean':
      return text === 'true' || (text === 'false' ? false : text)
    case 'number':
      return /^\d{1,15}$/.test(text) ? Number(text) : text
    case 'array':
      return listIn(text)
    case 'union':
      return text.includes(',') ? listIn(text) : text
    case 'map':
      return jsonAsMaps(text)
    default:
      return text
  }
}

function listIn(text: string): unknown {
  // A list may also be written as JSON, because its items need not be strings.
  if (text.trimStart().startsWith('[')) return jsonAsMaps(text)
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

function jsonAsMaps(text: string): unknown {
  const isObject = (part: unknown) => typeof part === 'object' && part !== null && !Array.isArray(part)
  try {
    // `null` is a mistake here, although it stands for an omitted option in a file.
    return JSON.parse(text, (_, part) => (isObject(part) ? new Map(Object.entries(part)) : part)) ?? text
  } catch {
    return text
  }
}

/** Converts a file's map with fixed keys to an object. Only maps whose keys are chosen by the user remain maps. */
export const fixedKeys = v.pipe(
  v.unknown(),
  v.transform((given) => (given instanceof Map ? Object.fromEntries(given) : Array.isArray(given) ? null : given)),
)

/** Accepts only `true` or `false`, because programs interpret `no`, `off` and `0` differently. */
export const boolean = v.pipe(v.boolean('expected true or false'), v.metadata({ name: 'boolean', quotable: true }))

export function integer(minimum: number, maximum: number) {
  const expected = `expected a whole number from ${minimum} to ${maximum}`
  return v.pipe(
    v.number(expected),
    v.integer(expected),
    v.minValue(minimum, expected),
    v.maxValue(maximum, expected),
    v.metadata({ name: `number, ${minimum} to ${maximum}`, quotable: true }),
  )
}

/** If there are more choices, a message names only the most similar choice. */
const MAX_LISTED = 10

/** One of several words. YAML reads a word such as `5` as a number, which is accepted as the word. */
export function choice<const T extends string>(values: readonly T[], name?: string) {
  const numbers = values.map(Number).filter(Number.isFinite)
  return v.pipe(
    v.picklist([...values, ...numbers], ({ input }) => {
      const meant = values.length > MAX_LISTED ? nearest(String(input), values) : undefined
      return `expected one of ${meant === undefined ? values.join(', ') : `${values.length} words such as ${meant}`}`
    }),
    // The cast is safe: `String` turns each number that `picklist` accepts into one of the words.
    v.transform((given) => String(given) as T),
    v.metadata({ name: name ?? values.map((value) => `\`${value}\``).join(', '), quotable: true }),
  )
}

/** Text that matches a pattern. The pattern must have the `u` flag, which patterns in JSON Schema always have. */
export function text({ name, quotable, expected, pattern }: About & { expected: string; pattern: RegExp }) {
  return v.pipe(
    v.string(({ input }) => `expected ${expected}${typeof input === 'number' ? '; put a number in quotes' : ''}`),
    v.regex(pattern, `expected ${expected}`),
    v.metadata({ name, quotable }),
  )
}

/** A line of text, such as a user name or a client id, without control characters. */
export const label = text({
  name: 'text',
  expected: 'one line of text, at most 256 characters',
  pattern: /^[^\p{Cc}\p{Cs}]{1,256}$/u,
})

/** A list. In the environment, items that are strings are separated by commas. */
export function list<S extends v.GenericSchema>(item: S) {
  const { name, ...rest } = about(item)
  return v.pipe(
    v.array(item, 'expected a list such as [one, another]'),
    v.readonly(),
    v.metadata({
      name: `list of ${name}`,
      ...rest,
      show: (items: readonly unknown[]) => items.map((one) => show(item, one)),
    }),
  )
}

export const flag = (fallback: boolean) => option(boolean, { default: fallback })

export const listOf = <S extends v.GenericSchema>(
  item: S,
  example: v.InferInput<S>[],
  fallback: v.InferInput<S>[] = [],
) => ({ doc: (doc: string) => ({ doc, schema: list(item), default: fallback, example }) })

export const secret = <S extends v.GenericSchema>(schema: S, example: string, more: Pick<Option, 'live'> = {}) =>
  option(schema, { ...more, sensitive: true, example })

/** A string, or a list of at least `least` strings (in the environment, separated by commas). The value is a list. */
export function oneOrMore(item: v.GenericSchema<string, string>, expected: string, least = 1) {
  const { name, ...rest } = about(item)
  // If a string is invalid, report what is wrong with the string, not that a list is also possible.
  const why = ({ issues }: v.UnionIssue<v.BaseIssue<unknown>>) =>
    issues?.find(({ kind }) => kind === 'validation')?.message ?? expected
  return v.pipe(
    v.union([item, v.pipe(v.array(item, expected), v.minLength(least, expected))], why),
    v.transform((given: string | string[]): readonly string[] =>
      typeof given === 'string' ? [given] : [...new Set(given)],
    ),
    v.metadata({
      name: `${name}, or a list of them`,
      ...rest,
      show: (list: readonly string[]) => (list.length === 1 ? list[0] : list),
    }),
  )
}

/** A map, which is a JSON object in the environment. `expected` includes an example. */
export function map<S extends v.GenericSchema>(value: S, expected: string, key: v.GenericSchema<string> = v.string()) {
  const { name } = about(value)
  const { secretOf } = v.getMetadata<v.GenericSchema>(value)
  return v.pipe(
    v.map(key, value, `expected ${expected}`),
    v.readonly(),
    v.metadata({
      name: `map to ${name}`,
      secretOf,
      show: (values: ReadonlyMap<string, unknown>) =>
        new Map([...values].map(([one, given]) => [one, show(value, given)])),
    }),
  )
}

/** A number with a unit, converted to the smallest unit. */
function quantity(name: string, units: Units) {
  const parse = (written: string): number => amountIn(units, written)
  const inverse = (value: number): string => {
    const [suffix, factor] = Object.entries(units).find(([, size]) => value >= size && value % size === 0) ?? ['', 1]
    return `${value / factor}${suffix || Object.keys(units).at(-1)}`
  }
  return (minimum: string, maximum: string) => {
    const [min, max] = [parse(minimum), parse(maximum)]
    const expected = `expected a ${name} from ${minimum} to ${maximum}`
    const withUnit = `${expected}, written with its unit (${Object.keys(units).join(', ')})`
    return v.pipe(
      v.string(withUnit),
      v.regex(amountPattern(units, 12), withUnit),
      v.transform(parse),
      v.check((value) => value >= min && value <= max, expected),
      v.metadata({ name: `${name}, ${minimum} to ${maximum}`, quotable: true, show: inverse }),
    )
  }
}

/** A duration such as `500ms`, `10s`, `2m`, `1h` or `7d`; the value is in milliseconds. */
export const duration = quantity('duration', DURATION_UNITS)

/** A size such as `64KiB` or `1MiB`; the value is in bytes. */
export const size = quantity('size', { MiB: 1_048_576, KiB: 1024, B: 1 })
