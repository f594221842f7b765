/** What an earlier run, or another bridge, has left on the broker of the guardian's topics. Nothing of it is trusted. */
import * as v from 'valibot'
import { GUARD, GUARD_MEMORY, HISTORY } from '../contract/schemas.ts'
import type { Left } from './watch.ts'

/** The longest history there may be. */
const MAX_LENGTH = 64 * 1024
/** Characters, all together. */
const MAX_TOTAL = 16 * 1024 * 1024

export const NAMES = { guard: GUARD, history: HISTORY, guardMemory: GUARD_MEMORY } as const
export type LeftName = keyof typeof NAMES
export const isLeftName = (name: string): name is LeftName => Object.hasOwn(NAMES, name)

export class LeftOver {
  readonly #texts = new Map<string, string>()
  #length = 0

  add(name: LeftName, hub: string, app: string, text: string): void {
    const key = keyOf(name, hub, app)
    this.#length -= this.#texts.get(key)?.length ?? 0
    this.#texts.delete(key)
    if (text.length > MAX_LENGTH || this.#length + text.length > MAX_TOTAL) return
    this.#texts.set(key, text)
    this.#length += text.length
  }

  /** What was left of an app; it is given once. `undefined`: nothing. */
  take(hub: string, app: string): Left | undefined {
    const state = this.#take('guard', hub, app)
    const history = this.#take('history', hub, app)
    const memory = this.#take('guardMemory', hub, app)
    if (state === undefined && history === undefined && memory === undefined) return undefined
    return { state: read(GUARD, state), history: read(HISTORY, history) ?? [], memory: read(GUARD_MEMORY, memory) }
  }

  /** Forgets what was left of a hub: its apps are known, and have taken what is theirs. */
  drop(hub: string): void {
    for (const [key, text] of this.#texts) {
      if (key.split(' ')[1] !== hub) continue
      this.#texts.delete(key)
      this.#length -= text.length
    }
  }

  #take(name: LeftName, hub: string, app: string): string | undefined {
    const key = keyOf(name, hub, app)
    const text = this.#texts.get(key)
    this.#texts.delete(key)
    this.#length -= text?.length ?? 0
    return text
  }
}

const keyOf = (name: LeftName, hub: string, app: string) => `${name} ${hub} ${app}`

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
