/** One hub: connects, polls, keeps the realtime channel up, and starts over after every failure. */

import type { Logger } from 'pino'
import { Backoff } from '../base/backoff.ts'
import { type Clock, sleep } from '../base/clock.ts'
import type { Json } from '../base/json.ts'
import { Limiter, type Slot } from '../base/limiter.ts'
import { AppManager } from './app-manager.ts'
import { HubClient, type HubClientOptions } from './client.ts'
import type { Endpoint } from './endpoints.ts'
import { asHubError, type HubError, type HubErrorCode, retryDelay } from './errors.ts'
import { explain } from './explain.ts'
import { type Greeting, greet } from './greeting.ts'
import { keepRealtime } from './keep-realtime.ts'
import { OPERATIONS, type OperationName, type Parameters, type Result } from './operations.ts'
import { openRealtime } from './realtime.ts'
import { grants, type HubStatus, StatusTracker } from './status.ts'

const BACKOFF = { min: 1000, max: 30_000 }
const SECOND_TRY_MS = 1000
/** While a hub answers 429 without a `Retry-After`: twice as long each time. */
const LIMITED_MS = { min: 1000, max: 30_000 }
/** Between two reads of the list at once for the same reason: an app that it lacks, or a realtime channel that fell. */
const EARLY_READ_MS = { stranger: 10_000, loss: 30_000 }
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
  /** Where hubs connect a few at a time; default: one of its own. */
  readonly gate?: Limiter
}

/**
 * Where hubs that connect pass: a thousand that log in at once keep each other waiting until their time limits have
 * passed. One that does not answer within a second goes on without a slot, so that the dead do not keep out the others.
 */
export const connectGate = (clock: Clock) => new Limiter({ clock, slots: 48, patienceMs: 1000 })

/** Failures that concern the hub or the key, not just the call. */
const CONCERNING: ReadonlySet<HubErrorCode> = new Set(['unauthorized', 'forbidden', 'subscription', 'unreachable'])

/** Whether a failure tells that the hub lacks the operation: it says so, or it has no such path. */
function isEvidence(name: OperationName, { code, status, foreign }: HubError): boolean {
  return code === 'unsupported' && !foreign && (status === 500 || OPERATIONS[name].optional === true)
}

export class Hub {
  readonly apps: AppManager
  readonly #options: HubOptions
  readonly #dependencies: HubDependencies
  readonly #client: HubClient
  readonly #gate: Limiter
  readonly #stop = new AbortController()
  readonly #status: StatusTracker
  #isStarting = true
  /** Whether identity and permissions are to be read again before the list. */
  #stale = true
  #greeted: Greeting | undefined
  #greeting: Promise<void> | undefined
  /** Operations that have shown themselves that this hub lacks them. */
  #lacking: ReadonlySet<OperationName> = new Set()
  /** Operations whose latest answer was a 404 for an app that exists. */
  readonly #doubted = new Set<OperationName>()
  #waking = new AbortController()
  /** Aborted when the realtime channel comes up or falls: the pause until the next read is another one then. */
  #turning = new AbortController()
  /** Aborted when another hub answers: the session with the former one counts no longer. */
  #sessions = new AbortController()
  /** Of the interval that goes by before the list is due again. */
  #part = 1
  /** When the list was last asked for, and when before its time; in `clock.elapsed()` milliseconds. */
  #readAt = Number.NEGATIVE_INFINITY
  #earlyReadAt = { stranger: Number.NEGATIVE_INFINITY, loss: Number.NEGATIVE_INFINITY }
  #cancelUnknownApp: (() => void) | undefined
  #running: Promise<void> | undefined

  constructor(options: HubOptions, dependencies: HubDependencies) {
    this.#options = options
    this.#dependencies = dependencies
    this.#gate = dependencies.gate ?? connectGate(dependencies.clock)
    this.#status = new StatusTracker(dependencies)
    const onDisconnected = () => {
      // While no requests are under way, the realtime channel shows that the hub is still there.
      if (this.status.realtime !== 'connected') this.#client.hub.doubt()
    }
    const knows = (id: string) => this.apps.all.has(id)
    this.#client = new HubClient({ ...options, knows, onDisconnected }, dependencies.clock)
    this.apps = new AppManager(this.#client, dependencies.clock, {
      shows: options.shows,
      onUnknownApp: () => this.#onUnknownApp(),
    })
    this.apps.ended.addEventListener('abort', () => this.#cancelUnknownApp?.())
  }

