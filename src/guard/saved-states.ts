/** What an earlier run, or another bridge, has left on the broker of the guardian's topics. Nothing of it is trusted. */
import * as v from 'valibot'
import type { GoneApp } from '../contract/guard.ts'
import { GONE_APPS, GUARD, GUARD_MEMORY, HISTORY } from '../contract/schemas.ts'
import type { SavedState } from './restart-state.ts'

/** The longest history there may be. */
const MAX_LENGTH = 64 * 1024
/** Characters, all together. */
const MAX_TOTAL = 16 * 1024 * 1024

export const NAMES = {
  guard: GUARD,
  history: HISTORY,
  guardMemory: GUARD_MEMORY,
  hubGuardMemory: GONE_APPS,
} as const
export type SavedName = keyof typeof NAMES
export const isSavedName = (name: string): name is SavedName => Object.hasOwn(NAMES, name)

export class SavedStates {
  readonly #texts = new Map<string, string>()
  /** Apps that were gone, by hub and app. */
  readonly #gone = new Map<string, Map<string, GoneApp>>()
  #length = 0

  /** @param app empty for a topic of the hub */
  add(name: SavedName, hub: string, app: string, text: string): void {
    const key = keyOf(name, hub, app)
    this.#length -= this.#texts.get(key)?.length ?? 0
    this.#texts.delete(key)
    if (text === '' || text.length > MAX_LENGTH || this.#length + text.length > MAX_TOTAL) return
    this.#texts.set(key, text)
    this.#length += text.length
  }

  /** What was left of an app; it is given once. `undefined`: nothing. */
  take(hub: string, app: string): SavedState | undefined {
    const gone = this.#goneFrom(hub).get(app)
    this.#goneFrom(hub).delete(app)
    return (
      this.#takeOwn(hub, app) ??
      (gone && { state: gone.guard ?? undefined, history: gone.history, memory: gone.memory ?? undefined })
    )
  }

  /** All that was left of a hub, with the hours for which each app has been gone: of what the hub does not list. */
  takeAll(hub: string): readonly { readonly app: string; readonly left: SavedState; readonly hours: number }[] {
    const gone = [...this.#goneFrom(hub).values()].reverse()
    const hours = new Map(gone.map(({ app, gone_hours }) => [app, gone_hours]))
    const prefixes = Object.keys(NAMES).map((name) => `${name} ${hub} `)
    for (const key of this.#texts.keys()) {
      const prefix = prefixes.find((one) => key.startsWith(one))
      const app = prefix === undefined ? undefined : key.slice(prefix.length)
      // An app that may be gone.
      if (app !== undefined && !hours.has(app)) hours.set(app, 0)
    }
    return [...hours].flatMap(([app, hours]) => {
      const left = this.take(hub, app)
      return left === undefined ? [] : [{ app, left, hours }]
    })
  }

  #goneFrom(hub: string): Map<string, GoneApp> {
    const text = this.#take('hubGuardMemory', hub, '')
    const known = text === undefined ? this.#gone.get(hub) : undefined
    if (known !== undefined) return known
    const gone = new Map(read(GONE_APPS, text)?.map((one) => [one.app, one]))
    this.#gone.set(hub, gone)
    return gone
  }

  #takeOwn(hub: string, app: string): SavedState | undefined {
    const state = this.#take('guard', hub, app)
    const history = this.#take('history', hub, app)
    const memory = this.#take('guardMemory', hub, app)
    if (state === undefined && history === undefined && memory === undefined) return undefined
    return { state: read(GUARD, state), history: read(HISTORY, history) ?? [], memory: read(GUARD_MEMORY, memory) }
  }

  #take(name: SavedName, hub: string, app: string): string | undefined {
    const key = keyOf(name, hub, app)
    const text = this.#texts.get(key)
    this.#texts.delete(key)
    this.#length -= text?.length ?? 0
    return text
  }
}

const keyOf = (name: SavedName, hub: string, app: string) => `${name} ${hub} ${app}`

const TIMES: ReadonlySet<string> = new Set(['at', 'since', 'next_restart_at', 'snoozed_until'])

/** Some of what is ISO 8601 is not what Date reads. @throws Error */
function onlyTimes(key: string, value: unknown): unknown {
  if (TIMES.has(key) && typeof value === 'string' && Number.isNaN(Date.parse(value))) throw new Error('no time')
  return value
}

function read<S extends v.GenericSchema>(schema: S, text: string | undefined): v.InferOutput<S> | undefined {
  if (text === undefined) return undefined
  try {
    const result = v.safeParse(schema, JSON.parse(text, onlyTimes))
    return result.success ? result.output : undefined
  } catch {
    return undefined
  }
}
