/** The session with a hub: connects, polls, keeps the realtime channel up, and starts over after every failure. */

import type { Logger } from 'pino'
import { Backoff } from '../base/backoff.ts'
import { type Clock, sleep } from '../base/clock.ts'
import { Limiter, type Slot } from '../base/limiter.ts'
import type { AppManager } from './app-manager.ts'
import type { HubClient } from './client.ts'
import { asHubError, type HubError, type HubErrorCode, retryDelay } from './errors.ts'
import { explain } from './explain.ts'
import { type Greeting, greet } from './greeting.ts'
import type { HubOptions } from './hub.ts'
import type { OperationName } from './operations.ts'
import { keepRealtime, openRealtime } from './realtime.ts'
import type { StatusTracker } from './status.ts'

const BACKOFF = { min: 1000, max: 30_000 }
const SECOND_TRY_MS = 1000
/** Pauses while a hub answers 429 without `Retry-After`; doubled each time. */
const LIMITED_MS = { min: 1000, max: 30_000 }
/** If a hub answers only 429, its state stays unknown for this long after the start. Then the hub counts as offline. */
const UNKNOWN_MS = 10_000
/** Minimum time between early reads of the list because of an unknown app or a lost realtime channel. */
const EARLY_READ_MS = { unknownApp: 10_000, loss: 30_000 }
const REALTIME_SETTLE_MS = 500

export interface HubDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly random: () => number
  /** Limits how many hubs connect concurrently; default: a limiter for this hub only. */
  readonly gate?: Limiter
}

/**
 * Limits how many hubs connect concurrently. A thousand logins would delay each other until all time out. After a
 * second, a hub that has not responded gives up its slot, so that unreachable hubs do not block the others.
 * @param isBusy whether many messages about other hubs are still to be published
 */
export const connectGate = (clock: Clock, isBusy?: () => boolean) =>
  new Limiter({ clock, slots: 48, slotTimeoutMs: 1000, isBusy })

export class Session {
  readonly #options: HubOptions
  readonly #dependencies: HubDependencies
  readonly #client: HubClient
  readonly #apps: AppManager
  readonly #status: StatusTracker
  readonly #gate: Limiter
  readonly #stop = new AbortController()
  isStarting = true
  /** Whether to read the identity and permissions again before the list. */
  #stale = true
  /** Whether the hub has not reported the permissions yet, although it may do so later. */
  #isPartial = false
  #greeted: Greeting | undefined
  #greeting: Promise<void> | undefined
  #waking = new AbortController()
  /** Aborted when the realtime channel comes up or goes down, which changes the interval until the next read. */
  #turning = new AbortController()
  /** Aborted when another hub answers, because the realtime session with the previous hub is no longer valid. */
  #sessions = new AbortController()
  /** The fraction of the interval to wait until the next read. */
  #fraction = 1
  /** When the last read began, in `clock.elapsed()` milliseconds. */
  #readAt = Number.NEGATIVE_INFINITY
  #earlyReadAt = { unknownApp: Number.NEGATIVE_INFINITY, loss: Number.NEGATIVE_INFINITY }
  #cancelUnknownApp: (() => void) | undefined
  /** Set by `start`; resolves after `stop`, when all tasks have ended. */
  ended: Promise<void> | undefined