  get status(): HubStatus {
    return this.#status.current
  }

  /** Whether the first list and the first realtime session are still to come, and nothing has gone wrong so far. */
  get isStarting(): boolean {
    return this.#isStarting
  }

  /** Calls `listener` after each change of the status; the returned function ends that. */
  subscribe(listener: (status: HubStatus) => void): () => void {
    return this.#status.subscribe(listener)
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Ends the calls under way, and makes no others. What is known of the hub stays. */
  async endCalls(): Promise<void> {
    this.#stop.abort()
    this.#status.end()
    await this.#client.close()
  }

  /** Ends the subscription, clears the caches and removes all listeners; safe to call twice. */
  async destroy(): Promise<void> {
    const ended = this.endCalls()
    this.apps.destroy()
    await ended
    await this.#running
  }

  /** Whether the key and the hub allow an operation, as far as is known beforehand. */
  permits(name: OperationName): 'yes' | 'forbidden' | 'unsupported' {
    const { missing, scopes } = this.status
    if (missing.has(name)) return 'unsupported'
    return grants(scopes, OPERATIONS[name].scope) ? 'yes' : 'forbidden'
  }

  /**
   * Runs an operation, and learns from how it ends.
   * @param mayLeave called right before the request goes out; what it throws ends the call, and nothing was sent
   * @throws HubError
   */
  async call<N extends OperationName>(name: N, parameters: Parameters<N>, mayLeave?: () => void): Promise<Result<N>> {
    if ('appId' in parameters && typeof parameters.appId === 'string') this.apps.expect(parameters.appId)
    try {
      const result = await this.#client.call(name, parameters, mayLeave)
      this.#doubted.delete(name)
      // Without realtime nobody tells what a write has changed.
      if (OPERATIONS[name].method !== 'GET' && this.status.realtime === 'polling') this.wake()
      return result
    } catch (error) {
      const failure = asHubError(error)
      if (isEvidence(name, failure)) await this.#checkSupport(name, parameters, failure)
      this.#noteFailure(failure.code)
      throw error
    }
  }

  /** Reads to prove something: only the hub's own answer counts. @throws HubError */
  look<N extends OperationName>(name: N, parameters: Parameters<N>): Promise<Result<N>> {
    return this.#client.look(name, parameters)
  }

  /**
   * Calls anything that the hub offers, and learns from how it ends.
   * @param mayLeave as with `call`
   * @throws HubError
   */
  async callEndpoint(endpoint: Endpoint, mayLeave?: () => void): Promise<Json> {
    const { operation, app } = endpoint
    if (operation === 'installFromAppStore' && app !== null) this.apps.expect(app)
    try {
      const answer = await this.#client.callEndpoint(endpoint, mayLeave)
      if (endpoint.method !== 'GET' && this.status.realtime === 'polling') this.wake()
      return answer
    } catch (error) {
      const { code } = asHubError(error)
      // What an app or an operation of which nothing is known refuses says nothing of the hub and of the key as a whole.
      if (endpoint.operation !== null || code === 'unreachable' || code === 'subscription') this.#noteFailure(code)
      throw error
    }
  }

  /**
   * Reads a file of the hub, which it gives to everybody.
   * @returns `undefined` if there is none
   * @throws HubError
   */
  file(path: string, maxBytes: number): Promise<Buffer | undefined> {
    return this.#client.file(path, maxBytes)
  }

  /**
   * Asks an app's own web API with GET.
   * @param path below the app's, with a slash in front
   * @returns the HTTP status
   * @throws HubError
   */
  askApp(id: string, path: string): Promise<number> {
    return this.#client.askApp(id, path)
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

  /** What a failed call says of the hub as a whole is looked into at once. */
  #noteFailure(code: HubErrorCode): void {
    if (!CONCERNING.has(code)) return
    this.#stale = true
    this.wake()
  }

  /**
   * The hub lacks an operation, if it is well otherwise. A 404 can also be meant for the app: it counts if the app
   * exists, and from the second in a row on.
   */
  async #checkSupport(name: OperationName, parameters: object, { status }: HubError): Promise<void> {
    const id: unknown = Reflect.get(parameters, 'id')
    try {
      if (typeof id === 'string') await this.#client.call('getApp', { id })
      else await this.#client.hub.confirm()
    } catch (error) {
      asHubError(error)
      return
    }
    const again = this.#doubted.has(name)
    this.#doubted.add(name)
    if (status === 404 && typeof id === 'string' && !again) return
    this.#lacking = new Set([...this.#lacking, name])
    this.#status.update({ missing: new Set([...this.status.missing, name]) })
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
        this.#isStarting = false
        this.#stale = true
        const refused = failure.code === 'unauthorized'
        // The configuration has a new key: nobody needs to hear of an outage.
        if (refused && this.#options.renewKey?.()) continue
        const why = explain(failure, this.#options.url)
        this.#status.update({ online: false, reason: failure.code, realtime: 'polling' }, why)
        const delay = retryDelay(failure, backoff)
        await (failure.code === 'rate_limited' ? this.#rest(delay) : this.#pause(delay))
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
      await this.apps.refresh()
    } catch (error) {
      // A key that may only speak is of use, although it may not see the apps.
      if (asHubError(error).code !== 'forbidden') throw error
      reason = 'forbidden'
      this.apps.replaceNow()
    }
    this.#status.update({ ...this.#greetedStatus(), online: true, reason })
  }

  /** Asks who is there, unless that is known and nothing speaks against it. @throws HubError */
  async #makeSure(): Promise<void> {
    // Once more where a greeting was under way when there came reason for another, such as a new key.
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
    const { id: was } = this.status
    if (was === null || was === id) return this.apps.expectSame()
    this.#dependencies.log.warn({ was, is: id }, 'another hub answers at this address')
    this.apps.expectOther(() => this.#status.update(this.#greetedStatus()))
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
      this.#isStarting = false
      this.#spread()
    }
    const realtime = this.#options.realtime
      ? this.#keepRealtime(AbortSignal.any([this.#stop.signal, ending.signal, this.apps.ended]))
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
        await this.#rest(retryAfterMs ?? wait)
      }
    }
  }

  #keepRealtime(signal: AbortSignal): Promise<void> {
    const { url, apiKey, timeoutMs } = this.#options
    const { clock, log, random } = this.#dependencies
    return keepRealtime({
      open: () => {
        const session = this.#gate.run({ signal }, async (slot) => {
          await this.#makeSure()
          return openRealtime({
            url,
            apiKey: apiKey(),
            hubId: this.#greeted?.id ?? null,
            timeoutMs,
            settleMs: REALTIME_SETTLE_MS,
            prove: () => this.#client.hub.assure(),
            mayAsk: this.#options.mayAsk,
            onSubscribed: () => {
              this.#isStarting = false
              slot.leave()
            },
            apps: this.apps,
            clean: this.#options.clean,
            clock,
            signal: AbortSignal.any([signal, this.#sessions.signal]),
          }).catch((error: unknown) => {
            this.#client.hub.distrust()
            this.#spread()
            throw error
          })
        })
        return session.finally(() => {
          this.#isStarting = false
        })
      },
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
    this.#spread()
    this.apps.setLive(true)
    this.#status.update({ realtime: 'connected' })
    this.#turning.abort()
  }

  /** The session may have ended because the hub goes down: everything is read at once, who is there included. */
  #onRealtimeLost(): void {
    this.apps.setLive(false)
    this.#stale = true
    this.#client.hub.distrust()
    this.#status.update({ realtime: 'polling' })
    this.#turning.abort()
    if (this.#earlyReadDelay('loss') === 0) this.wake()
  }

  /** Late news of an app that is gone, or news of one whose installation was not heard of: the list tells. */
  #onUnknownApp(): void {
    if (this.#cancelUnknownApp !== undefined) return
    this.#cancelUnknownApp = this.#dependencies.clock.after(this.#earlyReadDelay('stranger'), () => {
      this.#earlyReadDelay('stranger')
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
      const connected = this.status.realtime === 'connected'
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

  /** Sleeps for as long as the hub has asked for. What there was reason to read is read then. */
  async #rest(ms: number): Promise<void> {
    await sleep(this.#dependencies.clock, ms, this.#stop.signal)
    this.#waking = new AbortController()
  }

  /** Sleeps until `wake` is called; not at all if it was called since the last pause. */
  async #pause(ms: number): Promise<void> {
    await sleep(this.#dependencies.clock, ms, AbortSignal.any([this.#stop.signal, this.#waking.signal]))
    this.#waking = new AbortController()
  }
}
