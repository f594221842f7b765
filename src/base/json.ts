/** Plain JSON values, as they come out of `JSON.parse`. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** Whether a value is an object with keys: no `null`, no array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether arrays and objects nest at most `levels` deep; what nests deeper can overflow the stack of a recursion. */
export function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1))
}

/** Whether two values are written as the same JSON, the order of keys aside; JSON knows no -0, and no key without a value. */
export function sameJson(one: Json, other: Json): boolean {
  return equals(JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other)))
}

function equals(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((item, i) => equals(item, other[i]))
  }
  if (!isRecord(one) || !isRecord(other)) return false
  const keys = Object.keys(one)
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && equals(one[key], other[key]))
  )
}
