/** What a schema found wrong with a value, and where in the value. */
import type * as v from 'valibot'
import type { Keys } from './file.ts'
import type { Mistakes } from './mistakes.ts'

export interface Problem {
  /** From the value to what is wrong in it; empty for the value itself. */
  readonly keys: Keys
  /** What was expected. */
  readonly message: string
  /** The value there; `undefined` if it is missing. */
  readonly value: unknown
}

/** A value with several permitted forms has the problems of the closest form. */
export function problemsOf(issues: readonly v.BaseIssue<unknown>[], value: unknown, at: Keys = []): Problem[] {
  return issues.flatMap(({ path = [], issues: ofForms = [], message }) => {
    const keys = [...at, ...path.map(({ key }) => (typeof key === 'number' ? key : String(key)))]
    const inner = path.length === 0 ? value : path.at(-1)?.value
    const nearest = ofForms.filter((issue) => issue.path !== undefined)
    return nearest.length === 0 ? [{ keys, message, value: inner }] : problemsOf(nearest, inner, keys)
  })
}

/** `["com.athom.hue"].brightness item 2`; a name that may not be repeated is `[…]`. */
export function describeKeys(keys: Keys, mistakes: Mistakes): string {
  return keys
    .map((key) => {
      if (typeof key === 'number') return ` item ${key + 1}`
      const name = mistakes.name(key)
      if (name === undefined) return '[…]'
      return /^\w+$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`
    })
    .join('')
}
