// The hub's limits for apps. The hub and the SDK's helpers for tests of apps use the same rules.

/** Maximum number of settings of an app or the hub. */
export const MAX_SETTINGS = 1000
export const MAX_SETTING_NAME = 200
/** The maximum size of a setting's value as JSON. */
export const MAX_SETTING_BYTES = 256 * 1024
/** Maximum length of the names of managers, operations and events, in characters. */
export const MAX_NAME = 1000
/** Maximum size of a message. It is sufficient for the largest body that the hub accepts, with JSON escapes. */
export const MAX_LINE_BYTES = 2 * 1024 * 1024

export const isName = (name) => typeof name === 'string' && name.length <= MAX_NAME

/** Returns the refusal of an invalid setting name; `undefined` for a valid name. */
export function refusedName(name) {
  const usable =
    typeof name === 'string' &&
    name !== '' &&
    name.length <= MAX_SETTING_NAME &&
    name.isWellFormed() &&
    !name.includes('\0')
  if (usable) return undefined
  const message = `A setting's name is text of 1 to ${MAX_SETTING_NAME} characters`
  return { status: 400, code: 'invalid_name', message }
}

/** Returns the refusal of a setting; `undefined` if it can be stored. `others` is the number of other settings. */
export function refusedSetting(name, json, others) {
  const refused = refusedName(name)
  if (refused !== undefined) return refused
  if (json === undefined) {
    return { status: 400, code: 'invalid_value', message: "A setting's value must be a JSON value" }
  }
  if (Buffer.byteLength(json) > MAX_SETTING_BYTES) {
    const message = `A setting's value has at most ${MAX_SETTING_BYTES} bytes as JSON`
    return { status: 413, code: 'too_large', message }
  }
  if (others < MAX_SETTINGS) return undefined
  return { status: 413, code: 'too_many', message: `There are ${MAX_SETTINGS} settings already` }
}

/** Returns the refusal of an invalid parameter, or of a missing parameter if `value` is `undefined`. */
export function refusedParameter(name, value) {
  if (value === undefined) return { status: 400, code: 'missing_parameter', message: `Missing Parameter: ${name}` }
  return { status: 400, code: 'invalid_parameter', message: `Invalid Parameter: ${name}` }
}
