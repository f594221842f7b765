/** One hub, held on to: connects, polls, keeps the realtime channel up, and starts over after every failure. */

import type { Logger } from 'pino'
import { Backoff } from '../base/backoff.ts'
import { type Clock, sleep } from '../base/clock.ts'
import { AppManager } from './app-manager.ts'
import { HubClient, type HubClientOptions } from './client.ts'
import { asHubError, type HubErrorCode, retryDelay } from './errors.ts'
import { keepRealtime } from './keep-realtime.ts'
import { OPERATIONS, type OperationName, type Parameters, type Result } from './operations.ts'
import { openRealtime } from './realtime.ts'
import { grants } from './scopes.ts'
import { changeStatus, type HubStatus, UNKNOWN_STATUS } from './status.ts'

const BACKOFF = { min: 1000, max: 30_000 }
const SECOND_TRY_MS = 1000
const REALTIME_SETTLE_MS = 500

export interface HubOptions extends Omit<HubClientOptions, 'knows'> {
  /** Whether an app is to be known at all. */
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
  readonly #listeners = new Set<(status: HubStatus) => void>()
  #status = UNKNOWN_STATUS
  #since: number
  /** Whether identity and permissions are to be read again before the list. */
  #stale = true
  #waking = new AbortController()
  #running: Promise<void> | undefined

  constructor(options: HubOptions, dependencies: HubDependencies) {
    this.#options = options
    this.#dependencies = dependencies
    this.#since = dependencies.clock.elapsed()
    this.#client = new HubClient({ ...options, knows: (id) => this.apps.all.has(id) }, dependencies.clock)
    this.apps = new AppManager(this.#client, dependencies.clock, options.shows)
  }

  get status(): HubStatus {
    return this.#status
  }

  /** Calls `listener` after each change of the status; the returned function ends that. */
  subscribe(listener: (status: HubStatus) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Ends the subscription, clears the caches and removes all listeners; safe to call twice. */
  async destroy(): Promise<void> {
    this.#stop.abort()
    this.#listeners.clear()
    this.apps.destroy()
    await this.#client.close()
    await this.#running
  }

  /** Whether the key and the hub allow an operation, as far as is known beforehand. */
  permits(name: OperationName): 'yes' | 'forbidden' | 'unsupported' {
    const row: { readonly scope?: string } = OPERATIONS[name]
    if (this.#status.missing.has(name)) return 'unsupported'
    return grants(this.#status.scopes, row.scope) ? 'yes' : 'forbidden'
  }

  /** Runs an operation, and learns from how it ends. @throws HubError */
  async call<N extends OperationName>(name: N, parameters: Parameters<N>): Promise<Result<N>> {
    try {
      const result = await this.#client.call(name, parameters)
      // Without realtime nobody tells what a write has changed.
      if (OPERATIONS[name].method !== 'GET' && this.#status.realtime === 'polling') this.wake()
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

  /** Ends a pause between two reads: there is reason to read now, such as a new key. */
  wake(): void {
    this.#waking.abort()
  }

  /** Reads identity, permissions and the list again. @throws HubError */
  async refresh(): Promise<void> {
    this.#stale = true
    await this.#read()
  }

  #learn(name: OperationName, code: HubErrorCode): void {
    if (code === 'unsupported') this.#update({ missing: new Set([...this.#status.missing, name]) })
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
        // A key that was rotated is no outage worth telling.
        if (refused && this.#options.renewKey?.()) continue
        this.#update({ online: false, reason: failure.code, realtime: 'polling' })
        await this.#pause(retryDelay(failure, backoff))
        if (refused) this.#options.renewKey?.()
      }
    }
  }

  /** Who is there, what may the key do, which apps are there: in this order, as each explains the next one's failure. */
  async #read(): Promise<void> {
    const greeting = this.#stale ? await this.#greet() : {}
    let reason: HubErrorCode | null = null
    try {
      await this.apps.refresh()
    } catch (error) {
      // A key for speech alone is of use although it may not see the apps.
      if (asHubError(error).code !== 'forbidden') throw error
      reason = 'forbidden'
    }
    this.#update({ ...greeting, online: true, reason })
  }

  async #greet(): Promise<Partial<HubStatus>> {
    const { log } = this.#dependencies
    const identity = await this.#client.identify()
    const scopes = await this.#client.call('getSessionMe', {}).catch(unless('unsupported', 'forbidden'))
    const missing = await this.#findMissing()
    const known = this.#status
    if (known.id !== null && known.id !== identity.id) {
      log.warn({ was: known.id, is: identity.id }, 'another hub answers at this address')
      this.apps.reset()
      // Before the list is read: its apps are the new hub's.
      this.#update(identity)
    }
    this.#stale = false
    return { ...identity, scopes, missing }
  }

  /** Newer hubs have neither speech nor garbage collection, and only speech can be asked for without doing something. */
  async #findMissing(): Promise<ReadonlySet<OperationName>> {
    try {
      await this.#client.call('getVoices', {})
    } catch (error) {
      if (asHubError(error).code === 'unsupported') return new Set(['speak', 'garbageCollectApp'])
    }
    return new Set()
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
        await this.#pause(this.#status.realtime === 'connected' ? pollInterval : pollIntervalFallback)
        if (!this.#stop.signal.aborted) await this.#poll()
      }
    } finally {
      ending.abort()
      await realtime
    }
  }

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
          hubId: this.#status.id,
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
    this.#update({ realtime: 'connected' })
  }

  /** What ended a session may be the hub going down: look at once, and at who is there. */
  #onRealtimeLost(): void {
    this.apps.setLive(false)
    this.#stale = true
    this.#update({ realtime: 'polling' })
    this.wake()
  }

  /** Sleeps, unless something asks for a look at once or did so since the last pause. */
  async #pause(ms: number): Promise<void> {
    await sleep(this.#dependencies.clock, ms, AbortSignal.any([this.#stop.signal, this.#waking.signal]))
    this.#waking = new AbortController()
  }

  #update(change: Partial<HubStatus>): void {
    const before = this.#status
    const after = changeStatus(before, change)
    if (after === before || this.#stop.signal.aborted) return
    this.#status = after
    this.#report(before, after)
    for (const listener of this.#listeners) listener(after)
  }

  /** Lost and regained, once each. */
  #report(before: HubStatus, after: HubStatus): void {
    if (before.online === after.online && (after.online || before.reason === after.reason)) return
    const { clock, log } = this.#dependencies
    const seconds = Math.round((clock.elapsed() - this.#since) / 1000)
    if (before.online !== after.online) this.#since = clock.elapsed()
    if (after.online) log.info({ id: after.id, firmware: after.firmware, offline_seconds: seconds }, 'hub online')
    else log.warn({ reason: after.reason }, 'hub offline, trying again')
  }
}

function unless(...codes: HubErrorCode[]): (error: unknown) => undefined {
  return (error) => {
    if (!codes.includes(asHubError(error).code)) throw error
  }
}
