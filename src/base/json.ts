/** Plain JSON values, as `JSON.parse` returns them. */
import { isDeepStrictEqual } from 'node:util'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** Returns whether a value is an object with keys: neither `null` nor an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** valibot silently drops these keys from records. */
export const LEFT_OUT = ['__proto__', 'prototype', 'constructor']
export const hasLeftOut = (record: object): boolean => LEFT_OUT.some((key) => Object.hasOwn(record, key))

/** Far more values than a hub sends. Parsing and processing this many blocks the event loop only briefly. */
export const MAX_VALUES = 200_000

/** Returns whether a JSON text contains so many values that parsing it would block the event loop. */
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

/** Returns the index of the closing quote of the string that begins at `start`, or `end` if there is none. */
export function endOfString(text: string, start: number, end = text.length): number {
  let at = start + 1
  while (at < end && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at
}

/** Parses an untrusted text. Returns `undefined` if it is not JSON or contains too many values. */
export function parseJson(text: string): Json | undefined {
  try {
    return holdsTooMany(text) ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns whether a value nests at most `levels` deep. A deeper one can overflow the stack of a recursive function. */
export function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1))
}

/** Returns whether two values are the same JSON, ignoring the order of keys, `undefined` values and the sign of 0. */
export function sameJson(one: Json, other: Json): boolean {
  return isDeepStrictEqual(JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other)))
}
