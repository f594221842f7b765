/** Shows control characters instead of sending them: what a hub's text holds must not steer the terminal that shows it. */

/** Controls, DEL and C1 among them; what ends lines or turns their direction. */
const CONTROLS = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu
/** The same without those that JSON escapes anyway. */
const BEYOND_JSON = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

/** A line of JSON that says the same in characters that can be shown. */
export function shownJson(line: string): string {
  return line.replace(BEYOND_JSON, escaped)
}

/** What such a line says, with all of its texts fit to be shown. */
export function shownLine(line: string): unknown {
  try {
    return shown(JSON.parse(line))
  } catch {
    // Masking a secret has made it something else than JSON.
    return shownText(line)
  }
}

/** A stack keeps its lines. */
function shown(value: unknown, key = ''): unknown {
  if (typeof value === 'string') {
    return key === 'stack' ? value.split('\n').map(shownText).join('\n') : shownText(value)
  }
  if (Array.isArray(value)) return value.map((item) => shown(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [shownText(name), shown(item, name)]))
}

/** A text in characters that can be shown, on one line. */
export function shownText(text: string): string {
  return text.replace(CONTROLS, escaped)
}
