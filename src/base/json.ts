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
