import { EventEmitter } from 'node:events'
import { createServer } from 'node:http'
import { sleep } from '../base/clock.ts'
import { Apps, type How, simulateActivity } from './apps.ts'
import { Behaviours, eventGate } from './behaviours.ts'
import type { AppsHost, HubApps } from './core/hub-apps.ts'
import { APPS_URI, type InApp, inAppInterface } from './core/in-app.ts'
import { rateLimit } from './faults.ts'
import { listeningPort } from './listening-port.ts'
import type { BehaviourName, BehaviourOptions } from './misbehaviour.ts'
import { type EmulatedHubOptions, type ResolvedOptions, urlOf, withDefaults } from './options.ts'
import { type Realtime, realtimeChannel } from './realtime.ts'
import type { AppRecord, AppSeed, Flavour, Patch } from './records.ts'
import { type HubCore, type OpenRecord, type RequestRecord, restListener } from './rest.ts'
import { normaliseScope } from './scopes.ts'
import { Timers } from './timers.ts'

export type { How } from './apps.ts'
export type { BehaviourName, BehaviourOptions } from './misbehaviour.ts'
export type { EmulatedHubOptions } from './options.ts'
export type { AppRecord, AppSeed, AppState, Flavour, Usage } from './records.ts'
export type { RequestRecord } from './rest.ts'

interface Reboot {
  /** How long the hub is down, in milliseconds; default: 0. */
  downMs?: number | undefined
  version?: string | undefined
  id?: string | undefined
}

/** The hub's core with writable `id` and `version`, which only a reboot may change. */
type ChangingCore = HubCore & { id: string; version: string }

const MAX_SPOKEN = 1000
/** The rate limit of newer hubs. */
const RATE = { requests: 4, windowMs: 400 }

/** Interval between checks for sessions whose key another process has revoked. */
const REVOKED_MS = 1000

export class EmulatedHub implements AsyncDisposable {
  readonly #options: ResolvedOptions
  readonly #ending = new AbortController()
  #requests: RequestRecord[] = []
  readonly #spoken: string[] = []
  /** The keys from the options, which `setKeys` can replace. */
  #given: ReadonlyMap<string, readonly string[]>
  readonly #apps: HubApps
  readonly #simulated: Apps | undefined
  /** Events for listeners inside the hub, such as apps, by the URI of the sender. */
  readonly #events = new EventEmitter().setMaxListeners(0)
  readonly inApp: InApp
  readonly #gate: ReturnType<typeof eventGate>
  readonly #listening: ReturnType<typeof listeningPort>
  readonly #realtime: Realtime
  readonly #away = new Set<string>()
  #born: number
  readonly #core: ChangingCore
  readonly flavour: Flavour
  /** The port of the hub; 0 until the hub has started. */
  port = 0
  /** The end of the latest reboot. This promise never rejects. */
  #rebooting: Promise<void> = Promise.resolve()
  #closing: Promise<void> | undefined

