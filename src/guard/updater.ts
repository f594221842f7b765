/** Carries out updates, one at a time over all hubs, and makes sure that each has come about. */
import { type Clock, sleep } from '../base/clock.ts'
import type { Outcome } from '../contract/answer.ts'
import type { GuardConfig } from './settings.ts'
import { isDue, isUpdated, VERIFY_MS, type Window, windowAt } from './updates.ts'
import type { Ward } from './ward.ts'
import { versions } from './ward.ts'

/** An update that failed is tried again in a later window. */
const RETRY_MS = 20 * 3_600_000
/** Between two looks at whether the hub reports the new version; its events come besides. */
const LOOK_MS = 5_000

export interface UpdaterOptions {
  readonly clock: Clock
  readonly config: () => GuardConfig
  /** Sends a command as the guardian. */
  readonly order: (ward: Ward, command: string, payload: object, isCurrent: () => boolean) => Promise<Outcome>
  /** Apps that may be updated now as far as their hubs are concerned. */
  readonly candidates: () => Iterable<Ward>
  /** Whether a person wants an app left out. */
  readonly isLeftOut: (ward: Ward) => boolean
  /** Makes a backup of the hub. @throws Error that says why there is none */
  readonly backup: (hub: string) => Promise<void>
  /** Whether the guardian may begin something on this hub now; it then belongs to this update. */
  readonly take: (ward: Ward) => boolean
  readonly release: (hub: string) => void
  readonly tell: (ward: Ward, type: 'updated_by_guard' | 'update_failed', details: object) => void
  readonly mayAct: () => boolean
  readonly signal: AbortSignal
}

export class Updater {
  readonly #options: UpdaterOptions
  #busy = false
  #seen: { readonly updates: GuardConfig['updates']; readonly at: number; readonly window: Window } | undefined
  readonly #failed = new WeakMap<Ward, number>()

  constructor(options: UpdaterOptions) {
    this.#options = options
  }

  /** When the window opens or closes next, in epoch milliseconds. */
  get wakeAt(): number {
    return this.#window.until
  }

  /** Asked with each read of each hub, and computed when it may have changed. */
  get #window(): Window {
    const { clock, config } = this.#options
    const now = clock.now()
    const { updates } = config()
    if (this.#seen?.updates !== updates || now >= this.#seen.window.until || now < this.#seen.at) {
      this.#seen = { updates, at: now, window: windowAt(config(), now) }
    }
    return this.#seen.window
  }

  /** Begins the next update, if one is due. */
  consider(): void {
    const { clock, config, candidates, isLeftOut, take, mayAct } = this.#options
    const now = clock.now()
    if (this.#busy || !mayAct() || !this.#window.open) return
    const { hold_days } = config().updates
    for (const ward of candidates()) {
      const { app, offered } = ward
      const offeredSince = offered === null ? undefined : Date.parse(offered.since)
      const failedUntil = this.#failed.get(ward) ?? 0
      if (!isDue({ app, leftOut: isLeftOut(ward), offeredSince, failedUntil }, hold_days, now) || !take(ward)) continue
      this.#busy = true
      void this.#update(ward).finally(() => {
        this.#busy = false
        this.#options.release(ward.hub)
        this.consider()
      })
      return
    }
  }

  async #update(ward: Ward): Promise<void> {
    const { clock, order, tell, config, mayAct } = this.#options
    const { version: from, latest_version: to } = ward.app
    const failed = (message: string) => {
      this.#failed.set(ward, clock.now() + RETRY_MS)
      tell(ward, 'update_failed', { message, ...versions(from, to) })
    }
    if (config().updates.backup) {
      const why = await this.#backUp(ward.hub)
      if (why !== undefined) return failed(`No backup, so no update: ${why}`)
    }
    const outcome = await order(ward, 'install', {}, () => mayAct() && ward.app.version === from)
    if (!outcome.ok && outcome.error.code !== 'outcome_unknown') return failed(outcome.error.message)
    const deadline = clock.now() + VERIFY_MS
    while (!isUpdated(ward.app, from, to) && clock.now() < deadline && !this.#options.signal.aborted) {
      await sleep(clock, LOOK_MS, this.#options.signal)
    }
    if (this.#options.signal.aborted) return
    if (isUpdated(ward.app, from, to)) tell(ward, 'updated_by_guard', versions(from, ward.app.version))
    else failed(`The hub took the install and still reports version ${ward.app.version ?? 'unknown'}.`)
  }

  async #backUp(hub: string): Promise<string | undefined> {
    try {
      await this.#options.backup(hub)
      return undefined
    } catch (error) {
      return error instanceof Error ? error.message : 'the hub does not say why.'
    }
  }
}
