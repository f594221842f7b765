/**
 * The Jinja templates for the bridge's topics. Home Assistant receives a cleared topic as an empty string, for which
 * `value_json` is undefined. Each template must handle that, because an error would add a line to the user's log.
 */

/** A template, and the payload fields that it reads. The topic's payload must have all of these fields. */
export interface Template<F extends string> {
  readonly jinja: string
  readonly fields: readonly F[]
}

const field = (key: string) => `(value_json|d({})).${key}|d(none)`
const reading = <F extends string>(key: F, jinja: string): Template<F> => ({ fields: [key], jinja })

/** Maximum length of a state. Home Assistant rejects longer states. */
const MAX_STATE = 255

/** Renders a field. Home Assistant shows `None` as unknown. */
export const fieldOf = <F extends string>(key: F) => reading(key, `{{ ${field(key)} }}`)

export const mebibytesOf = <F extends string>(key: F) =>
  reading(key, `{% set x=${field(key)} %}{{ 'None' if x is none else (x/1048576)|round(1) }}`)

export const textOf = <F extends string>(key: F) => reading(key, `{{ (${field(key)}|string)[:${MAX_STATE}] }}`)

/** Renders whether the field's value `x` fulfils a condition, as `ON`, `OFF` or unknown. */
export const onOff = <F extends string>(key: F, condition: string) =>
  reading(key, `{% set x=${field(key)} %}{{ 'None' if x is none else 'ON' if ${condition} else 'OFF' }}`)

export const flagOf = <F extends string>(key: F) => onOff(key, 'x')

/** Renders the reason of the last crash: `none` without a crash, `other` for `unknown` (reserved by Home Assistant). */
export const crashReasonOf = <F extends string>(key: F) =>
  reading(
    key,
    `{{ 'None' if value_json is undefined else ((value_json.${key}|d(none) or {}).reason|d('none'))|replace('unknown','other') }}`,
  )

/** Renders the word in a field; `otherwise` if the field is missing or empty. */
export const wordOf = <F extends string>(key: F, otherwise: string) =>
  reading(key, `{{ (value_json|d({})).${key}|d('${otherwise}', true) }}`)

/** Renders attributes. @param keys attribute → key of the payload */
export function attributesOf<const F extends string>(keys: Readonly<Record<string, F>>): Template<F> {
  return { fields: Object.values(keys), jinja: `{{ {${entriesOf(keys)}}|to_json }}` }
}

const entriesOf = (keys: Readonly<Record<string, string>>) =>
  Object.entries(keys)
    .map(([name, key]) => `'${name}': ${field(key)}`)
    .join(', ')

/** Splits a message, which may include a stack trace, into its first line, for notifications, and the other lines. */
const linesOf = (text: string) => `{% set x=(${text}|trim).splitlines() %}`
const LINES = `message=x|first|d(none), stack=x[1:]|join('\\n') or none`

/** Renders the attributes `message` and `stack` of a message, and those in `keys` (name → key of the payload). */
export function messageOf<const F extends string>(message: F, keys: Readonly<Record<string, F>>): Template<F> {
  return {
    fields: [message, ...Object.values(keys)],
    jinja: `${linesOf(`(value_json|d({})).${message}|d('', true)`)}{{ dict({${entriesOf(keys)}}, ${LINES})|to_json }}`,
  }
}

/** Renders the payload with only the first line of its message in `message`, and the other lines in `stack`. */
export const withMessage = <F extends string>(message: F) =>
  reading(
    message,
    `{% set m=${field(message)} %}{% if m %}${linesOf('m')}{{ dict(value_json, ${LINES})|to_json }}{% else %}{{ value }}{% endif %}`,
  )

/** Quotes a string, so that the receiver does not mistake it for JSON. */
export const SENT_AS_TEXT = '{{ value|to_json }}'

/** Renders a payload that has no fields. */
const whole = (jinja: string): Template<never> => ({ fields: [], jinja })

/** Reads a payload that is a JSON boolean. Home Assistant shows any other value as unknown. */
export const WHOLE_FLAG = whole(`{{ value if value_json is boolean else 'None' }}`)

/**
 * Renders any value except a string as empty, because a text entity cannot be unknown. A long string also becomes
 * empty, because users could save a truncated string.
 */
export const WHOLE_TEXT = whole(
  `{{ value_json if value_json is string and value_json|length <= ${MAX_STATE} else '' }}`,
)

export function wholeNumber(min: number, max: number): Template<never> {
  const fits = `value_json is number and value_json is not boolean and ${min} <= value_json <= ${max}`
  return whole(`{{ value_json if ${fits} else 'None' }}`)
}

export function wholeWord(options: readonly string[]): Template<never> {
  // Home Assistant trims a rendered value, and ignores an empty one.
  const shown = options.filter((option) => option !== '' && option === option.trim())
  // JSON strings are also valid in Jinja.
  return whole(`{{ value_json if value_json in ${JSON.stringify(shown)} else 'None' }}`)
}
