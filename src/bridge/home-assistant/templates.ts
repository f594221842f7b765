/**
 * The Jinja templates that Home Assistant reads our topics with. A topic that is cleared reaches it as an empty text,
 * in which nothing is defined: each template must survive that, as what it says then is a line in somebody's log.
 */

/** A template, and the fields of the payload that it reads: those of the topic must have them all. */
export interface Template<F extends string> {
  readonly jinja: string
  readonly fields: readonly F[]
}

const field = (key: string) => `(value_json|default({})).${key}|default(none)`
const onOff = (condition: string) => `'None' if x is none else 'ON' if ${condition} else 'OFF'`

/** Home Assistant refuses longer states. */
const MAX_STATE = 255

/** A value as it is; `None` means unknown. */
export const fieldOf = <F extends string>(key: F): Template<F> => ({ fields: [key], jinja: `{{ ${field(key)} }}` })

/** A number of bytes in MiB, with the decimals that are shown. */
export const mebibytesOf = <F extends string>(key: F): Template<F> => ({
  fields: [key],
  jinja: `{% set x = ${field(key)} %}{{ 'None' if x is none else (x / 1048576)|round(1) }}`,
})

/** A text of any length. */
export const textOf = <F extends string>(key: F): Template<F> => ({
  fields: [key],
  jinja: `{{ (${field(key)}|string)[:${MAX_STATE}] }}`,
})

/** A boolean as `ON`, `OFF` or unknown. */
export const flagOf = <F extends string>(key: F): Template<F> => ({
  fields: [key],
  jinja: `{% set x = ${field(key)} %}{{ ${onOff('x')} }}`,
})

/** Whether a text is `word`, as `ON`, `OFF` or unknown. */
export const equals = <F extends string>(key: F, word: string): Template<F> => ({
  fields: [key],
  jinja: `{% set x = ${field(key)} %}{{ ${onOff(`x == '${word}'`)} }}`,
})

/** Whether a text is another one than `word`, as `ON`, `OFF` or unknown. */
export const differs = <F extends string>(key: F, word: string): Template<F> => ({
  fields: [key],
  jinja: `{% set x = ${field(key)} %}{{ ${onOff(`x != '${word}'`)} }}`,
})

/** Whether a list has anything in it, as `ON`, `OFF` or unknown. */
export const anyIn = <F extends string>(key: F): Template<F> => ({
  fields: [key],
  jinja: `{% set x = ${field(key)} %}{{ ${onOff('x|length > 0')} }}`,
})

/** A value of the object under a key; unknown where there is none. */
export const within = <F extends string>(key: F, inner: string): Template<F> => ({
  fields: [key],
  jinja: `{{ (${field(key)} or {}).${inner}|default(none) }}`,
})

/** One of a few words; `otherwise` where there is none. */
export const wordOf = <F extends string>(key: F, otherwise: string): Template<F> => ({
  fields: [key],
  jinja: `{{ (value_json|default({})).${key}|default('${otherwise}', true) }}`,
})

/** Attributes: name → key of the payload. */
export function attributesOf<const F extends string>(keys: Readonly<Record<string, F>>): Template<F> {
  const entries = Object.entries(keys).map(([name, key]) => `'${name}': ${field(key)}`)
  return { fields: Object.values(keys), jinja: `{{ {${entries.join(', ')}}|to_json }}` }
}

/** A text with nothing that could be taken for JSON by whoever receives it. */
export const SENT_AS_TEXT = '{{ value|to_json }}'

/** The same, as an object with one key. */
export const sentUnder = (key: string): string => `{{ {'${key}': value}|to_json }}`

/** The payload itself is the JSON value; one that does not fit the entity counts as unknown. */
export const WHOLE_TEXT: Template<never> = {
  fields: [],
  jinja: `{{ (value_json if value_json is defined and value_json is string else value)[:${MAX_STATE}] }}`,
}

export function wholeNumber(min: number, max: number): Template<never> {
  const fits = `value_json is defined and value_json is number and value_json is not boolean and ${min} <= value_json <= ${max}`
  return { fields: [], jinja: `{{ value_json if ${fits} else 'None' }}` }
}

export function wholeWord(options: readonly string[]): Template<never> {
  // JSON's strings are Jinja's.
  const fits = `value_json is defined and value_json in ${JSON.stringify(options)}`
  return { fields: [], jinja: `{{ value_json if ${fits} else 'None' }}` }
}
