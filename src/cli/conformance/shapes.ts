/** What kinds of values an answer has, without the values: they may be names and secrets. */
import { isRecord, type Json } from '../../base/json.ts'
import { saysNo } from '../../hub/written.ts'

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

/** Whether an app runs: what its state says, and without one, whether it is ready. `null`: neither, or on the way. */
export function runs({ state, ready }: Record<string, unknown>): boolean | null {
  if (typeof state !== 'string') return typeof ready === 'boolean' ? ready : null
  return state === 'stopping' || state === 'starting' ? null : state === 'running'
}

/** What an operation should answer: `undefined` if it does, else what is wrong with it. */
export type Shape = (value: Json | undefined, id: string) => string | undefined

export const SHAPES = {
  anything: () => undefined,
  /** Whatever a hub says besides that it is done, unless that is a no. */
  nothing: (value) => (saysNo(value) ? 'calls a no a success' : undefined),
  greeting: (value) => (value === false ? 'answers false, as if it were another hub' : undefined),
  object: (value) => (isRecord(value) ? undefined : `answers ${kindOf(value)} and no object`),
  collection: (value) => (typeof value === 'object' && value !== null ? undefined : `answers ${kindOf(value)}`),
  scopes: (value) =>
    isRecord(value) && Array.isArray(value['intersectedScopes'] ?? value['scopes'])
      ? undefined
      : 'has no list of scopes',
  app: (value, id) => (isRecord(value) && value['id'] === id ? undefined : 'is not the record of the app'),
  apps(value) {
    if (!isRecord(value)) return `answers ${kindOf(value)} and no object`
    const wrong = Object.entries(value).filter(([key, record]) => !isRecord(record) || record['id'] !== key)
    return wrong.length === 0 ? undefined : `${wrong.length} entries are no record of the app that is their key`
  },
} satisfies Record<string, Shape>