  /** Starts a hub. Resolves when the hub is listening and its apps have been started. */
  static async start(options: EmulatedHubOptions = {}): Promise<EmulatedHub> {
    const hub = new EmulatedHub(options)
    try {
      hub.port = await hub.#listening.listen(hub.#options.port)
      if (hub.#options.storedKeys !== undefined) {
        hub.#core.timers.every(REVOKED_MS, () => hub.#realtime.disconnectUnknown())
      }
      if (hub.#simulated !== undefined) simulateActivity(hub.#simulated, hub.#core.timers, hub.#options)
      await hub.#apps.start?.()
      return hub
    } catch (error) {
      await hub.close()
      throw error
    }
  }

  private constructor(given: EmulatedHubOptions) {
    const options = withDefaults(given)
    const { flavour, settleMs, store, pingIntervalMs, pingTimeoutMs } = options
    this.#options = options
    this.flavour = flavour
    this.#born = options.clock.elapsed()
    this.#given = normalised(options.keys)
    this.#core = this.#seenInside()
    const { timers, behaviours } = this.#core
    this.#gate = eventGate(behaviours, (...event) => this.#realtime.send(...event))
    const sendEvent: AppsHost['sendEvent'] = (event, payload) => this.#sendEvent(APPS_URI, event, payload)
    this.inApp = inAppInterface(this.#core, this.#events)
    const { backend, apps: seeds } = options
    const apps =
      backend === undefined
        ? new Apps(seeds, { flavour, timers, settleMs, store, sendEvent })
        : backend({ flavour, sendEvent, inApp: this.inApp })
    this.#apps = apps
    this.#simulated = apps instanceof Apps ? apps : undefined
    const server = createServer({ keepAliveTimeout: options.keepAliveMs }, restListener(this.#core))
    this.#listening = listeningPort(server, options.host)
    this.#realtime = realtimeChannel(server, this.#core, { pingInterval: pingIntervalMs, pingTimeout: pingTimeoutMs })
  }

  get id(): string {
    return this.#core.id
  }

  get version(): string {
    return this.#core.version
  }

  get url(): string {
    return urlOf(this.#options.host, this.port)
  }

  get apps(): ReadonlyMap<string, AppRecord> {
    return this.#apps.records
  }

  readonly settings = (id: string): Record<string, unknown> => Object.fromEntries(this.#apps.settings(id))

  /** The recorded requests, oldest first. */
  get requests(): readonly RequestRecord[] {
    return [...this.#requests]
  }

  forgetRequests(): void {
    this.#requests = []
  }

  /** The spoken texts, oldest first. */
  get spoken(): readonly string[] {
    return [...this.#spoken]
  }

  get connections(): { sockets: number; sessions: number; subscribers: number } {
    return { sockets: this.#listening.connections(), ...this.#realtime.counts() }
  }

  /** Sets a behaviour. `false` clears the behaviour for all operations and events. */
  behave<N extends BehaviourName>(name: N, options?: BehaviourOptions[N] | false): void {
    if (options === false) this.#core.behaviours.clear(name)
    else this.#core.behaviours.set(name, options ?? {})
    this.#settleBehaviours()
  }

  /** The active behaviours. `left`: number of remaining uses; `null`: no limit. */
  get behaviours() {
    return this.#core.behaviours.list()
  }

  behaveWell(): void {
    this.#core.behaviours.clear()
    this.#settleBehaviours()
  }

  /** Installs a simulated app: from the store if an id is given, otherwise as declared. */
  install(what: string | AppSeed, how?: How): void {
    if (typeof what === 'string') this.#simulatedApps.install({ id: what }, how)
    else this.#simulatedApps.add(what, how)
  }

  readonly uninstall = (id: string, how?: How): void => this.#simulatedApps.uninstall(id, how)
  readonly enable = (id: string, how?: How): void => this.#simulatedApps.enable(id, how)
  readonly disable = (id: string, how?: How): void => this.#simulatedApps.disable(id, how)
  readonly crash = (id: string, message?: string, how?: How): void => this.#simulatedApps.crash(id, message, how)
  /** Starts a crashed app again, as the hub does automatically or on a restart command. */
  readonly recover = (id: string, how?: How): void => this.#simulatedApps.restart(id, how)
  /** Overrides any fields of an app's record; `undefined` removes a field. */
  readonly change = (id: string, patch: Patch, how?: How): void => this.#simulatedApps.change(id, patch, how)

  /** Makes an app of any kind crash; only simulated apps use the message. */
  readonly provokeCrash = (id: string, message?: string): void | Promise<void> => this.#apps.crash(id, message)

  setDevices(app: string, state: 'away' | 'back'): void {
    if (state === 'away') this.#away.add(app)
    else this.#away.delete(app)
  }

  /** Sends an event unchanged. Does not change the state, and ignores the active behaviours. */
  readonly emit = (event: string, payload: unknown): void => this.#realtime.send(APPS_URI, event, payload)

  /** Replaces the keys from the options, and closes the sessions of removed keys. */
  setKeys(keys: Readonly<Record<string, readonly string[]>>): void {
    this.#given = normalised(keys)
    this.#realtime.disconnectUnknown()
  }

  /** Closes all realtime sessions: `goodbye` notifies the clients, `cut` drops the connections. */
  dropRealtime(how: 'goodbye' | 'cut' = 'goodbye'): void {
    if (how === 'goodbye') this.#realtime.disconnectAll()
    else this.#listening.cutUpgraded()
  }

  /** Drops all connections, stops, and starts again on the same port, optionally with a new id or version. */
  reboot(options: Reboot = {}): Promise<void> {
    const reboot = this.#rebooting.then(() => this.#reboot(options))
    this.#rebooting = reboot.catch(() => {})
    return reboot
  }

  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #reboot({ downMs = 0, version, id }: Reboot): Promise<void> {
    const { signal } = this.#ending
    await this.#listening.close()
    await this.#apps.stop?.()
    this.#core.version = version ?? this.version
    this.#core.id = id ?? this.id
    if (downMs > 0) await sleep(this.#options.clock, downMs, signal)
    this.#born = this.#options.clock.elapsed()
    if (!signal.aborted) await this.#listening.listen(this.port)
    if (!signal.aborted) await this.#apps.start?.()
  }

  async #end(): Promise<void> {
    this.#ending.abort()
    this.#core.timers.stop()
    await this.#rebooting
    await this.#listening.close()
    await this.#realtime.close()
    await this.#apps.stop?.()
  }

  #sendEvent(uri: string, event: string, payload: unknown): void {
    this.#events.emit(uri, event, payload)
    this.#gate.pass(uri, event, payload)
  }

  /** The simulated apps. @throws Error if the apps are processes */
  get #simulatedApps(): Apps {
    if (this.#simulated === undefined) throw new Error('the apps of this hub are not simulated')
    return this.#simulated
  }

  #settleBehaviours(): void {
    this.#listening.hang(this.#core.behaviours.has('realtime-hung'))
    if (!this.#core.behaviours.has('reorder-events')) this.#gate.flush()
  }

  #seenInside(): ChangingCore {
    const hub = this
    const { id, version, clock, prefix, nothing } = this.#options
    return {
      ...{ id, version, clock, prefix, nothing, flavour: this.flavour },
      get apps() {
        return hub.#apps
      },
      store: this.#options.hubStore,
      keys: (key) => this.#given.get(key) ?? this.#options.storedKeys?.(key),
      behaviours: new Behaviours(),
      timers: new Timers(clock),
      limit: this.#options.rateLimit ? rateLimit(RATE) : undefined,
      uptime: () => clock.elapsed() - this.#born,
      away: this.#away,
      sendEvent: (...event) => this.#sendEvent(...event),
      speak: (text) => {
        keepLast(this.#spoken, text, MAX_SPOKEN)
        this.#options.onSpeak?.(text)
      },
      remember: (request) => {
        const entry: OpenRecord = { at: clock.now(), ...request }
        keepLast(this.#requests, entry, this.#options.memory)
        return entry
      },
    }
  }
}

function normalised(keys: Readonly<Record<string, readonly string[]>>): ReadonlyMap<string, readonly string[]> {
  return new Map(Object.entries(keys).map(([key, scopes]) => [key, scopes.map(normaliseScope)]))
}

function keepLast<T>(items: T[], item: T, max: number): void {
  items.push(item)
  if (items.length > max) items.shift()
}
