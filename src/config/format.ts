/** What a value may be: the strict formats from which parsing, mistakes, documentation and JSON Schema follow. */

export type JsonSchema = Readonly<Record<string, unknown>>
export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly expected: string }

export interface ParseContext {
  /** Turns a path as written into the one to open: a file's paths count from the file's folder. */
  readonly resolvePath: (path: string) => string
}

export interface Format<T> {
  /** One or two words for the tables of the README. */
  readonly name: string
  /** What a mistake says was expected, with an example where that helps. */
  readonly expected: string
  /** May a refused value be repeated in a mistake? Never for text that could hold a secret. */
  readonly quotable: boolean
  /** The path of a file that must be readable when the configuration is loaded. */
  readonly opens?: true
  readonly schema: JsonSchema
  /** Reads what a configuration file holds. */
  parse(raw: unknown, context: ParseContext): Parsed<T>
  /** Turns an environment variable's text into what a file would hold; text that does not fit passes unchanged. */
  fromText(text: string): unknown
  /** The value as one would write it in a file: the inverse of `parse`. */
  show(value: T): unknown
}

export const accept = <T>(value: T): Parsed<T> => ({ ok: true, value })
export const refuse = (expected: string): Parsed<never> => ({ ok: false, expected })

const same = <T>(value: T): unknown => value
const QUOTE_HINT = ' (a number must stand in quotes)'

interface TextRules {
  readonly name: string
  readonly expected: string
  readonly pattern: RegExp
}

/** One line of text that matches `pattern`. */
export function text({ name, expected, pattern }: TextRules): Format<string> {
  return {
    name,
    expected,
    quotable: false,
    schema: { type: 'string', minLength: 1 },
    parse: (raw) => {
      if (typeof raw === 'number') return refuse(expected + QUOTE_HINT)
      return typeof raw === 'string' && pattern.test(raw) ? accept(raw) : refuse(expected)
    },
    fromText: same,
    show: same,
  }
}

/** `true` or `false`, and no other spelling: `no`, `off` and `0` mean too many things to too many programs. */
export const boolean: Format<boolean> = {
  name: 'boolean',
  expected: 'true or false',
  quotable: true,
  schema: { type: 'boolean' },
  parse: (raw) => (typeof raw === 'boolean' ? accept(raw) : refuse('true or false')),
  fromText: (value) => (value === 'true' ? true : value === 'false' ? false : value),
  show: same,
}

export function integer(minimum: number, maximum: number): Format<number> {
  const expected = `a whole number from ${minimum} to ${maximum}`
  return {
    name: 'number',
    expected,
    quotable: true,
    schema: { type: 'integer', minimum, maximum },
    parse: (raw) =>
      Number.isInteger(raw) && typeof raw === 'number' && raw >= minimum && raw <= maximum
        ? accept(raw)
        : refuse(expected),
    fromText: (value) => (/^\d{1,15}$/.test(value) ? Number(value) : value),
    show: same,
  }
}

export function choice<const T extends string>(...values: readonly T[]): Format<T> {
  const expected = `one of ${values.join(', ')}`
  return {
    name: values.map((value) => `\`${value}\``).join(', '),
    expected,
    quotable: true,
    schema: { enum: values },
    parse: (raw) => {
      // YAML reads `5` as a number; the choice is still plain.
      const wanted = typeof raw === 'number' ? String(raw) : raw
      const found = values.find((value) => value === wanted)
      return found === undefined ? refuse(expected) : accept(found)
    },
    fromText: same,
    show: same,
  }
}

/** The same format where "nothing" is a value too; an option left out or written empty is `null`. */
export function optional<T>(format: Format<T>): Format<T | null> {
  return {
    ...format,
    schema: { anyOf: [format.schema, { type: 'null' }] },
    parse: (raw, context) => (raw === null ? accept(null) : format.parse(raw, context)),
    show: (value) => (value === null ? null : format.show(value)),
  }
}
