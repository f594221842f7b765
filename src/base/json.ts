/** Plain JSON values, as they come out of `JSON.parse`. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** Whether a value is an object with keys: no `null`, no array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
