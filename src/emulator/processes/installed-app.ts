/** An installed app: its stored state, its record and, while it is running, its process. */
import { type Clock, within } from '../../base/clock.ts'
import type { AppsHost } from '../core/hub-apps.ts'
import type { Packages, Unpacked } from '../data/packages.ts'
import { NO_CRASH, type SqliteState, type StoredApp } from '../data/state.ts'
import { HubError, messageOf } from '../hub-error.ts'
import { type AppRecord, type Flavour, GENERATIONS, NO_USAGE, type Patch, recordOf, type Usage } from '../records.ts'
import { type AppHandlers, AppProcess, type End } from './app-process.ts'
import type { HubMessage } from './channel.ts'
import { Output } from './output.ts'
import { supervise } from './supervisor.ts'
import type { Limits, Watch } from './watch.ts'

/** The objects that all apps of a hub share. */
export interface World {
  readonly clock: Clock
  readonly state: SqliteState
  readonly host: AppsHost
  readonly limits: Limits
  readonly watch: Watch
  readonly packages: Packages
  /** Whether the hub is stopping or rebooting. In this state, apps must not start. */
  readonly isDown: () => boolean
  readonly onLine: ((id: string, line: string) => void) | undefined
  readonly records: Map<string, AppRecord>
}

/** Interval at which events send the usage to clients. Answers always contain the latest usage. */
const SEND_USAGE_MS = 10_000
/** Time limit for a new version to start. After this time, the previous version is restored. */
const NEW_VERSION_MS = 10_000

