/** Tracks installs in progress. Records when an update was found, to distinguish updates that have no version. */
import type { Clock } from '../base/clock.ts'
import type { Facts } from '../contract/publications.ts'
import { type FoundUpdate, foundIn, shownTime } from '../contract/update-state.ts'
import type { App } from '../hub/app.ts'

/** Maximum time between the hub's confirmation of an install and its report of the app's new version. */
const SHOWN_WITHIN_MS = 60_000

interface Install {
  /** The previous version; `undefined` if the app was not installed. */
  readonly from: string | null | undefined
  /** Cancels the timer for the result; set once the hub has confirmed the install. */
  readonly cancel?: () => void
}

export class AppUpdates {
  readonly #clock: Clock
  readonly #installs = new Map<string, Install>()
  readonly #found = new Map<string, FoundUpdate>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns facts about an app's updates. Ends a confirmed install if the version has changed or no update is left. */
  of(hub: string, app: App): Pick<Facts['app'], 'installing' | 'foundAt'> {
    const key = keyOf(hub, app.id)
    if (app.version !== this.#installs.get(key)?.from || app.update_available !== true) this.#settle(key)
    return { installing: this.#installs.has(key), foundAt: this.#foundAt(key, app) }
  }

  /** When an update without a version was found; `undefined` if there is none, or the installed version is unknown. */
  #foundAt(key: string, { version, update_available, latest_version }: App): string | undefined {
    const recorded = this.#found.get(key)
    if (update_available === false || (recorded !== undefined && recorded.version !== version)) this.#found.delete(key)
    if (update_available !== true || latest_version !== null || version === null) return undefined
    if (recorded?.version === version) return recorded.foundAt
    const foundAt = shownTime(this.#clock.now())
    this.#found.set(key, { version, foundAt })
    return foundAt
  }

  /** Reads from a retained payload when an earlier run found the update. Returns whether the time was adopted. */
  learn(hub: string, app: string, payload: string): boolean {
    const key = keyOf(hub, app)
    const found = foundIn(payload)
    if (found === undefined) return false
    const recorded = this.#found.get(key)
    if (recorded !== undefined && (recorded.version !== found.version || recorded.foundAt <= found.foundAt))
      return false
    this.#found.set(key, found)
    return true
  }

  /** @param app the app before the install; `undefined` if the app was not installed */
  start(hub: string, id: string, app: App | undefined): void {
    this.end(hub, id)
    this.#installs.set(keyOf(hub, id), { from: app?.version })
  }

  /** Call this when the hub has confirmed the install. Calls `onTimeout` if the hub reports no new version in time. */
  confirm(hub: string, id: string, onTimeout: () => void): void {
    const key = keyOf(hub, id)
    const install = this.#installs.get(key)
    if (install === undefined) return
    const cancel = this.#clock.after(SHOWN_WITHIN_MS, () => {
      this.#installs.delete(key)
      onTimeout()
    })
    this.#installs.set(key, { ...install, cancel })
  }

  end(hub: string, id: string): void {
    this.#end(keyOf(hub, id))
  }

  appRemoved(hub: string, id: string): void {
    this.#found.delete(keyOf(hub, id))
    this.#settle(keyOf(hub, id))
  }

  hubRemoved(hub: string): void {
    for (const key of this.#installs.keys()) if (key.startsWith(keyOf(hub, ''))) this.#end(key)
  }

  /** Ends an install if the hub has confirmed it. An unconfirmed install continues. */
  #settle(key: string): void {
    if (this.#installs.get(key)?.cancel !== undefined) this.#end(key)
  }

  #end(key: string): void {
    this.#installs.get(key)?.cancel?.()
    this.#installs.delete(key)
  }
}

const keyOf = (hub: string, app: string) => `${hub} ${app}`
