/**
 * The Jinja templates that Home Assistant reads our topics with. A topic that is cleared reaches it as an empty text,
 * in which nothing is defined: each template must survive that, as what it says then is a line in somebody's log.
 */

const field = (key: string) => `(value_json|default({})).${key}|default(none)`
const onOff = (condition: string) => `'None' if x is none else 'ON' if ${condition} else 'OFF'`

/** Home Assistant refuses longer states. */
const MAX_STATE = 255

/** A value as it is; `None` means unknown. */
export const fieldOf = (key: string): string => `{{ ${field(key)} }}`

/** A text of any length. */
export const textOf = (key: string): string => `{{ (${field(key)}|string)[:${MAX_STATE}] }}`

/** A boolean as `ON`, `OFF` or unknown. */
export const flagOf = (key: string): string => `{% set x = ${field(key)} %}{{ ${onOff('x')} }}`

/** Whether a text is `word`, as `ON`, `OFF` or unknown. */
export const equals = (key: string, word: string): string =>
  `{% set x = ${field(key)} %}{{ ${onOff(`x == '${word}'`)} }}`

/** One of a few words; `otherwise` where there is none. */
export const wordOf = (key: string, otherwise: string): string =>
  `{{ (value_json|default({})).${key}|default('${otherwise}', true) }}`

/** Attributes: name → key of the payload. */
export function attributesOf(keys: Readonly<Record<string, string>>): string {
  const entries = Object.entries(keys).map(([name, key]) => `'${name}': ${field(key)}`)
  return `{{ {${entries.join(', ')}}|to_json }}`
}

/** A text with nothing that could be taken for JSON by whoever receives it. */
export const SENT_AS_TEXT = '{{ value|to_json }}'

/** The same, as an object with one key. */
export const sentUnder = (key: string): string => `{{ {'${key}': value}|to_json }}`

/** The payload itself is the JSON value; one that does not fit the entity counts as unknown. */
export const WHOLE_TEXT = `{{ (value_json if value_json is defined and value_json is string else value)[:${MAX_STATE}] }}`

export function wholeNumber(min: number, max: number): string {
  const fits = `value_json is defined and value_json is number and value_json is not boolean and ${min} <= value_json <= ${max}`
  return `{{ value_json if ${fits} else 'None' }}`
}

export function wholeWord(options: readonly string[]): string {
  // JSON's strings are Jinja's.
  return `{{ value_json if value_json is defined and value_json in ${JSON.stringify(options)} else 'None' }}`
}