export class InstalledApp {
  readonly output: Output
  readonly #world: World
  readonly #generation: (typeof GENERATIONS)[Flavour]
  #code: Unpacked
  #stored: StoredApp
  #record: AppRecord
  readonly #supervisor = supervise(
    () => this.#launch(),
    (state) => this.#enter(state),
    (end) => this.#onEnd(end),
  )
  #offer: string | undefined
  #usageSentAt = Number.NEGATIVE_INFINITY
  /** Whether the app is uninstalled. Its changes are then no longer stored or sent. */
  #isRemoved = false
  /** Whether a new version is starting. A crash is then not sent, because the previous version may be restored. */
  #isUpdating = false

  constructor(code: Unpacked, stored: StoredApp, world: World) {
    const { onLine } = world
    this.output = new Output(onLine && ((line) => onLine(stored.id, line)))
    this.#world = world
    this.#generation = GENERATIONS[world.host.flavour]
    this.#code = code
    this.#stored = stored
    this.#offer = newerVersion(stored, world.packages)
    this.#record = recordAtRest(code, stored, this.#offer, world.host.flavour)
    this.#keep({})
  }

  get stored(): StoredApp {
    return this.#stored
  }

  /** The process of the app. @throws HubError 503 if the app is not running */
  get process(): AppProcess {
    const process = this.#supervisor.process()
    if (process === undefined) throw new HubError(503, 'not_running', 'The app is not running')
    return process
  }

  get pid(): number | undefined {
    return this.#supervisor.process()?.pid
  }

  start(): Promise<void> {
    if (this.#world.isDown()) return Promise.resolve()
    return this.#supervisor.start()
  }

  stop(): Promise<void> {
    return this.#supervisor.stop()
  }

  /** Stops the app permanently and sends no more of its changes. */
  leave(): Promise<void> {
    this.#isRemoved = true
    return this.stop()
  }

  change(stored: Partial<StoredApp>, patch: Patch): void {
    this.#store(stored)
    this.#show(patch)
  }

  /** Checks the store for a newer version; sends an event if the result has changed. */
  checkForUpdate(): void {
    const offer = newerVersion(this.#stored, this.#world.packages)
    if (offer === this.#offer || this.#isUpdating) return
    this.#offer = offer
    this.#show({ updateAvailable: this.#generation.offer(offer) })
  }

  notifySetting(name: string, value?: unknown): void {
    this.#supervisor.process()?.send({ type: 'setting', name, value })
  }

  async collectGarbage(): Promise<void> {
    const { process } = this
    await process.request({ type: 'gc' })
    this.#world.watch.measureNow(process)
    this.#show({})
  }

  /** Installs another version. If it does not start, restores the previous one. @throws HubError 500 with the reason */
  async replace(code: Unpacked, stored: Partial<StoredApp>): Promise<void> {
    const previous = { code: this.#code, stored: this.#stored, wasUp: this.#supervisor.isUp() }
    const updated = { ...this.#stored, ...stored, folder: code.folder, version: code.manifest.version }
    if (!updated.enabled) return this.#take(code, updated)
    this.#isUpdating = true
    await this.stop()
    this.#use(code, updated)
    const problem = await this.#try().finally(() => {
      this.#isUpdating = false
    })
    if (problem === undefined) return this.#take(this.#code, { ...this.#stored, ...NO_CRASH })
    await this.stop()
    const { enabled, autoupdate } = this.#stored
    this.#use(previous.code, { ...previous.stored, enabled, autoupdate })
    this.#store({})
    this.#show({})
    if (previous.wasUp && enabled) await this.start()
    throw new HubError(500, 'install_failed', `Version ${updated.version} does not start: ${problem}`)
  }

  /** Restarts the app with its changed files. If it crashes, there is no previous version to restore. */
  async reload(code: Unpacked): Promise<void> {
    await this.stop()
    if (this.#isRemoved) return
    this.#take(code, { ...this.#stored, ...NO_CRASH, version: code.manifest.version })
    if (this.#stored.enabled) await this.start()
  }

  /** Starts a new version. Resolves to the problem if the version does not start. */
  async #try(): Promise<string | undefined> {
    await this.start()
    const process = this.#supervisor.process()
    if (process === undefined) return this.#stored.enabled ? 'Error: the process did not start' : undefined
    const isReady = await within(this.#world.clock, NEW_VERSION_MS, process.ready)
    if (isReady) return undefined
    if (isReady === undefined) return `it took more than ${NEW_VERSION_MS / 1000} s`
    const { requested, message } = await process.ended
    // If a client stopped the app before it had started, the version did not fail.
    return requested ? undefined : message
  }

  #take(code: Unpacked, stored: StoredApp): void {
    const { usage, state } = this.#record
    this.#use(code, stored)
    this.#store({})
    const { recovered, stateFields } = this.#generation
    this.#show({ ...recovered, ...stateFields(state === 'crashed' ? 'stopped' : state), usage })
  }

  #use(code: Unpacked, stored: StoredApp): void {
    this.#code = code
    this.#stored = stored
    this.#offer = newerVersion(stored, this.#world.packages)
    this.#record = recordAtRest(code, stored, this.#offer, this.#world.host.flavour)
  }

  async #launch(): Promise<AppProcess> {
    const { clock, watch, limits } = this.#world
    const { id, version } = this.#stored
    const { folder, manifest } = this.#code
    const handlers = handlersFor(id, this.#world, (message) => this.#supervisor.process()?.send(message))
    const launch = { id, version, folder, main: manifest.main, memoryLimit: limits.memory }
    const process = await AppProcess.start(launch, clock, this.output, handlers)
    void process.ended.then(() => handlers.end())
    // Send the usage of the new process as soon as it has been measured, without waiting for the interval.
    this.#usageSentAt = Number.NEGATIVE_INFINITY
    watch.add(process, (usage) => this.#see(usage))
    return process
  }

  #enter(state: 'starting' | 'running' | 'stopping'): void {
    const starts = state === 'starting'
    if (state === 'running') this.output.show('running')
    if (starts && !this.#isUpdating) this.#storeIfPossible(NO_CRASH)
    this.#show({ ...(starts && this.#generation.recovered), ...this.#generation.stateFields(state) })
  }

  #onEnd({ requested, code: exitCode, signal: exitSignal, message: crashedMessage }: End): void {
    this.output.show(requested ? 'stopped' : `crashed: ${crashedMessage.split('\n', 1)[0]}`)
    if (requested) return void this.#show({ usage: NO_USAGE, ...this.#generation.stateFields('stopped') })
    if (this.#isUpdating) return
    const crashedCount = this.#stored.crashedCount + 1
    this.#storeIfPossible({ crashed: true, crashedMessage, crashedCount, exitCode, exitSignal })
    this.#show({ ...this.#generation.crash(this.#stored), usage: NO_USAGE })
  }

  #see(usage: Usage): void {
    const now = this.#world.clock.elapsed()
    if (now - this.#usageSentAt < SEND_USAGE_MS) return void this.#keep({ usage })
    this.#usageSentAt = now
    this.#show({ usage })
  }

  #store(changed: Partial<StoredApp>): void {
    this.#stored = { ...this.#stored, ...changed }
    if (!this.#isRemoved) this.#world.state.put(this.#stored)
  }

  /** Stores a change that no client waits for. A failure is only written to the app's output. */
  #storeIfPossible(changed: Partial<StoredApp>): void {
    try {
      this.#store(changed)
    } catch (error) {
      this.output.note(`not stored: ${messageOf(error)}`)
    }
  }

  #keep(patch: Patch): void {
    this.#record = { ...this.#record, ...patch }
    if (!this.#isRemoved) this.#world.records.set(this.#stored.id, this.#record)
  }

  #show(patch: Patch): void {
    this.#keep(patch)
    if (!this.#isRemoved) this.#world.host.sendEvent('app.update', this.#record)
  }
}

function newerVersion({ id, channel, version }: StoredApp, packages: Packages): string | undefined {
  const found = packages.find({ id, channel, present: version })
  return found?.version === version ? undefined : found?.version
}

function recordAtRest({ manifest }: Unpacked, stored: StoredApp, update: string | undefined, flavour: Flavour) {
  const { id, version, enabled, autoupdate, channel, origin, crashed, crashedCount } = stored
  const { name, author, settings, permissions, color } = manifest
  const { stateFields, crash, counter } = GENERATIONS[flavour]
  const seed = { id, name, version, author, enabled, autoupdate, channel, origin, update }
  return {
    ...recordOf({ ...seed, settings, permissions, color, hasDrivers: false }, flavour),
    ...stateFields('stopped'),
    usage: NO_USAGE,
    [counter]: crashedCount,
    ...(crashed && crash(stored)),
  }
}

function handlersFor(id: string, { host, state }: World, sendToApp: (message: HubMessage) => void) {
  const subscriptions = new Map<string, () => void>()
  let ended = false
  const subscribe = (uri: string): void => {
    if (ended || subscriptions.has(uri)) return
    const send = (event: string, payload: unknown) => sendToApp({ type: 'event', uri, event, payload })
    subscriptions.set(uri, host.inApp.subscribe(id, uri, send))
  }
  return {
    answer(request) {
      if (request.type === 'subscribe') return subscribe(request.uri)
      if (request.type === 'call') {
        const { section, item, operation, args } = request
        return host.inApp.call(id, { section, item, operation, args })
      }
      const { operation, name, value } = request
      if (operation === 'get') return state.settings(id).get(name)
      if (operation === 'all') return Object.fromEntries(state.settings(id))
      return operation === 'set' ? state.setSetting(id, name, value) : state.unsetSetting(id, name)
    },
    notice(notice) {
      if (ended) return
      if (notice.type === 'emit') return host.inApp.emit(id, notice.event, notice.payload)
      subscriptions.get(notice.uri)?.()
      subscriptions.delete(notice.uri)
    },
    end() {
      ended = true
      for (const unsubscribe of subscriptions.values()) unsubscribe()
      subscriptions.clear()
    },
  } satisfies AppHandlers & { end(): void }
}
