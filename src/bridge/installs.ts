/** Installs on one hub that the bridge asked for: under way until they fail, or until their apps show what came of them. */
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

  begin(id: string, app: App | undefined): void {
    this.forget(id)
    this.#installs.set(id, { from: app?.version })
  }

  /** The hub has confirmed the install. Calls `onOver` if the app does not show it in time. */
  confirm(id: string, onOver: () => void): void {
    const install = this.#installs.get(id)
    if (install === undefined) return
    const cancel = this.#clock.after(SHOWN_WITHIN_MS, () => {
      this.#installs.delete(id)
      onOver()
    })
    this.#installs.set(id, { ...install, cancel })
  }

  /** Whether an install is under way: a confirmed one until the app has another version, or no offer any more. */
  has(id: string, { version, update_available }: App): boolean {
    const install = this.#installs.get(id)
    if (version !== install?.from || update_available !== true) this.settle(id)
    return this.#installs.has(id)
  }

  /** Forgets an install if the hub has confirmed it; one that the hub has not yet answered goes on. */
  settle(id: string): void {
    if (this.#installs.get(id)?.cancel !== undefined) this.forget(id)
  }

  forget(id: string): void {
    this.#installs.get(id)?.cancel?.()
    this.#installs.delete(id)
  }

  forgetAll(): void {
    for (const id of this.#installs.keys()) this.forget(id)
  }
}
