import { type Clock, systemClock } from '../../base/clock.ts'
import { listed } from '../../base/text.ts'
import type { AppRequest, AppsHost, HubApps, InstallRequest } from '../core/hub-apps.ts'
import { localesIn } from '../data/app-folder.ts'
import type { Packages, Unpacked } from '../data/packages.ts'
import { addSettings, newApp, type SqliteState, type StoredApp } from '../data/state.ts'
import { HubError, messageOf } from '../hub-error.ts'
import { type AppRecord, GENERATIONS, type Patch } from '../records.ts'
import { InstalledApp, type World } from './installed-app.ts'
import { LIMITS, type Limits, watchUsage } from './watch.ts'

const OFFERS_MS = 5000

export class ProcessApps implements HubApps {
  readonly records = new Map<string, AppRecord>()
  readonly #apps = new Map<string, InstalledApp>()
  readonly #world: World
  readonly #installing = new Set<string>()
  #isDown = false
  #cancelOffers = () => {}
  /** Processes of uninstalled apps that have not exited yet. */
  readonly #leaving = new Map<string, Promise<void>>()

  constructor(
    options: {
      readonly state: SqliteState
      readonly packages: Packages
      readonly limits?: Partial<Limits> | undefined
      readonly clock?: Clock | undefined
      readonly onLine?: World['onLine']
    },
    host: AppsHost,
  ) {
    const { state, packages, clock = systemClock } = options
    const limits = { ...LIMITS, ...options.limits }
    const { records } = this
    const watch = watchUsage(clock, limits)
    const isDown = () => this.#isDown
    this.#world = { clock, state, packages, host, limits, watch, records, isDown, onLine: options.onLine }
    for (const stored of state.apps()) this.#add(this.#codeOf(stored), stored)
  }

  readonly settings = (id: string): ReadonlyMap<string, unknown> => this.#world.state.settings(id)

  setSetting(id: string, name: string, value: unknown): void {
    this.#world.state.setSetting(id, name, value)
    this.#apps.get(id)?.notifySetting(name, value)
  }

  unsetSetting(id: string, name: string): void {
    this.#world.state.unsetSetting(id, name)
    this.#apps.get(id)?.notifySetting(name)
  }

  change(id: string, patch: Patch): void {
    const { autoupdate } = patch
    this.#must(id).change(typeof autoupdate === 'boolean' ? { autoupdate } : {}, patch)
  }

