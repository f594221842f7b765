/** One hub: connects, polls, keeps the realtime channel up, and starts over after every failure. */

import type { Logger } from 'pino'
import { Backoff } from '../base/backoff.ts'
import { type Clock, sleep } from '../base/clock.ts'
import { AppManager } from './app-manager.ts'
import { HubClient, type HubClientOptions } from './client.ts'
import { asHubError, type HubErrorCode, retryDelay } from './errors.ts'
import { greet } from './greeting.ts'
import { keepRealtime } from './keep-realtime.ts'
import { OPERATIONS, type OperationName, type Parameters, type Result } from './operations.ts'
import { openRealtime } from './realtime.ts'
import { grants } from './scopes.ts'
import { type HubStatus, StatusTracker } from './status.ts'

const BACKOFF = { min: 1000, max: 30_000 }
const SECOND_TRY_MS = 1000
const REALTIME_SETTLE_MS = 500

export interface HubOptions extends Omit<HubClientOptions, 'knows'> {
  /** Whether configuration shows an app; what it hides is never known here. */
  readonly shows: (appId: string) => boolean
  /** Whether to use the realtime channel besides polling. */
  readonly realtime: boolean
  /** Between two reads of the list, in milliseconds. */
  readonly pollInterval: number
  /** The same while the realtime channel is down. */
  readonly pollIntervalFallback: number
  /** Called when the hub refuses the key: whether `apiKey` has another one since. */
  readonly renewKey?: () => boolean
}

export interface HubDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly random: () => number
}

export class Hub {
  readonly apps: AppManager
  readonly #options: HubOptions
  readonly #dependencies: HubDependencies
  readonly #client: HubClient
  readonly #stop = new AbortController()
  readonly #status: StatusTracker
  /** Whether identity and permissions are to be read again before the list. */
  #stale = true
  #waking = new AbortController()
  #running: Promise<void> | undefined

