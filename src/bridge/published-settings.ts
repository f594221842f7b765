/** Publishes the settings that the configuration names. Reads them after each list of apps and after each write. */
import type { Json } from '../base/json.ts'
import type { OwnerOf } from '../contract/publications.ts'
import { asHubError, type HubErrorCode } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import { OPERATIONS } from '../hub/operations.ts'
import type { BridgeSettings } from './bridge-options.ts'
import type { HubStateOptions } from './hub-state.ts'
import { OwnerRows } from './owner-rows.ts'

type Published = BridgeSettings['settings']['publish']

/** Maximum length of a value to publish. A longer value is a database, of no use to people and automations. */
const MAX_LENGTH = 64 * 1024

/** Failures that concern all settings: reading the next setting would fail in the same way. */
const OF_ALL: ReadonlySet<HubErrorCode> = new Set<HubErrorCode>([
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
  /** The hub's configured name. */
  readonly #name: string
  readonly #hub: Hub
  readonly #options: Pick<HubStateOptions, 'live' | 'table' | 'log'>
  /** The settings to publish according to the configuration, keyed by app id and then by name. */
  #published: Published
  /** The rows of the settings, keyed by app and name. */
  readonly #rows = new Map<string, OwnerRows<'setting'>>()
  /** Apps whose settings to read, one request at a time. */
  readonly #due = new Set<string>()
  /** Logged reasons why settings could not be read or published, keyed by app and name. */
  readonly #failures = new Map<string, string>()
  #reading = false

  constructor(name: string, hub: Hub, options: Pick<HubStateOptions, 'live' | 'table' | 'log'>) {
    this.#name = name
    this.#hub = hub
    this.#options = options
    this.#published = options.live.value.settings.publish
  }

  /** Returns whether the configuration publishes a setting, so that the sweep must keep its topic. */
  publishes({ app, name }: Pick<OwnerOf<'setting'>, 'app' | 'name'>): boolean {
    return this.#published.get(app)?.has(name) === true
  }

  /** Number of settings that could not be read or published. */
  get failures(): number {
    return this.#failures.size
  }

  /** The configuration has changed: clears settings that are no longer published, and reads the others. */
  reconfigured(): void {
    this.#failures.clear()
    this.#publish(this.#options.live.value.settings.publish)
    this.refresh()
  }

  /** Clears all published settings, and stops publishing. */
  clear(): void {
    this.#publish(new Map())
  }

  /** Stops publishing, and leaves the topics unchanged. */
  release(): void {
    this.#published = new Map()
  }

  /** Clears the settings of an app that was removed. */
  appGone(app: string): void {
    for (const name of this.#published.get(app)?.keys() ?? []) this.#rows.get(keyOf(app, name))?.clear()
  }

  *rendered(): ReturnType<OwnerRows<'setting'>['rendered']> {
    for (const rows of this.#rows.values()) yield* rows.rendered()
  }

  /** Reads all published settings. Call this after each list of apps, because hubs send no events for settings. */
  refresh(): void {
    for (const app of this.#published.keys()) this.refreshApp(app)
  }

  /** Reads the settings of one app, if any is published. */
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
      if (foreign || OF_ALL.has(code)) return
      for (const name of names) if (!(await this.#readOne(app, name))) return
    }
  }

  /** Reads one setting. Returns whether to continue with the next one. */
  async #readOne(app: string, name: string): Promise<boolean> {
    try {
      // Some hubs respond with `null` for a setting that does not exist.
      this.#hold(app, name, (await this.#hub.call('getAppSetting', { id: app, name })) ?? undefined)
      return true
    } catch (error) {
      const { code, foreign, message } = asHubError(error)
      if (foreign || OF_ALL.has(code)) return false
      if (code === 'unknown_setting') this.#hold(app, name, undefined)
      else this.#noteAll(app, [name], code, message)
      return true
    }
  }

  #hold(app: string, name: string, value: Json | undefined): void {
    // The configuration may have changed since the request.
    if (!this.publishes({ app, name })) return
    try {
      const tooLong = value !== undefined && JSON.stringify(value).length > MAX_LENGTH
      if (tooLong) this.#noteFailure(app, name, 'too_large', 'a setting is too large to be published')
      else this.#failures.delete(keyOf(app, name))
      const rows = this.#rowsOf(app, name)
      if (value === undefined || tooLong) rows.clear()
      else rows.set({ value })
    } catch (err) {
      // Hub data must not crash the daemon, and one setting must not block the others.
      this.#options.log.error({ app, setting: name, err }, 'a setting could not be published')
    }
  }

  /** Records the same failure for several settings. */
  #noteAll(app: string, names: readonly string[], reason: HubErrorCode, why: string): void {
    const message = `a published setting cannot be read, so its last value remains: ${why}`
    for (const name of names) this.#noteFailure(app, name, reason, message)
  }

  /** Logs a failure unless the setting's last one had the same reason. The message does not count, as it may vary. */
  #noteFailure(app: string, name: string, reason: string, message: string): void {
    const hub = this.#name
    const { log } = this.#options
    if (!this.publishes({ app, name }) || this.#failures.get(keyOf(app, name)) === reason) return
    this.#failures.set(keyOf(app, name), reason)
    log.warn({ hub, app, setting: name, reason }, message)
  }

  /** Replaces the settings to publish, and clears those that are no longer published. */
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
