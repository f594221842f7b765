/** Installs that the bridge asked for: under way until they fail, or until their apps show what came of them. */
import type { Clock } from '../base/clock.ts'
import type { App } from '../hub/app.ts'

/** How long an app may take to show another version after the hub has confirmed its install. */
const SHOWN_WITHIN_MS = 60_000

interface Install {
  /** The version before; `undefined` for an app that was not there. */
  readonly from: string | null | undefined
  /** Set once the hub has confirmed the install. */
  readonly cancel?: () => void
}

export class Installs {
  readonly #clock: Clock
  readonly #installs = new Map<string, Install>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  begin(key: string, app: App | undefined): void {
    this.forget(key)
    this.#installs.set(key, { from: app?.version })
  }

  /** The hub has confirmed the install. Calls `onOver` if the app does not show it in time. */
  confirm(key: string, onOver: () => void): void {
    const install = this.#installs.get(key)
    if (install === undefined) return
    const cancel = this.#clock.after(SHOWN_WITHIN_MS, () => {
      this.#installs.delete(key)
      onOver()
    })
    this.#installs.set(key, { ...install, cancel })
  }

  /** Whether an install is under way: a confirmed one until the app has another version, or no offer any more. */
  has(key: string, { version, update_available }: App): boolean {
    const install = this.#installs.get(key)
    if (version !== install?.from || update_available !== true) this.settle(key)
    return this.#installs.has(key)
  }

  /** Forgets an install if the hub has confirmed it; one that the hub has not yet answered goes on. */
  settle(key: string): void {
    if (this.#installs.get(key)?.cancel !== undefined) this.forget(key)
  }

  forget(key: string): void {
    this.#installs.get(key)?.cancel?.()
    this.#installs.delete(key)
  }

  /** Forgets the installs of all apps whose keys begin so. */
  forgetAll(prefix = ''): void {
    for (const key of this.#installs.keys()) if (key.startsWith(prefix)) this.forget(key)
  }
}
