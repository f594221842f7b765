import { isDeepStrictEqual } from 'node:util'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** Returns whether a value is an object, but not `null` or an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** valibot silently drops these keys from records. */
export const DROPPED_KEYS = ['__proto__', 'prototype', 'constructor']
export const hasDroppedKey = (record: object): boolean => DROPPED_KEYS.some((key) => Object.hasOwn(record, key))

/** Maximum number of values in a text. Hubs send fewer, and parsing more would block the event loop noticeably. */
export const MAX_VALUES = 200_000

/** Counts the values without parsing the text, because parsing many values would block the event loop. */
export function holdsTooMany(text: string, max = MAX_VALUES): boolean {
  if (text.length <= max) return false
  let values = 0
  for (let at = 0; at < text.length && values <= max; at += 1) {
    const char = text[at]
    if (char === ',' || char === '[' || char === '{') values += 1
    else if (char === '"') at = endOfString(text, at)
  }
  return values > max
}

/** Returns the index of the closing quote of the string that begins at `start`, or `end` if there is none. */
export function endOfString(text: string, start: number, end = text.length): number {
  let at = start + 1
  while (at < end && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at
}

/** Returns `undefined` if the text is not JSON or contains too many values. */
export function parseJson(text: string): Json | undefined {
  try {
    return holdsTooMany(text) ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns whether a value has at most `levels` levels; a deeper value could overflow a recursive function's stack. */
export function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1))
}

/** Returns whether two values are equal, regardless of the order of keys, `undefined` values and the sign of 0. */
export function sameJson(one: Json, other: Json): boolean {
  return isDeepStrictEqual(JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other)))
}