  async install({ id, channel, version }: InstallRequest): Promise<void> {
    const present = this.#apps.get(id)
    const { channel: previous, version: installed } = present?.stored ?? {}
    const offer = this.#world.packages.find({ id, channel: channel ?? previous, version, present: installed })
    if (offer === undefined) throw new HubError(404, 'not_found', 'The store has no such app')
    if (this.#installing.has(id)) throw new HubError(409, 'already_installing', 'The app is being installed')
    this.#installing.add(id)
    try {
      await this.#leaving.get(id)
      const code = await this.#world.packages.unpack(offer).catch((error: unknown) => {
        throw new HubError(500, 'install_failed', messageOf(error))
      })
      if (present === undefined) await this.#installNew(code, channel)
      else await this.#update(present, code, channel)
    } finally {
      this.#installing.delete(id)
    }
  }

  uninstall(id: string, options: { purgeSettings: boolean }): void {
    const app = this.#must(id)
    this.#world.state.remove(id, options)
    this.#apps.delete(id)
    this.records.delete(id)
    this.#world.host.sendEvent('app.delete', { id })
    const removal = app
      .leave()
      .then(() => this.#world.packages.discard(app.stored.folder))
      .finally(() => this.#leaving.delete(id))
    this.#leaving.set(id, removal)
    removal.catch(() => {})
  }

  readonly enable = (id: string): void => this.#enable(id, true)
  readonly disable = (id: string): void => this.#enable(id, false)

  #enable(id: string, enabled: boolean): void {
    const app = this.#must(id)
    if (app.stored.enabled === enabled) return
    app.change({ enabled }, { enabled })
    void (enabled ? app.start() : app.stop())
  }

  restart(id: string): void {
    const app = this.#must(id)
    if (app.stored.enabled) void app.start()
  }

  /** Restarts an app that runs in place after its files have changed. */
  async reload(id: string, folder: string, paths: readonly string[]): Promise<void> {
    const app = this.#apps.get(id)
    if (app?.stored.folder !== folder || this.#installing.has(id)) return
    if (paths.length === 0) return app.output.show('the folder of the app no longer exists')
    app.output.show(`changed: ${listed(paths, 3)}`)
    this.#installing.add(id)
    try {
      const code = this.#world.packages.adopt(folder)
      if (code.manifest.id !== id) throw new Error(`app.json: has another id, ${code.manifest.id}; start the hub again`)
      addSettings(this.#world.state, id, code.manifest.settings)
      await app.reload(code)
    } catch (error) {
      app.output.show(`not restarted: ${messageOf(error)}`)
    } finally {
      this.#installing.delete(id)
    }
  }

  readonly collectGarbage = (id: string): Promise<void> => this.#must(id).collectGarbage()
  readonly output = (id: string): string => this.#must(id).output.toString()
  readonly locales = (id: string): Readonly<Record<string, unknown>> => localesIn(this.#must(id).stored.folder)
  readonly request = (id: string, request: AppRequest): Promise<unknown> =>
    Promise.try(() => this.#must(id).process.request({ type: 'request', ...request, body: request.body ?? null }))
  readonly crash = (id: string): void => this.#must(id).process.send({ type: 'crash' })

  /** Returns the id of the app's process; `undefined` while the app is not running. */
  readonly pid = (id: string): number | undefined => this.#must(id).pid

  async start(): Promise<void> {
    this.#isDown = false
    this.#checkForUpdates()
    await Promise.all([...this.#apps.values()].filter((app) => app.stored.enabled).map((app) => app.start()))
  }

  async stop(): Promise<void> {
    this.#isDown = true
    this.#cancelOffers()
    await Promise.allSettled([...[...this.#apps.values()].map((app) => app.stop()), ...this.#leaving.values()])
    this.#world.watch.stop()
  }

  /** Checks the store for new versions regularly, because versions may be added at any time. */
  #checkForUpdates(): void {
    this.#cancelOffers()
    this.#cancelOffers = this.#world.clock.after(OFFERS_MS, () => {
      for (const app of this.#apps.values()) app.checkForUpdate()
      this.#checkForUpdates()
    })
  }

  #must(id: string): InstalledApp {
    const app = this.#apps.get(id)
    if (app === undefined) throw new HubError(404, 'not_found', 'App Not Found')
    return app
  }

  #add(code: Unpacked, stored: StoredApp): InstalledApp {
    const app = new InstalledApp(code, stored, this.#world)
    this.#apps.set(stored.id, app)
    return app
  }

  /** Returns the code of an app. If the code no longer exists, the app's start fails as in a crash. */
  #codeOf({ id, version, folder }: StoredApp): Unpacked {
    try {
      return this.#world.packages.adopt(folder)
    } catch {
      return { folder, manifest: { id, name: id, version, main: 'app.js', permissions: [], channel: 'stable' } }
    }
  }

  async #installNew({ folder, manifest }: Unpacked, channel: string | undefined): Promise<void> {
    const { state, host } = this.#world
    const { id, version, settings } = manifest
    const [usual = ''] = GENERATIONS[host.flavour].channels
    const stored = newApp({ id, folder, version, channel: channel ?? usual, origin: 'appstore' })
    state.transaction(() => {
      state.put(stored)
      addSettings(state, id, settings)
    })
    const app = this.#add({ folder, manifest }, stored)
    host.sendEvent('app.create', this.records.get(id))
    await app.start()
  }

  async #update(app: InstalledApp, code: Unpacked, channel: string | undefined): Promise<void> {
    const previous = app.stored.folder
    const { state } = this.#world
    const { id, settings } = code.manifest
    const added = state.transaction(() => addSettings(state, id, settings))
    try {
      await app.replace(code, channel === undefined ? {} : { channel })
    } catch (error) {
      state.transaction(() => {
        for (const name of added) state.unsetSetting(id, name)
      })
      await this.#world.packages.discard(code.folder)
      throw error
    }
    await this.#world.packages.discard(previous)
  }
}
