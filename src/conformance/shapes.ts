/** What kinds of values an answer has, without the values: they may be names and secrets. */
import { isRecord } from '../base/json.ts'

export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/** A name that the hub's makers gave, such as a field's; anything else may be somebody's own. */
export function plainName(name: string): string {
  return /^[A-Za-z_]\w{0,40}$/.test(name) ? name : '(other)'
}

/** Field → the kinds of its values, over many records; sorted. */
export function fieldsOf(records: readonly Record<string, unknown>[]): Record<string, string> {
  const kinds = new Map<string, Set<string>>()
  for (const record of records) {
    for (const [key, value] of Object.entries(record)) {
      const name = plainName(key)
      kinds.set(name, (kinds.get(name) ?? new Set()).add(kindOf(value)))
    }
  }
  const sorted = [...kinds].sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(sorted.map(([name, found]) => [name, [...found].sort().join(' | ')]))
}

/** What an operation should answer: `undefined` if it does, else what is wrong with it. */
export type Shape = (value: unknown, id: string) => string | undefined

export const SHAPES = {
  anything: () => undefined,
  nothing: (value) =>
    value === undefined || value === null || isRecord(value) ? undefined : `answers ${kindOf(value)}`,
  truth: (value) => (value === true ? undefined : `answers ${kindOf(value)} and not true`),
  object: (value) => (isRecord(value) ? undefined : `answers ${kindOf(value)} and no object`),
  collection: (value) => (typeof value === 'object' && value !== null ? undefined : `answers ${kindOf(value)}`),
  scopes: (value) => (isRecord(value) && Array.isArray(value['scopes']) ? undefined : 'has no list of scopes'),
  app: (value, id) => (isRecord(value) && value['id'] === id ? undefined : 'is not the record of the app'),
  apps(value) {
    if (!isRecord(value)) return `answers ${kindOf(value)} and no object`
    const wrong = Object.entries(value).filter(([key, record]) => !isRecord(record) || record['id'] !== key)
    return wrong.length === 0 ? undefined : `${wrong.length} entries are no record of the app that is their key`
  },
} satisfies Record<string, Shape>
