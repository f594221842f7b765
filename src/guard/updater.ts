/** Carries out updates, one at a time over all hubs, and makes sure that each has come about. */
import type { Logger } from 'pino'
import { type Clock, sleep } from '../base/clock.ts'
import type { Outcome } from '../contract/answer.ts'
import type { GuardConfig } from './settings.ts'
import { type Candidate, VERIFY_MS, verdictOn, type Window, windowAt } from './updates.ts'
import type { WatchedApp } from './watched-app.ts'
import { versions } from './watched-app.ts'

/** An update that failed is tried again in a later window. */
const RETRY_MS = 20 * 3_600_000
/** Between two looks at whether the hub reports the new version; its events come besides. */
const LOOK_MS = 5_000
/** How long to look for what came where the hub took the install, and not the version that was named. */
const OTHER_MS = 60_000

export interface UpdaterOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly config: () => GuardConfig
  /** Sends a command as the guardian. */
  readonly order: (watched: WatchedApp, command: string, payload: object, isCurrent: () => boolean) => Promise<Outcome>
  /** Apps that may be updated now as far as their hubs are concerned. */
  readonly candidates: () => Iterable<WatchedApp>
  /** Whether a person wants an app left out. */
  readonly isLeftOut: (watched: WatchedApp) => boolean
  /** Whether a hub installs a version that is named, as far as is known. */
  readonly takesVersion: (hub: string) => boolean
  /** Makes a backup of the hub. @throws Error that says why there is none */
  readonly backup: (hub: string) => Promise<void>
  /** Whether the guardian may begin something on this hub now; it then belongs to this update. */
  readonly take: (watched: WatchedApp) => boolean
  readonly release: (hub: string) => void
  readonly tell: (watched: WatchedApp, type: 'updated_by_guard' | 'update_failed', details: object) => void
  readonly mayAct: () => boolean
  readonly signal: AbortSignal
}

export class Updater {
  readonly #options: UpdaterOptions
  #busy = false
  #seen: { readonly updates: GuardConfig['updates']; readonly at: number; readonly window: Window } | undefined
  /** When an update of them failed, in `clock.elapsed()` milliseconds. */
  readonly #failed = new WeakMap<WatchedApp, number>()
  /** Hubs that have installed another version than the one that was named. */
  readonly #headstrong = new Set<string>()
  /** Apps that the log has named as left out. */
  readonly #unheld = new WeakSet<WatchedApp>()

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
    const { config, candidates, take, mayAct } = this.#options
    if (this.#busy || !mayAct() || !this.#window.open) return
    const { hold_days } = config().updates
    for (const watched of candidates()) {
      const verdict = verdictOn(this.#candidate(watched), hold_days)
      if (verdict === 'unheld') this.#leaveOut(watched)
      if (verdict !== 'due' || !take(watched)) continue
      this.#busy = true
      void this.#update(watched).finally(() => {
        this.#busy = false
        this.#options.release(watched.hub)
        this.consider()
      })
      return
    }
  }

  #candidate(watched: WatchedApp): Candidate {
    const { clock, isLeftOut, takesVersion } = this.#options
    const { app, offered, hub } = watched
    const failedAt = this.#failed.get(watched) ?? Number.NEGATIVE_INFINITY
    return {
      app,
      offered,
      leftOut: isLeftOut(watched),
      takesVersion: takesVersion(hub) && !this.#headstrong.has(hub),
      failed: clock.elapsed() - failedAt < RETRY_MS,
    }
  }

  #leaveOut(watched: WatchedApp): void {
    if (this.#unheld.has(watched)) return
    this.#unheld.add(watched)
    const why = 'the hub does not say which version it would install, or does not take one'
    this.#options.log.warn(
      { hub: watched.hub, app: watched.id },
      `not updated in the window: updates.hold_days cannot hold as ${why}; install it by hand`,
    )
  }

  async #update(watched: WatchedApp): Promise<void> {
    const { clock, order, tell, config, mayAct, log } = this.#options
    const { version: from, latest_version: to } = watched.app
    // The newest may be newer than what was held.
    const named = config().updates.hold_days > 0 ? to : null
    const failed = (message: string) => {
      this.#failed.set(watched, clock.elapsed())
      tell(watched, 'update_failed', { message, ...versions(from, to) })
    }
    if (config().updates.backup) {
      const why = await this.#backUp(watched.hub)
      if (why !== undefined) return failed(`No backup, so no update: ${why}`)
    }
    const payload = named === null ? {} : { version: named }
    const outcome = await order(watched, 'install', payload, () => mayAct() && watched.app.version === from)
    const code = outcome.ok ? 'outcome_unknown' : outcome.error.code
    const patience = code === 'outcome_unknown' ? VERIFY_MS : code === 'hub_failed' && named !== null ? OTHER_MS : 0
    const deadline = clock.elapsed() + patience
    const isUpdated = () => watched.app.version !== null && watched.app.version !== from
    while (!isUpdated() && clock.elapsed() < deadline && !this.#options.signal.aborted) {
      await sleep(clock, LOOK_MS, this.#options.signal)
    }
    if (this.#options.signal.aborted) return
    if (!isUpdated()) {
      const still = `The hub took the install and still reports version ${watched.app.version ?? 'unknown'}.`
      return failed(outcome.ok || patience === VERIFY_MS ? still : outcome.error.message)
    }
    const { version } = watched.app
    tell(watched, 'updated_by_guard', versions(from, version))
    if (named === null || version === named) return
    this.#headstrong.add(watched.hub)
    log.warn(
      { hub: watched.hub, app: watched.id, wanted: named, version },
      'the hub installed another version than the one held',
    )
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