  constructor(
    options: HubOptions,
    dependencies: HubDependencies,
    client: HubClient,
    apps: AppManager,
    status: StatusTracker,
  ) {
    this.#options = options
    this.#dependencies = dependencies
    this.#gate = dependencies.gate ?? connectGate(dependencies.clock)
    this.#client = client
    this.#apps = apps
    this.#status = status
    apps.ended.addEventListener('abort', () => this.#cancelUnknownApp?.())
  }

  start(): void {
    this.ended ??= this.#run()
  }

  stop(): void {
    this.#stop.abort()
  }

  /** Ends the pause before the next read. */
  wake(): void {
    this.#waking.abort()
  }

  /** Reads the identity, the permissions and the list immediately, because they may have changed. */
  startOver(): void {
    this.#stale = true
    this.wake()
  }

  /** Reads the identity, the permissions and the list. @throws HubError, e.g. if the key may not read the list */
  async refresh(): Promise<void> {
    this.#stale = true
    const refused = await this.#read().catch((error: unknown) => {
      // Only polls decide whether the hub is offline.
      if (asHubError(error).code !== 'rate_limited') this.wake()
      throw error
    })
    if (refused !== undefined) throw refused
  }

  lacks(name: OperationName): void {
    if (this.#greeted === undefined) return
    const missing = new Set([...this.#greeted.missing, name])
    this.#greeted = { ...this.#greeted, missing }
    this.#status.update({ missing })
  }

  async #run(): Promise<void> {
    const { clock, random } = this.#dependencies
    const backoff = new Backoff({ ...BACKOFF, random })
    const unknownUntil = clock.elapsed() + UNKNOWN_MS
    while (!this.#stop.signal.aborted) {
      try {
        await this.#gate.run({ signal: this.#stop.signal }, (slot) => this.#read(slot))
        backoff.reset()
        await this.#stayConnected()
      } catch (error) {
        const failure = asHubError(error)
        this.isStarting = false
        // After a 429, send no more requests than necessary: the hub may permit only a few at a time.
        this.#stale ||= failure.code !== 'rate_limited'
        const refused = failure.code === 'unauthorized'
        // A hub that limits requests is not offline (see `#poll`). After a takeover, it may limit the first
        // requests, because the previous bridge has just sent requests.
        const { online, reason } = this.#status.current
        const mayBeOnline = online || (reason === 'connecting' && clock.elapsed() < unknownUntil)
        if (failure.code === 'rate_limited' && mayBeOnline) {
          await this.#pause(retryDelay(failure, backoff), failure.code)
          continue
        }
        // The configuration has a new API key, so do not report an outage.
        if (refused && this.#options.renewKey?.()) continue
        const why = explain(failure, this.#options.url)
        this.#status.update({ online: false, reason: failure.code, realtime: 'polling' }, why)
        await this.#pause(retryDelay(failure, backoff), failure.code)
        if (refused) this.#options.renewKey?.()
      }
    }
  }

  /**
   * Reads the identity and permissions if necessary, and then the list. The first failed request shows the cause.
   * Resolves to the refusal if the key does not permit the list.
   */
  async #read(slot?: Slot): Promise<HubError | undefined> {
    this.#stale ||= this.#isPartial
    await this.#ensureGreeted()
    slot?.keep()
    let refused: HubError | undefined
    this.#readAt = this.#dependencies.clock.elapsed()
    try {
      await this.#apps.refresh()
    } catch (error) {
      // An API key that permits only speaking is useful, although it does not permit reading the apps.
      refused = asHubError(error)
      if (refused.code !== 'forbidden') throw error
      this.#apps.replaceNow()
    }
    if (refused === undefined && this.#status.current.reason === 'forbidden') {
      // The hub answers the list again, so the key has got other permissions.
      this.#stale = true
      await this.#ensureGreeted()
    }
    this.#status.update({ ...this.#greeted, online: true, reason: refused?.code ?? null })
    return refused
  }

  async #ensureGreeted(): Promise<void> {
    // During the first check, a second check may become necessary, for example because of a new API key.
    for (let rounds = 0; rounds < 2 && this.#mustGreet(); rounds += 1) {
      this.#greeting ??= this.#greet().finally(() => {
        this.#greeting = undefined
      })
      await this.#greeting
    }
  }

  #mustGreet(): boolean {
    const { isProven, firmware } = this.#client.hub
    return this.#stale || !isProven || firmware !== this.#greeted?.firmware
  }

  async #greet(): Promise<void> {
    this.#stale = false
    try {
      const { greeting, isPartial } = await greet(this.#client, () => this.#greeted)
      this.#greeted = greeting
      this.#isPartial = isPartial
    } catch (error) {
      this.#stale = true
      throw error
    }
    const { id } = this.#greeted
    const { id: was } = this.#status.current
    if (was === null || was === id) return this.#apps.expectSame()
    this.#dependencies.log.warn({ was, is: id }, 'another hub answers at this address')
    this.#apps.expectOther(() => this.#status.update({ ...this.#greeted }))
    this.#sessions.abort()
    this.#sessions = new AbortController()
  }

  /** Polls until two consecutive reads fail, and keeps the realtime channel up in the meantime. */
  async #stayConnected(): Promise<void> {
    const ending = new AbortController()
    if (!this.#options.realtime) {
      this.isStarting = false
      this.#spread()
    }
    const realtime = this.#options.realtime
      ? this.#keepRealtime(AbortSignal.any([this.#stop.signal, ending.signal, this.#apps.ended]))
      : undefined
    try {
      while (!this.#stop.signal.aborted) {
        const isWoken = await this.#untilNextRead()
        if (!this.#stop.signal.aborted) await this.#poll()
        if (isWoken) this.#spread()
        else this.#fraction = 1
      }
    } finally {
      ending.abort()
      await realtime
    }
  }

  /**
   * Reads the hub. A hub that limits requests is not offline, so it is read again as soon as it permits this. After any
   * other failure, the hub is read once more after a second, because a busy hub may fail one read.
   */
  async #poll(): Promise<void> {
    let wait = LIMITED_MS.min
    let hasFailed = false
    while (!this.#stop.signal.aborted) {
      try {
        await this.#read()
        return
      } catch (error) {
        const { code, message, retryAfterMs } = asHubError(error)
        if (code === 'rate_limited') {
          await this.#pause(retryAfterMs ?? wait, code)
          wait = Math.min(2 * wait, LIMITED_MS.max)
          continue
        }
        if (code === 'unauthorized' || hasFailed) throw error
        hasFailed = true
        this.#dependencies.log.debug({ reason: code }, `reading the hub failed, trying once more: ${message}`)
        await this.#pause(SECOND_TRY_MS)
      }
    }
  }

  #keepRealtime(signal: AbortSignal): Promise<void> {
    return keepRealtime({
      ...this.#dependencies,
      open: () => {
        const session = this.#gate.run({ signal }, async (slot) => {
          await this.#ensureGreeted()
          return openRealtime({
            ...this.#options,
            clock: this.#dependencies.clock,
            apiKey: this.#options.apiKey(),
            hubId: this.#greeted?.id ?? null,
            settleMs: REALTIME_SETTLE_MS,
            prove: () => this.#client.hub.ensure(),
            onSubscribed: () => {
              this.isStarting = false
              slot.leave()
            },
            apps: this.#apps,
            signal: AbortSignal.any([signal, this.#sessions.signal]),
          }).catch((error: unknown) => {
            this.#client.hub.distrust()
            this.#spread()
            throw error
          })
        })
        return session.finally(() => {
          this.isStarting = false
        })
      },
      onUp: () => this.#onRealtime(),
      onLost: () => this.#onRealtimeLost(),
      backoff: new Backoff({ ...BACKOFF, ...this.#dependencies }),
      signal,
    })
  }

  /** Reads the list when a session begins, because the hub does not send earlier events. */
  async #onRealtime(): Promise<void> {
    await this.#read()
    this.#spread()
    this.#apps.live = true
    this.#status.update({ realtime: 'connected' })
    this.#turning.abort()
  }

  /** Requires a new identity check, because the session may have ended with a shutdown of the hub. */
  #onRealtimeLost(): void {
    this.#apps.live = false
    this.#stale = true
    this.#client.hub.distrust()
    this.#status.update({ realtime: 'polling' })
    this.#turning.abort()
    if (this.#earlyReadDelay('loss') === 0) this.wake()
  }

  /** Schedules a read of the list, because the hub sent an event about an app that the list lacks. */
  onUnknownApp(): void {
    if (this.#cancelUnknownApp !== undefined) return
    this.#cancelUnknownApp = this.#dependencies.clock.after(this.#earlyReadDelay('unknownApp'), () => {
      this.#earlyReadDelay('unknownApp')
      this.#cancelUnknownApp = undefined
      this.wake()
    })
  }

  /** Returns the delay until the list may be read early for this reason. If it is 0, also records an early read. */
  #earlyReadDelay(reason: keyof typeof EARLY_READ_MS): number {
    const now = this.#dependencies.clock.elapsed()
    const remaining = Math.max(0, this.#earlyReadAt[reason] + EARLY_READ_MS[reason] - now)
    if (remaining === 0) this.#earlyReadAt[reason] = now
    return remaining
  }

  /** Shortens the wait for the next read at random, because a start or a network failure synchronises many reads. */
  #spread(): void {
    this.#fraction = 1 - this.#dependencies.random()
  }

  /** Sleeps until the next read is due or `wake` is called. Returns whether `wake` was called. */
  async #untilNextRead(): Promise<boolean> {
    const { pollInterval, pollIntervalFallback } = this.#options
    const { clock } = this.#dependencies
    for (;;) {
      const connected = this.#status.current.realtime === 'connected'
      const interval = connected ? pollInterval : Math.min(pollInterval, pollIntervalFallback)
      const remaining = Math.max(0, this.#readAt + interval * this.#fraction - clock.elapsed())
      this.#turning = new AbortController()
      await sleep(clock, remaining, AbortSignal.any([this.#stop.signal, this.#waking.signal, this.#turning.signal]))
      if (!this.#turning.signal.aborted || this.#waking.signal.aborted || this.#stop.signal.aborted) break
    }
    const isWoken = this.#waking.signal.aborted
    this.#waking = new AbortController()
    return isWoken
  }

  /**
   * Pauses for `ms` milliseconds. `wake` ends the pause early, even if it was called between the previous pause and
   * this one. It does not shorten a pause that the hub requested (429).
   */
  async #pause(ms: number, code?: HubErrorCode): Promise<void> {
    const signals = [this.#stop.signal, ...(code === 'rate_limited' ? [] : [this.#waking.signal])]
    await sleep(this.#dependencies.clock, ms, AbortSignal.any(signals))
    this.#waking = new AbortController()
  }
}
