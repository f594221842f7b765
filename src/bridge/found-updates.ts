/** When updates were found whose version the hub does not tell, so that one differs from the one before. */
import { type FoundUpdate, foundIn, shownTime } from '../contract/publications.ts'
import type { App } from '../hub/app.ts'

export class FoundUpdates {
  readonly #found = new Map<string, FoundUpdate>()

  /** Takes in what the broker holds of an app's update: it may have been found by an earlier run. Returns whether. */
  learn(hub: string, app: string, payload: string): boolean {
    const key = keyOf(hub, app)
    const found = foundIn(payload)
    if (found === undefined) return false
    const known = this.#found.get(key)
    if (known !== undefined && (known.version !== found.version || known.foundAt <= found.foundAt)) return false
    this.#found.set(key, found)
    return true
  }

  /** When the update of an app was found, if that is to stand for its version. */
  of(hub: string, { id, version, update_available, latest_version }: App, now: number): string | undefined {
    const key = keyOf(hub, id)
    const known = this.#found.get(key)
    if (update_available === false || (known !== undefined && known.version !== version)) this.#found.delete(key)
    if (update_available !== true || latest_version !== null || version === null) return undefined
    if (known?.version === version) return known.foundAt
    const foundAt = shownTime(now)
    this.#found.set(key, { version, foundAt })
    return foundAt
  }

  forget(hub: string, app: string): void {
    this.#found.delete(keyOf(hub, app))
  }
}

const keyOf = (hub: string, app: string) => `${hub} ${app}`
