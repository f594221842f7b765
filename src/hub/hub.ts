/** The data and the operations of one hub. */
import { type Clock, sleep, within } from '../base/clock.ts'
import type { Json } from '../base/json.ts'
import type { App } from './app.ts'
import { AppManager } from './app-manager.ts'
import { HubClient, type HubClientOptions } from './client.ts'
import type { Endpoint } from './endpoints.ts'
import { asHubError, type HubError, type HubErrorCode } from './errors.ts'
import { type Method, OPERATIONS, type OperationName, type Parameters, type Result } from './operations.ts'
import { type HubDependencies, Session } from './session.ts'
import { grants, type HubStatus, StatusTracker } from './status.ts'
import { agrees } from './written.ts'

export interface HubOptions extends Omit<HubClientOptions, 'hasApp'> {
  readonly realtime: boolean
  /** Interval between reads of the list, in milliseconds. */
  readonly pollInterval: number
  /** Interval between reads of the list while the realtime channel is down, in milliseconds. */
  readonly pollIntervalFallback: number
  /** Called when the hub refuses the API key. Returns whether `apiKey` now returns a different key. */
  readonly renewKey?: () => boolean
  /** Returns whether the configuration shows an app; hidden apps are ignored. */
  readonly shows: (appId: string) => boolean
}

/** Failures that concern the hub or the API key, not just the call. */
const HUB_FAILURES: ReadonlySet<HubErrorCode> = new Set(['unauthorized', 'forbidden', 'subscription', 'unreachable'])

/** How long a realtime channel may take to report a change. Some hubs keep the channel open, but send no events. */
const EVENT_MS = 2_000

/** Returns whether a failure indicates that the hub lacks the operation. */
function isEvidence(name: OperationName, { code, status, foreign }: HubError): boolean {
  return code === 'unsupported' && !foreign && (status === 500 || OPERATIONS[name].optional === true)
}

export class Hub {
  readonly apps: AppManager
  /** Sends requests whose failures do not affect the hub's status. */
  readonly client: HubClient
  readonly #session: Session
  readonly #status: StatusTracker
  /** Operations whose latest response was a 404 for an app that exists. */
  readonly #doubted = new Set<OperationName>()
  readonly #clock: Clock

  constructor(options: HubOptions, dependencies: HubDependencies) {
    const { clock } = dependencies
    this.#clock = clock
    this.#status = new StatusTracker(dependencies)
    const onDisconnected = (isLost: boolean) => {
      // While the realtime channel is open, the end of idle connections casts no doubt on the hub's identity.
      if (isLost || this.status.realtime !== 'connected') this.client.hub.doubt()
    }
    const hasApp = (id: string) => this.apps.all.has(id)
    this.client = new HubClient({ ...options, hasApp, onDisconnected }, clock)
    const onUnknownApp = () => this.#session.onUnknownApp()
    this.apps = new AppManager(this.client, clock, options.shows, onUnknownApp)
    this.#session = new Session(options, dependencies, this.client, this.apps, this.#status)
  }

  get status(): HubStatus {
    return this.#status.current
  }

  /** Whether the first list or realtime session is still pending, and nothing has failed so far. */
  get isStarting(): boolean {
    return this.#session.isStarting
  }

  subscribe(listener: (status: HubStatus) => void): void {
    this.#status.subscribe(listener)
  }

  start(): void {
    this.#session.start()
  }

  /** Stops polling and aborts pending calls. Keeps the data. */
  async endCalls(): Promise<void> {
    this.#session.stop()
    this.#status.end()
    await this.client.close()
  }

