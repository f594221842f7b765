/** Makes control characters visible, so that a hub's text cannot control the terminal that shows it. */

/** Control characters, including DEL and C1, line separators, and characters that change the direction of text. */
const CONTROLS = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu
/** Those of the characters above that JSON does not escape. */
const BEYOND_JSON = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Returns an equivalent line of JSON with only printable characters. */
export const shownJson = (line: string): string => line.replace(BEYOND_JSON, escaped)

export function shownLine(line: string): unknown {
  try {
    return shown(JSON.parse(line))
  } catch {
    // The line is not valid JSON, because masking a secret can break it.
    return shownText(line)
  }
}

function shown(value: unknown, key = ''): unknown {
  if (typeof value === 'string') {
    return key === 'stack' ? value.split('\n').map(shownText).join('\n') : shownText(value)
  }
  if (Array.isArray(value)) return value.map((item) => shown(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [shownText(name), shown(item, name)]))
}

export const shownText = (text: string): string => text.replace(CONTROLS, escaped)
