/** The session with a hub: connects, polls, keeps the realtime channel up, and starts over after every failure. */

import type { Logger } from 'pino'
import { Backoff } from '../base/backoff.ts'
import { type Clock, sleep } from '../base/clock.ts'
import { Limiter, type Slot } from '../base/limiter.ts'
import type { AppManager } from './app-manager.ts'
import type { HubClient } from './client.ts'
import { asHubError, type HubErrorCode, retryDelay } from './errors.ts'
import { explain } from './explain.ts'
import { type Greeting, greet } from './greeting.ts'
import type { HubOptions } from './hub.ts'
import type { OperationName } from './operations.ts'
import { keepRealtime, openRealtime } from './realtime.ts'
import type { HubStatus, StatusTracker } from './status.ts'

const BACKOFF = { min: 1000, max: 30_000 }
const SECOND_TRY_MS = 1000
/** While a hub answers 429 without a `Retry-After`: twice as long each time. */
const LIMITED_MS = { min: 1000, max: 30_000 }
/** Least time between two early reads of the list for the same reason: an unknown app, or a lost realtime channel. */
const EARLY_READ_MS = { unknownApp: 10_000, loss: 30_000 }
const REALTIME_SETTLE_MS = 500

export interface HubDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly random: () => number
  /** Where hubs connect a few at a time; default: one of its own. */
  readonly gate?: Limiter
}

/**
 * Where hubs that connect pass: a thousand that log in at once keep each other waiting until their time limits have
 * passed. One that does not answer within a second goes on without a slot, so that the dead do not keep out the others.
 */
export const connectGate = (clock: Clock) => new Limiter({ clock, slots: 48, patienceMs: 1000 })

export class Session {
  readonly #options: HubOptions
  readonly #dependencies: HubDependencies
  readonly #client: HubClient
  readonly #apps: AppManager
  readonly #status: StatusTracker
  readonly #gate: Limiter
  readonly #stop = new AbortController()
  /** Whether the first list and the first realtime session are still to come, and nothing has gone wrong so far. */
  isStarting = true
  /** Whether identity and permissions are to be read again before the list. */
  #stale = true
  #greeted: Greeting | undefined
  #greeting: Promise<void> | undefined
  /** Operations that have shown themselves that this hub lacks them. */
  #lacking: ReadonlySet<OperationName> = new Set()
  #waking = new AbortController()
  /** Aborted when the realtime channel comes up or falls: the pause until the next read is another one then. */
  #turning = new AbortController()
  /** Aborted when another hub answers: the session with the former one counts no longer. */
  #sessions = new AbortController()
  /** The part of the interval after which the list is due again. */
  #part = 1
  /** When the list was last asked for, and when before its time; in `clock.elapsed()` milliseconds. */
  #readAt = Number.NEGATIVE_INFINITY
  #earlyReadAt = { unknownApp: Number.NEGATIVE_INFINITY, loss: Number.NEGATIVE_INFINITY }
  #cancelUnknownApp: (() => void) | undefined
  /** Once started; resolves when all has ended that was under way at `stop`. */
  ended: Promise<void> | undefined

  /** Keeps `apps` and `status` true. */
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

  /** Begins nothing more. */
  stop(): void {
    this.#stop.abort()
  }

  /** Ends a pause between two reads: there is reason to read now. */
  wake(): void {
    this.#waking.abort()
  }

  /** Identity and permissions may have changed: they are read at once, and then the list. */
  startOver(): void {
    this.#stale = true
    this.wake()
  }

  /** Reads identity, permissions and the list again. @throws HubError */
  async refresh(): Promise<void> {
    this.#stale = true
    await this.#read()
  }

  /** The hub has shown itself that it lacks an operation. */
  lacks(name: OperationName): void {
    this.#lacking = new Set([...this.#lacking, name])
    this.#status.update({ missing: new Set([...this.#status.current.missing, name]) })
  }

