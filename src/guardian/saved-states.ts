/** Reads and validates states that an earlier run or another bridge has saved on the guardian's topics. */
import { readJson } from '../base/read-json.ts'
import type { GoneApp } from '../contract/guard.ts'
import { GONE_APPS, GUARD_MEMORY, HISTORY, SAVED_GUARD } from '../contract/schemas.ts'
import type { SavedState } from './restart-state.ts'

/** Maximum number of characters per text. */
const MAX_LENGTH = 64 * 1024
/** Maximum number of characters in total. */
const MAX_TOTAL = 16 * 1024 * 1024

const NAMES = ['guard', 'history', 'guardMemory', 'hubGuardMemory'] as const
export type SavedName = (typeof NAMES)[number]
export const isSavedName = (name: string): name is SavedName => NAMES.some((one) => one === name)

export class SavedStates {
  /** The saved texts by hub and app id. The hub's own texts are stored under an empty app id. */
  readonly #hubs = new Map<string, Map<string, Partial<Record<SavedName, string>>>>()
  /** Apps that had disappeared from their hub when the state was saved, by hub and app. */
  readonly #gone = new Map<string, Map<string, GoneApp>>()
  #length = 0

  /** @param app empty for a topic of the hub */
  add(name: SavedName, hub: string, app: string, text: string): void {
    const apps = this.#hubs.get(hub) ?? new Map<string, Partial<Record<SavedName, string>>>()
    const { [name]: before, ...others } = apps.get(app) ?? {}
    const length = this.#length - (before?.length ?? 0)
    const isStored = text !== '' && text.length <= MAX_LENGTH && length + text.length <= MAX_TOTAL
    this.#length = isStored ? length + text.length : length
    this.#hubs.set(hub, apps.set(app, isStored ? { ...others, [name]: text } : others))
  }

  /** Removes and returns the saved state; `undefined` if there is no saved state. */
  take(hub: string, app: string): SavedState | undefined {
    const gone = this.#goneFrom(hub)
    const before = gone.get(app)
    gone.delete(app)
    const { guard = '', history = '', guardMemory = '' } = this.#take(hub, app)
    if (guard + history + guardMemory === '') return before
    return {
      guard: readJson(SAVED_GUARD, guard) ?? null,
      history: readJson(HISTORY, history) ?? [],
      memory: readJson(GUARD_MEMORY, guardMemory) ?? null,
    }
  }

  /** Removes and returns the states of apps that a hub no longer lists, with the hours since each app disappeared. */
  takeAll(hub: string): readonly { readonly app: string; readonly saved: SavedState; readonly hours: number }[] {
    const gone = [...this.#goneFrom(hub).values()].reverse()
    const hours = new Map(gone.map(({ app, gone_hours }) => [app, gone_hours]))
    // Add all other apps with saved data, because these apps may have disappeared as well.
    for (const app of this.#hubs.get(hub)?.keys() ?? []) hours.set(app, hours.get(app) ?? 0)
    return [...hours].flatMap(([app, hours]) => {
      const saved = this.take(hub, app)
      return saved === undefined ? [] : [{ app, saved, hours }]
    })
  }

  forget(hub: string): void {
    for (const app of [...(this.#hubs.get(hub)?.keys() ?? [])]) this.#take(hub, app)
    this.#gone.delete(hub)
  }

  #goneFrom(hub: string): Map<string, GoneApp> {
    const { hubGuardMemory: text } = this.#take(hub, '')
    const cached = text === undefined ? this.#gone.get(hub) : undefined
    const gone = cached ?? new Map(readJson(GONE_APPS, text ?? '')?.map((one) => [one.app, one]))
    this.#gone.set(hub, gone)
    return gone
  }

  #take(hub: string, app: string): Partial<Record<SavedName, string>> {
    const texts = this.#hubs.get(hub)?.get(app) ?? {}
    this.#hubs.get(hub)?.delete(app)
    for (const text of Object.values(texts)) this.#length -= text.length
    return texts
  }
}
