/** One hub: what others read and call. Its session keeps that current. */
import type { Json } from '../base/json.ts'
import { AppManager } from './app-manager.ts'
import { HubClient, type HubClientOptions } from './client.ts'
import type { Endpoint } from './endpoints.ts'
import { asHubError, type HubError, type HubErrorCode } from './errors.ts'
import { OPERATIONS, type OperationName, type Parameters, type Result } from './operations.ts'
import { type HubDependencies, Session } from './session.ts'
import { grants, type HubStatus, StatusTracker } from './status.ts'

export interface HubOptions extends Omit<HubClientOptions, 'knows'> {
  /** Whether to use the realtime channel in addition to polling. */
  readonly realtime: boolean
  /** Time between two reads of the list, in milliseconds. */
  readonly pollInterval: number
  /** The same while the realtime channel is down. */
  readonly pollIntervalFallback: number
  /** Called when the hub refuses the key: whether `apiKey` has another one since. */
  readonly renewKey?: () => boolean
  /** Whether configuration shows an app; what it hides is never known here. */
  readonly shows: (appId: string) => boolean
}

/** Failures that concern the hub or the key, not just the call. */
const CONCERNING: ReadonlySet<HubErrorCode> = new Set(['unauthorized', 'forbidden', 'subscription', 'unreachable'])

/** Whether a failure shows that the hub lacks the operation: it says so, or it has no such path. */
function isEvidence(name: OperationName, { code, status, foreign }: HubError): boolean {
  return code === 'unsupported' && !foreign && (status === 500 || OPERATIONS[name].optional === true)
}

export class Hub {
  readonly apps: AppManager
  readonly #client: HubClient
  readonly #session: Session
  readonly #status: StatusTracker
  /** Operations whose latest answer was a 404 for an app that exists. */
  readonly #doubted = new Set<OperationName>()

  constructor(options: HubOptions, dependencies: HubDependencies) {
    const { clock } = dependencies
    this.#status = new StatusTracker(dependencies)
    const onDisconnected = () => {
      // While no requests are under way, the realtime channel shows that the hub is still there.
      if (this.status.realtime !== 'connected') this.#client.hub.doubt()
    }
    const knows = (id: string) => this.apps.all.has(id)
    this.#client = new HubClient({ ...options, knows, onDisconnected }, clock)
    const onUnknownApp = () => this.#session.onUnknownApp()
    this.apps = new AppManager(this.#client, clock, options.shows, onUnknownApp)
    this.#session = new Session(options, dependencies, this.#client, this.apps, this.#status)
  }

  get status(): HubStatus {
    return this.#status.current
  }

  /** Whether the first list and the first realtime session are still to come, and nothing has gone wrong so far. */
  get isStarting(): boolean {
    return this.#session.isStarting
  }

  /** Calls `listener` after each change of the status; the returned function ends that. */
  subscribe(listener: (status: HubStatus) => void): () => void {
    return this.#status.subscribe(listener)
  }

  start(): void {
    this.#session.start()
  }

  /** Ends the calls under way, and makes no others. What is known of the hub stays. */
  async endCalls(): Promise<void> {
    this.#session.stop()
    this.#status.end()
    await this.#client.close()
  }

  /** Ends the subscription, clears the caches and removes all listeners; safe to call twice. */
  async destroy(): Promise<void> {
    const ended = this.endCalls()
    this.apps.destroy()
    await ended
    await this.#session.ended
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
      // Without realtime there is no event for what a write has changed.
      if (OPERATIONS[name].method !== 'GET' && this.status.realtime === 'polling') this.#session.wake()
      return result
    } catch (error) {
      const failure = asHubError(error)
      if (isEvidence(name, failure)) await this.#checkSupport(name, parameters, failure)
      this.#noteFailure(failure.code)
      throw error
    }
  }

  /** Reads what nothing else depends on: how it ends says nothing of the hub or the key. @throws HubError */
  read<N extends OperationName>(name: N, parameters: Parameters<N>): Promise<Result<N>> {
    return this.#client.call(name, parameters)
  }

  /** Whether the hub has nothing else to do: it is online, asks for no pause, and no request waits or is under way. */
  get isIdle(): boolean {
    return this.status.online && !this.isStarting && this.#client.hub.isIdle
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
      if (endpoint.method !== 'GET' && this.status.realtime === 'polling') this.#session.wake()
      return answer
    } catch (error) {
      const { code } = asHubError(error)
      // A refusal by an app or an unknown operation says nothing about the hub or the key as a whole.
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
    this.#session.wake()
  }

  /** There is another key: what it permits is read at once. */
  renewed(): void {
    this.#session.startOver()
  }

  /** Reads identity, permissions and the list again. @throws HubError */
  refresh(): Promise<void> {
    return this.#session.refresh()
  }

  /** If a failed call may concern the hub as a whole, that is checked at once. */
  #noteFailure(code: HubErrorCode): void {
    if (CONCERNING.has(code)) this.#session.startOver()
  }

  /**
   * The hub lacks an operation, if it is well otherwise. A 404 can also be meant for the app: it counts if the app
   * exists, and from the second in a row on.
   */
  async #checkSupport(name: OperationName, parameters: object, { status }: HubError): Promise<void> {
    const id: unknown = Reflect.get(parameters, 'id')
    const look = typeof id === 'string' ? this.#client.call('getApp', { id }) : this.#client.hub.confirm()
    if ((await look.then(() => undefined, asHubError)) !== undefined) return
    const again = this.#doubted.has(name)
    this.#doubted.add(name)
    if (status === 404 && typeof id === 'string' && !again) return
    this.#session.lacks(name)
  }
}