  /**
   * Ends all calls, clears the data and removes all listeners; safe to call twice.
   * @param writesMs how long to wait for the responses to writes that were sent; nothing new is written
   */
  async destroy(writesMs = 0): Promise<void> {
    const written = this.client.hub.endWrites()
    this.#session.stop()
    this.#status.end()
    this.apps.destroy()
    if (writesMs > 0) await within(this.#clock, writesMs, written)
    await this.endCalls()
    await this.#session.ended
  }

  /** Returns whether the API key and the hub permit an operation, as far as this is known in advance. */
  permits(name: OperationName): 'yes' | 'forbidden' | 'unsupported' {
    const { missing, scopes } = this.status
    if (missing.has(name)) return 'unsupported'
    return grants(scopes, OPERATIONS[name].scope) ? 'yes' : 'forbidden'
  }

  /**
   * Runs an operation, and updates the status from its outcome.
   * @param mayLeave called just before the request is sent; if it throws, the call fails and nothing is sent
   * @throws HubError
   */
  async call<N extends OperationName>(name: N, parameters: Parameters<N>, mayLeave?: () => void): Promise<Result<N>> {
    if ('appId' in parameters && typeof parameters.appId === 'string') this.apps.expect(parameters.appId)
    const { method, body, shows } = OPERATIONS[name]
    const wanted = shows?.(body?.(parameters)) ?? {}
    const id: unknown = Object.keys(wanted).length > 0 && Reflect.get(parameters, 'id')
    const before = typeof id === 'string' ? this.apps.all.get(id) : undefined
    try {
      const result = await this.client.call(name, parameters, mayLeave)
      this.#doubted.delete(name)
      this.#wrote(method)
      const isPolling = this.status.realtime === 'polling'
      if (!isPolling && before !== undefined && !agrees(before, wanted)) void this.#expectEvent(before)
      return result
    } catch (error) {
      const failure = asHubError(error)
      if (isEvidence(name, failure)) await this.#checkSupport(name, parameters, failure)
      this.#noteFailure(failure.code)
      this.#wrote(method, failure.code)
      throw error
    }
  }

  /** Whether the hub is online, does not limit requests, and no request is waiting or running. */
  get isIdle(): boolean {
    return this.status.online && !this.isStarting && this.client.hub.isIdle
  }

  /** Calls an endpoint, and updates the status from the outcome, like `call`. @throws HubError */
  async callEndpoint(endpoint: Endpoint, mayLeave?: () => void): Promise<Json> {
    const { operation, app } = endpoint
    if (operation === 'installFromAppStore' && app !== null) this.apps.expect(app)
    try {
      const answer = await this.client.callEndpoint(endpoint, mayLeave)
      this.#wrote(endpoint.method)
      return answer
    } catch (error) {
      const { code } = asHubError(error)
      this.#wrote(endpoint.method, code)
      // The refusal of an unknown operation, or by an app, does not concern the hub or the API key in general.
      if (endpoint.operation !== null || code === 'unreachable' || code === 'subscription') this.#noteFailure(code)
      throw error
    }
  }

  /** Changes the filter, and reads the list immediately to get newly shown apps. */
  setFilter(shows: (appId: string) => boolean): void {
    this.apps.setFilter(shows)
    this.#session.wake()
  }

  /** Reads the permissions of a changed API key immediately. */
  renewed(): void {
    this.#session.startOver()
  }

  /** Reads the identity, the permissions and the list again. @throws HubError */
  refresh(): Promise<void> {
    return this.#session.refresh()
  }

  /** Reads the list if no event reports that a write has changed the app. */
  async #expectEvent(before: App): Promise<void> {
    await sleep(this.#clock, EVENT_MS, this.apps.ended)
    if (this.apps.all.get(before.id) === before) this.#session.wake()
  }

  /**
   * Reads the list, because without realtime, no event reports what a write has changed.
   * @param code why the write failed; if it got no answer, it may have been executed
   */
  #wrote(method: Method, code: HubErrorCode = 'no_answer'): void {
    const mayHaveChanged = code === 'no_answer' || code === 'nonsense'
    if (method !== 'GET' && mayHaveChanged && this.status.realtime === 'polling') this.#session.wake()
  }

  #noteFailure(code: HubErrorCode): void {
    if (HUB_FAILURES.has(code)) this.#session.startOver()
  }

  /**
   * Marks the operation as missing if a different request succeeds. A 404 may also mean that the app is missing, so the
   * operation is marked only after two consecutive 404s for an app that exists.
   */
  async #checkSupport(name: OperationName, parameters: object, { status }: HubError): Promise<void> {
    const id: unknown = Reflect.get(parameters, 'id')
    const check = typeof id === 'string' ? this.client.call('getApp', { id }) : this.client.hub.confirm()
    if ((await check.then(() => undefined, asHubError)) !== undefined) return
    const again = this.#doubted.has(name)
    this.#doubted.add(name)
    if (status === 404 && typeof id === 'string' && !again) return
    this.#session.lacks(name)
  }
}
