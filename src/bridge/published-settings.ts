/** The settings that configuration publishes by name: read with each list, and after our own writes. */
import type { Json } from '../base/json.ts'
import type { OwnerOf } from '../contract/publications.ts'
import { asHubError, type HubErrorCode } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import { OPERATIONS } from '../hub/operations.ts'
import type { BridgeSettings } from './bridge-options.ts'
import type { HubStateOptions } from './hub-state.ts'
import { OwnerRows } from './owner-rows.ts'

type Published = BridgeSettings['settings']['publish']

/** A state is read by people and automations; a larger value is a database and is not published. */
const MAX_LENGTH = 64 * 1024

/** Failures that do not concern a single setting: the next one would fail in the same way. */
const OF_ALL: ReadonlySet<HubErrorCode> = new Set<HubErrorCode>([
  'unauthorized',
  'forbidden',
  'subscription',
  'unknown_app',
  'rate_limited',
  'unreachable',
  'no_answer',
])

/** Those of them that do not also make the hub offline. */
const LASTING: ReadonlySet<HubErrorCode> = new Set<HubErrorCode>(['forbidden', 'subscription'])

export class PublishedSettings {
  /** The hub's configured name. */
  readonly #name: string
  readonly #hub: Hub
  readonly #options: Pick<HubStateOptions, 'live' | 'table' | 'log'>
  /** App id → name of the setting → what it holds; as configuration said when it was last looked at. */
  #published: Published
  /** The settings that the hub has, or had. */
  readonly #rows = new Map<string, OwnerRows<'setting'>>()
  /** Apps to read; the hub is asked for one at a time. */
  readonly #due = new Set<string>()
  /** Settings that are not published as the hub has them → why, as the log has said. */
  readonly #failures = new Map<string, string>()
  #reading = false

  constructor(name: string, hub: Hub, options: Pick<HubStateOptions, 'live' | 'table' | 'log'>) {
    this.#name = name
    this.#hub = hub
    this.#options = options
    this.#published = options.live.value.settings.publish
  }

  /** Whether a setting is published: what the broker holds of it is not to be swept unread. */
  publishes({ app, name }: Pick<OwnerOf<'setting'>, 'app' | 'name'>): boolean {
    return this.#published.get(app)?.has(name) === true
  }

  /** How many settings are not published as the hub has them. */
  get failures(): number {
    return this.#failures.size
  }

  /** Configuration has changed: clears what is published no longer, and reads the others. */
  reconfigured(): void {
    const before = this.#published
    this.#published = this.#options.live.value.settings.publish
    this.#failures.clear()
    this.#clearUnpublished(before)
    this.refresh()
  }

  /** Clears what is published, and publishes nothing any more. */
  clear(): void {
    const before = this.#published
    this.release()
    this.#clearUnpublished(before)
  }

  /** Publishes nothing any more, and leaves what is published. */
  release(): void {
    this.#published = new Map()
  }

  /** Clears the settings of an app that is gone. */
  appGone(app: string): void {
    for (const name of this.#published.get(app)?.keys() ?? []) this.#rows.get(keyOf(app, name))?.clear()
  }

  /** Renders what the broker should hold. */
  *rendered(): ReturnType<OwnerRows<'setting'>['rendered']> {
    for (const rows of this.#rows.values()) yield* rows.rendered()
  }

  /** Reads all of them: call after each read of the list, as hubs send no events for settings. */
  refresh(): void {
    for (const app of this.#published.keys()) this.refreshApp(app)
  }

  /** Reads those of one app, if any of its settings is published. */
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
      // What is published stays until it is known better; the next read of the list comes back to it.
      const { code, foreign, message } = asHubError(error)
      log.debug({ app, reason: code }, 'the settings of an app could not be read')
      // One setting, which need not be published, can make the whole answer unreadable.
      if (LASTING.has(code) && !foreign) this.#noteAll(app, names, code, message)
      if (foreign || OF_ALL.has(code)) return
      for (const name of names) if (!(await this.#readOne(app, name))) return
    }
  }

  /** @returns whether the next one is worth a request */
  async #readOne(app: string, name: string): Promise<boolean> {
    try {
      // A hub may answer `null` for a setting that is not there.
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
    // Configuration may have changed since the hub was asked.
    if (!this.publishes({ app, name })) return
    try {
      const tooLong = value !== undefined && JSON.stringify(value).length > MAX_LENGTH
      if (tooLong) this.#noteFailure(app, name, 'too_large', 'a setting is too large to be published')
      else this.#failures.delete(keyOf(app, name))
      const rows = this.#rowsOf(app, name)
      if (value === undefined || tooLong) rows.clear()
      else rows.set({ value })
    } catch (err) {
      // What comes from a hub must not end the daemon, and one setting must not keep the others back.
      this.#options.log.error({ app, setting: name, err }, 'a setting could not be published')
    }
  }

  /** These cannot be read. */
  #noteAll(app: string, names: readonly string[], reason: HubErrorCode, why: string): void {
    const message = `a published setting cannot be read, and stays as it was: ${why}`
    for (const name of names) this.#noteFailure(app, name, reason, message)
  }

  /** Logs a failure unless the latest one of that setting had the same reason: the hub's words may differ each time. */
  #noteFailure(app: string, name: string, reason: string, message: string): void {
    const hub = this.#name
    const { log } = this.#options
    if (!this.publishes({ app, name }) || this.#failures.get(keyOf(app, name)) === reason) return
    this.#failures.set(keyOf(app, name), reason)
    log.warn({ hub, app, setting: name, reason }, message)
  }

  #clearUnpublished(before: Published): void {
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
