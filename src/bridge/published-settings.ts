/** Publishes the configured settings. Reads them after each list of apps and after each write. */
import type { Json } from '../base/json.ts'
import type { OwnerOf } from '../contract/publications.ts'
import { asHubError, type HubErrorCode } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import { OPERATIONS } from '../hub/operations.ts'
import type { BridgeSettings } from './bridge-options.ts'
import type { HubStateOptions } from './hub-state.ts'
import { OwnerRows } from './owner-rows.ts'

type Published = BridgeSettings['settings']['publish']

/** A longer value is probably a database, which is of no use to people or automations. */
const MAX_LENGTH = 64 * 1024

/** After these failures, reading the next setting would fail in the same way. */
const AFFECTS_ALL: ReadonlySet<HubErrorCode> = new Set<HubErrorCode>([
  'unauthorized',
  'forbidden',
  'subscription',
  'unknown_app',
  'rate_limited',
  'unreachable',
  'no_answer',
])

/** Failures that persist while the hub is online, and are therefore logged. */
const LASTING: ReadonlySet<HubErrorCode> = new Set<HubErrorCode>(['forbidden', 'subscription'])

export class PublishedSettings {
  readonly #name: string
  readonly #hub: Hub
  readonly #options: Pick<HubStateOptions, 'live' | 'table' | 'log'>
  #published: Published
  readonly #rows = new Map<string, OwnerRows<'setting'>>()
  /** Apps whose settings must still be read. The apps are read one after another. */
  readonly #due = new Set<string>()
  /** The logged reasons for failures, keyed by app and name. */
  readonly #failures = new Map<string, string>()
  #reading = false

  constructor(name: string, hub: Hub, options: Pick<HubStateOptions, 'live' | 'table' | 'log'>) {
    this.#name = name
    this.#hub = hub
    this.#options = options
    this.#published = options.live.value.settings.publish
  }

  /** Returns whether the configuration publishes a setting. The sweep keeps the topics of published settings. */
  publishes({ app, name }: Pick<OwnerOf<'setting'>, 'app' | 'name'>): boolean {
    return this.#published.get(app)?.has(name) === true
  }

  get failures(): number {
    return this.#failures.size
  }

  /** Clears settings that are no longer published, and reads all others. */
  reconfigured(): void {
    this.#failures.clear()
    this.#publish(this.#options.live.value.settings.publish)
    this.refresh()
  }

  clear(): void {
    this.#publish(new Map())
  }

  /** Stops publishing, and leaves the topics unchanged. */
  release(): void {
    this.#published = new Map()
  }

  appRemoved(app: string): void {
    for (const name of this.#published.get(app)?.keys() ?? []) this.#rows.get(keyOf(app, name))?.clear()
  }

  *rendered(): ReturnType<OwnerRows<'setting'>['rendered']> {
    for (const rows of this.#rows.values()) yield* rows.rendered()
  }

  /** Call this after each list of apps, because hubs send no events for settings. */
  refresh(): void {
    for (const app of this.#published.keys()) this.refreshApp(app)
  }

  refreshApp(app: string): void {
    if (!this.#published.has(app)) return
    this.#due.add(app)
    if (!this.#reading) void this.#readDue()
  }

  async #readDue(): Promise<void> {
    this.#reading = true
    for (const app of this.#due) {
      this.#due.delete(app)
      await this.#readApp(app)
    }
    this.#reading = false
  }

  async #readApp(app: string): Promise<void> {
    const hub = this.#hub
    const names = [...(this.#published.get(app)?.keys() ?? [])]
    if (!hub.apps.all.has(app)) {
      if (hub.apps.complete) for (const name of names) this.#hold(app, name, undefined)
      return
    }
    const permission = hub.permits('getAppSettings')
    if (permission === 'forbidden') {
      this.#noteAll(app, names, permission, `the API key lacks ${OPERATIONS.getAppSettings.scope}`)
    }
    if (permission === 'yes') await this.#readNamed(app, names)
  }

  async #readNamed(app: string, names: readonly string[]): Promise<void> {
    const hub = this.#hub
    const { log } = this.#options
    try {
      const values = new Map(Object.entries(await hub.call('getAppSettings', { id: app })))
      for (const name of names) this.#hold(app, name, values.get(name))
    } catch (error) {
      // Keep the published values; the settings are read again after the next list of apps.
      const { code, foreign, message } = asHubError(error)
      log.debug({ app, reason: code }, 'the settings of an app could not be read')
      // A single setting, even an unpublished one, can make the whole response unreadable.
      if (LASTING.has(code) && !foreign) this.#noteAll(app, names, code, message)
      if (foreign || AFFECTS_ALL.has(code)) return
      for (const name of names) if (!(await this.#readOne(app, name))) return
    }
  }

  /** Returns whether to continue with the next setting. */
  async #readOne(app: string, name: string): Promise<boolean> {
    try {
      // Some hubs respond with `null` for a setting that does not exist.
      this.#hold(app, name, (await this.#hub.call('getAppSetting', { id: app, name })) ?? undefined)
      return true
    } catch (error) {
      const { code, foreign, message } = asHubError(error)
      if (foreign || AFFECTS_ALL.has(code)) return false
      if (code === 'unknown_setting') this.#hold(app, name, undefined)
      else this.#noteAll(app, [name], code, message)
      return true
    }
  }

  #hold(app: string, name: string, value: Json | undefined): void {
    // Skip a setting that the configuration has stopped publishing since the request.
    if (!this.publishes({ app, name })) return
    const tooLong = value !== undefined && JSON.stringify(value).length > MAX_LENGTH
    if (tooLong) this.#noteFailure(app, name, 'too_large', 'a setting is too large to be published')
    else this.#failures.delete(keyOf(app, name))
    const rows = this.#rowsOf(app, name)
    if (value === undefined || tooLong) rows.clear()
    else rows.set({ value })
  }

  #noteAll(app: string, names: readonly string[], reason: HubErrorCode, why: string): void {
    const message = `a published setting cannot be read, so its last value remains: ${why}`
    for (const name of names) this.#noteFailure(app, name, reason, message)
  }

  /** Logs a failure unless the setting's previous failure had the same reason; the message may vary. */
  #noteFailure(app: string, name: string, reason: string, message: string): void {
    const hub = this.#name
    const { log } = this.#options
    if (!this.publishes({ app, name }) || this.#failures.get(keyOf(app, name)) === reason) return
    this.#failures.set(keyOf(app, name), reason)
    log.warn({ hub, app, setting: name, reason }, message)
  }

  #publish(wanted: Published): void {
    const before = this.#published
    this.#published = wanted
    for (const [app, names] of before) {
      for (const name of names.keys()) if (!this.publishes({ app, name })) this.#rowsOf(app, name).clear()
    }
  }

  #rowsOf(app: string, name: string): OwnerRows<'setting'> {
    const key = keyOf(app, name)
    const hub = this.#name
    const rows = this.#rows.get(key) ?? new OwnerRows({ kind: 'setting', hub, app, name }, this.#options.table)
    this.#rows.set(key, rows)
    return rows
  }
}

const keyOf = (app: string, name: string) => `${app} ${name}`