  async #run(): Promise<void> {
    const backoff = new Backoff({ ...BACKOFF, random: this.#dependencies.random })
    while (!this.#stop.signal.aborted) {
      try {
        await this.#gate.run({ signal: this.#stop.signal }, (slot) => this.#read(slot))
        backoff.reset()
        await this.#stayConnected()
      } catch (error) {
        const failure = asHubError(error)
        this.isStarting = false
        this.#stale = true
        const refused = failure.code === 'unauthorized'
        // As in `#readPatiently`: a new key is read with a request more than usual, and a busy hub is well.
        if (failure.code === 'rate_limited' && this.#status.current.online) {
          await this.#pause(retryDelay(failure, backoff), failure.code)
          continue
        }
        // The configuration has a new key: there is no outage to report.
        if (refused && this.#options.renewKey?.()) continue
        const why = explain(failure, this.#options.url)
        this.#status.update({ online: false, reason: failure.code, realtime: 'polling' }, why)
        await this.#pause(retryDelay(failure, backoff), failure.code)
        if (refused) this.#options.renewKey?.()
      }
    }
  }

  /** Reads who is there, what the key may do and which apps there are: each explains why the next one fails. */
  async #read(slot?: Slot): Promise<void> {
    await this.#makeSure()
    slot?.keep()
    let reason: HubErrorCode | null = null
    this.#readAt = this.#dependencies.clock.elapsed()
    try {
      await this.#apps.refresh()
    } catch (error) {
      // A key that may only speak is of use, although it may not see the apps.
      if (asHubError(error).code !== 'forbidden') throw error
      reason = 'forbidden'
      this.#apps.replaceNow()
    }
    this.#status.update({ ...this.#greetedStatus(), online: true, reason })
  }

  /** Asks who is there, unless that is known and nothing speaks against it. @throws HubError */
  async #makeSure(): Promise<void> {
    // Again if there was a reason for another greeting during this one, such as a new key.
    for (let rounds = 0; rounds < 2 && (this.#stale || !this.#client.hub.isProven); rounds += 1) {
      this.#greeting ??= this.#greet().finally(() => {
        this.#greeting = undefined
      })
      await this.#greeting
    }
  }