  constructor(options: HubOptions, dependencies: HubDependencies) {
    this.#options = options
    this.#dependencies = dependencies
    this.#status = new StatusTracker(dependencies)
    this.#client = new HubClient({ ...options, knows: (id) => this.apps.all.has(id) }, dependencies.clock)
    this.apps = new AppManager(this.#client, dependencies.clock, options.shows)
  }

  get status(): HubStatus {
    return this.#status.current
  }

  /** Calls `listener` after each change of the status; the returned function ends that. */
  subscribe(listener: (status: HubStatus) => void): () => void {
    return this.#status.subscribe(listener)
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Ends the subscription, clears the caches and removes all listeners; safe to call twice. */
  async destroy(): Promise<void> {
    this.#stop.abort()
    this.#status.end()
    this.apps.destroy()
    await this.#client.close()
    await this.#running
  }

  /** Whether the key and the hub allow an operation, as far as is known beforehand. */
  permits(name: OperationName): 'yes' | 'forbidden' | 'unsupported' {
    const { missing, scopes } = this.status
    if (missing.has(name)) return 'unsupported'
    return grants(scopes, OPERATIONS[name].scope) ? 'yes' : 'forbidden'
  }

  /** Runs an operation, and learns from how it ends. @throws HubError */
  async call<N extends OperationName>(name: N, parameters: Parameters<N>): Promise<Result<N>> {
    try {
      const result = await this.#client.call(name, parameters)
      // Without realtime nobody tells what a write has changed.
      if (OPERATIONS[name].method !== 'GET' && this.status.realtime === 'polling') this.wake()
      return result
    } catch (error) {
      this.#learn(name, asHubError(error).code)
      throw error
    }
  }

  /** Shows other apps from now on; the list is read at once for those that come in. */
  setFilter(shows: (appId: string) => boolean): void {
    this.apps.setFilter(shows)
    this.wake()
  }

  /** Ends a pause between two reads: there is reason to read now. */
  wake(): void {
    this.#waking.abort()
  }

  /** There is another key: what it permits is read at once. */
  renewed(): void {
    this.#stale = true
    this.wake()
  }

  /** Reads identity, permissions and the list again. @throws HubError */
  async refresh(): Promise<void> {
    this.#stale = true
    await this.#read()
  }

  #learn(name: OperationName, code: HubErrorCode): void {
    if (code === 'unsupported') this.#status.update({ missing: new Set([...this.status.missing, name]) })
    if (code !== 'unauthorized' && code !== 'forbidden' && code !== 'unreachable') return
    this.#stale = true
    this.wake()
  }

  async #run(): Promise<void> {
    const backoff = new Backoff({ ...BACKOFF, random: this.#dependencies.random })
    while (!this.#stop.signal.aborted) {
      try {
        await this.#read()
        backoff.reset()
        await this.#stayConnected()
      } catch (error) {
        const failure = asHubError(error)
        this.#stale = true
        const refused = failure.code === 'unauthorized'
        // The configuration has a new key: nobody needs to hear of an outage.
        if (refused && this.#options.renewKey?.()) continue
        this.#status.update({ online: false, reason: failure.code, realtime: 'polling' })
        await this.#pause(retryDelay(failure, backoff))
        if (refused) this.#options.renewKey?.()
      }
    }
  }

  /** Reads who is there, what the key may do and which apps there are: each explains why the next one fails. */
  async #read(): Promise<void> {
    const greeting = this.#stale ? await this.#greet() : {}
    let reason: HubErrorCode | null = null
    try {
      await this.apps.refresh()
    } catch (error) {
      // A key that may only speak is of use, although it may not see the apps.
      if (asHubError(error).code !== 'forbidden') throw error
      reason = 'forbidden'
    }
    this.#status.update({ ...greeting, online: true, reason })
  }

  async #greet(): Promise<Partial<HubStatus>> {
    const greeting = await greet(this.#client)
    const { id: was } = this.status
    if (was !== null && was !== greeting.id) {
      this.#dependencies.log.warn({ was, is: greeting.id }, 'another hub answers at this address')
      this.apps.reset()
      // Before the list is read: its apps are the new hub's.
      const { id, firmware, api } = greeting
      this.#status.update({ id, firmware, api })
    }
    this.#stale = false
    return greeting
  }

  /** Polls until two reads in a row fail; the realtime channel comes and goes meanwhile. */
  async #stayConnected(): Promise<void> {
    const { pollInterval, pollIntervalFallback } = this.#options
    const ending = new AbortController()
    const realtime = this.#options.realtime
      ? this.#keepRealtime(AbortSignal.any([this.#stop.signal, ending.signal]))
      : undefined
    try {
      while (!this.#stop.signal.aborted) {
        await this.#pause(this.status.realtime === 'connected' ? pollInterval : pollIntervalFallback)
        if (!this.#stop.signal.aborted) await this.#poll()
      }
    } finally {
      ending.abort()
      await realtime
    }
  }

  /** A busy hub may fail one read: it is offline only if the next one, a second later, fails too. */
  async #poll(): Promise<void> {
    try {
      await this.#read()
    } catch (error) {
      const { code, message } = asHubError(error)
      if (code === 'unauthorized') throw error
      this.#dependencies.log.debug({ reason: code }, `reading the hub failed, trying once more: ${message}`)
      await this.#pause(SECOND_TRY_MS)
      await this.#read()
    }
  }

  #keepRealtime(signal: AbortSignal): Promise<void> {
    const { url, apiKey, timeoutMs } = this.#options
    const { clock, log, random } = this.#dependencies
    return keepRealtime({
      open: () =>
        openRealtime({
          url,
          apiKey: apiKey(),
          hubId: this.status.id,
          timeoutMs,
          settleMs: REALTIME_SETTLE_MS,
          onEvent: (event) => this.apps.receive(event),
          clock,
          signal,
        }),
      onUp: () => this.#onRealtime(),
      onLost: () => this.#onRealtimeLost(),
      backoff: new Backoff({ ...BACKOFF, random }),
      clock,
      log,
      signal,
    })
  }

  /** Nothing that happened before a session is sent again, so the list is read anew when one comes up. */
  async #onRealtime(): Promise<void> {
    await this.#read()
    this.apps.setLive(true)
    this.#status.update({ realtime: 'connected' })
  }

  /** The session may have ended because the hub goes down: everything is read at once, who is there included. */
  #onRealtimeLost(): void {
    this.apps.setLive(false)
    this.#stale = true
    this.#status.update({ realtime: 'polling' })
    this.wake()
  }

  /** Sleeps until `wake` is called; not at all if it was called since the last pause. */
  async #pause(ms: number): Promise<void> {
    await sleep(this.#dependencies.clock, ms, AbortSignal.any([this.#stop.signal, this.#waking.signal]))
    this.#waking = new AbortController()
  }
}
