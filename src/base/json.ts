/** Plain JSON values, as they come out of `JSON.parse`. */
import { isDeepStrictEqual } from 'node:util'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** Whether a value is an object with keys: no `null`, no array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Far more values than a hub sends. Parsing and processing this many blocks the event loop only briefly. */
export const MAX_VALUES = 200_000

/** Whether a JSON text holds so many values that parsing it would keep everything else waiting. */
export function holdsTooMany(text: string): boolean {
  if (text.length <= MAX_VALUES) return false
  let values = 0
  for (let at = 0; at < text.length && values <= MAX_VALUES; at += 1) {
    const char = text[at]
    if (char === ',' || char === '[' || char === '{') values += 1
    else if (char === '"') at = endOfString(text, at)
  }
  return values > MAX_VALUES
}

/** Where the string ends that begins at `start`: at its second quote, or with the text. */
export function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at
}

/** A text from outside as JSON; `undefined` if it is not JSON, or holds too many values. */
export function parseJson(text: string): Json | undefined {
  try {
    return holdsTooMany(text) ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Whether arrays and objects nest at most `levels` deep; what nests deeper can overflow the stack of a recursion. */
export function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1))
}

/** Whether two values are written as the same JSON, the order of keys aside; JSON knows no -0, and no key without a value. */
export function sameJson(one: Json, other: Json): boolean {
  return isDeepStrictEqual(JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other)))
}