  async #greet(): Promise<void> {
    this.#stale = false
    const before = this.#greeted
    try {
      this.#greeted = await greet(this.#client, before)
    } catch (error) {
      this.#stale = true
      throw error
    }
    const { id, firmware } = this.#greeted
    if (firmware === null || firmware !== before?.firmware || id !== before.id) this.#lacking = new Set()
    const { id: was } = this.#status.current
    if (was === null || was === id) return this.#apps.expectSame()
    this.#dependencies.log.warn({ was, is: id }, 'another hub answers at this address')
    this.#apps.expectOther(() => this.#status.update(this.#greetedStatus()))
    this.#sessions.abort()
    this.#sessions = new AbortController()
  }

  #greetedStatus(): Partial<HubStatus> {
    if (this.#greeted === undefined) return {}
    return { ...this.#greeted, missing: new Set([...this.#greeted.missing, ...this.#lacking]) }
  }

  /** Polls until two reads in a row fail; the realtime channel comes and goes meanwhile. */
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
        else this.#part = 1
      }
    } finally {
      ending.abort()
      await realtime
    }
  }

  /** A busy hub may fail one read: it is offline only if the next one, a second later, fails too. */
  async #poll(): Promise<void> {
    try {
      await this.#readPatiently()
    } catch (error) {
      const { code, message } = asHubError(error)
      if (code === 'unauthorized') throw error
      this.#dependencies.log.debug({ reason: code }, `reading the hub failed, trying once more: ${message}`)
      await this.#pause(SECOND_TRY_MS)
      await this.#readPatiently()
    }
  }

  /** A hub that asks for fewer requests is well: it is asked again when it likes. */
  async #readPatiently(): Promise<void> {
    for (let wait = LIMITED_MS.min; !this.#stop.signal.aborted; wait = Math.min(2 * wait, LIMITED_MS.max)) {
      try {
        return await this.#read()
      } catch (error) {
        const { code, retryAfterMs } = asHubError(error)
        if (code !== 'rate_limited') throw error
        await this.#pause(retryAfterMs ?? wait, code)
      }
    }
  }

  #keepRealtime(signal: AbortSignal): Promise<void> {
    return keepRealtime({
      ...this.#dependencies,
      open: () => {
        const session = this.#gate.run({ signal }, async (slot) => {
          await this.#makeSure()
          return openRealtime({
            ...this.#options,
            clock: this.#dependencies.clock,
            apiKey: this.#options.apiKey(),
            hubId: this.#greeted?.id ?? null,
            settleMs: REALTIME_SETTLE_MS,
            prove: () => this.#client.hub.assure(),
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

  /** Nothing that happened before a session is sent again, so the list is read anew when one comes up. */
  async #onRealtime(): Promise<void> {
    await this.#read()
    this.#spread()
    this.#apps.setLive(true)
    this.#status.update({ realtime: 'connected' })
    this.#turning.abort()
  }

  /** The session may have ended because the hub goes down: everything is read at once, its identity too. */
  #onRealtimeLost(): void {
    this.#apps.setLive(false)
    this.#stale = true
    this.#client.hub.distrust()
    this.#status.update({ realtime: 'polling' })
    this.#turning.abort()
    if (this.#earlyReadDelay('loss') === 0) this.wake()
  }

  /** An event of an app that is gone, or whose installation event was missed: the list shows which. */
  onUnknownApp(): void {
    if (this.#cancelUnknownApp !== undefined) return
    this.#cancelUnknownApp = this.#dependencies.clock.after(this.#earlyReadDelay('unknownApp'), () => {
      this.#earlyReadDelay('unknownApp')
      this.#cancelUnknownApp = undefined
      this.wake()
    })
  }

  /** How long the list may not be read again for this reason, in milliseconds; at 0 it now is. */
  #earlyReadDelay(reason: keyof typeof EARLY_READ_MS): number {
    const now = this.#dependencies.clock.elapsed()
    const left = Math.max(0, this.#earlyReadAt[reason] + EARLY_READ_MS[reason] - now)
    if (left === 0) this.#earlyReadAt[reason] = now
    return left
  }

  /**
   * The next read comes at any time of the interval. What makes one hub be read often makes many, such as a start or a
   * switch that fails, and they are not to be read together ever after.
   */
  #spread(): void {
    this.#part = 1 - this.#dependencies.random()
  }

  /** Sleeps until the list is due, or `wake` is called. Returns whether it was. */
  async #untilNextRead(): Promise<boolean> {
    const { pollInterval, pollIntervalFallback } = this.#options
    const { clock } = this.#dependencies
    for (;;) {
      const connected = this.#status.current.realtime === 'connected'
      const interval = connected ? pollInterval : Math.min(pollInterval, pollIntervalFallback)
      const left = Math.max(0, this.#readAt + interval * this.#part - clock.elapsed())
      this.#turning = new AbortController()
      await sleep(clock, left, AbortSignal.any([this.#stop.signal, this.#waking.signal, this.#turning.signal]))
      if (!this.#turning.signal.aborted || this.#waking.signal.aborted || this.#stop.signal.aborted) break
    }
    const isWoken = this.#waking.signal.aborted
    this.#waking = new AbortController()
    return isWoken
  }

  /**
   * Sleeps until `wake` is called; not at all if it was called since the last pause. For as long as the hub has asked for, it
   * sleeps in any case: what there was reason to read is read then.
   */
  async #pause(ms: number, code?: HubErrorCode): Promise<void> {
    const signals = [this.#stop.signal, ...(code === 'rate_limited' ? [] : [this.#waking.signal])]
    await sleep(this.#dependencies.clock, ms, AbortSignal.any(signals))
    this.#waking = new AbortController()
  }
}
