/** The settings that configuration publishes by name: read with each list, and after our own writes. */
import type { Logger } from 'pino'
import type { Json } from '../base/json.ts'
import type { PublishedSetting } from '../config/settings.ts'
import type { OwnerOf } from '../contract/publications.ts'
import { HubError, type HubErrorCode } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import type { Holdings } from './holdings.ts'

/** App id → name of the setting → what it holds. */
export type SettingsToPublish = ReadonlyMap<string, ReadonlyMap<string, PublishedSetting>>

/** A state is read by people and automations; what is larger is a database and stays where it is. */
const MAX_LENGTH = 64 * 1024

/** Failures that say nothing of a single setting: the next one would fail in the same way. */
const OF_ALL: ReadonlySet<HubErrorCode> = new Set<HubErrorCode>([
  'unauthorized',
  'forbidden',
  'subscription',
  'unknown_app',
  'rate_limited',
  'unreachable',
  'no_answer',
])

const isOfAll = ({ code, foreign }: HubError) => foreign || OF_ALL.has(code)

export interface PublishedSettingsOptions {
  /** The hub's configured name. */
  readonly name: string
  readonly hub: Hub
  readonly settings: SettingsToPublish
  readonly holdings: Pick<Holdings, 'set' | 'drop'>
  readonly log: Logger
}

export class PublishedSettings {
  readonly #options: PublishedSettingsOptions
  /** Apps to read; the hub is asked for one at a time. */
  readonly #due = new Set<string>()
  /** Settings that are not published as the hub has them → why, as the log has said. */
  readonly #failures = new Map<string, string>()
  #reading = false
  #retired = false

  constructor(options: PublishedSettingsOptions) {
    this.#options = options
  }

  /** Whether a setting is published: what the broker holds of it is not to be swept unread. */
  publishes({ app, name }: OwnerOf<'setting'>): boolean {
    return this.#options.settings.get(app)?.has(name) === true
  }

  /** How many settings are not published as the hub has them. */
  get failures(): number {
    return this.#failures.size
  }

  /** Clears what is published, except where the successor publishes too. */
  retire(successor?: PublishedSettings): void {
    const { holdings, settings } = this.#options
    this.#retired = true
    for (const [app, names] of settings) {
      for (const name of names.keys()) {
        const owner = this.#owner(app, name)
        if (!successor?.publishes(owner)) holdings.drop(owner)
      }
    }
  }

  /** Publishes nothing any more, and leaves what is published. */
  abandon(): void {
    this.#retired = true
  }

  /** Reads all of them: call after each read of the list, as no event tells of a setting. */
  refresh(): void {
    for (const app of this.#options.settings.keys()) this.refreshApp(app)
  }

  /** Reads those of one app, if any of its settings is published. */
  refreshApp(app: string): void {
    if (!this.#options.settings.has(app)) return
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
    const { hub, log, settings } = this.#options
    const names = [...(settings.get(app)?.keys() ?? [])]
    if (!hub.apps.all.has(app)) {
      if (hub.apps.complete) for (const name of names) this.#hold(app, name, undefined)
      return
    }
    if (hub.permits('getAppSettings') !== 'yes') return
    try {
      const values = new Map(Object.entries(await hub.call('getAppSettings', { id: app })))
      for (const name of names) this.#holdSafely(app, name, values.get(name))
    } catch (error) {
      // What is published stays until it is known better; the next read of the list comes back to it.
      if (!(error instanceof HubError)) throw error
      log.debug({ app, reason: error.code }, 'the settings of an app could not be read')
      // One setting, which need not be published, can make the whole answer unreadable.
      if (isOfAll(error)) return
      for (const name of names) if (!(await this.#readOne(app, name))) return
    }
  }

  /** @returns whether the next one is worth a request */
  async #readOne(app: string, name: string): Promise<boolean> {
    try {
      // A hub may answer `null` for a setting that is not there.
      this.#holdSafely(app, name, (await this.#options.hub.call('getAppSetting', { id: app, name })) ?? undefined)
      return true
    } catch (error) {
      if (!(error instanceof HubError)) throw error
      if (isOfAll(error)) return false
      if (error.code === 'unknown_setting') this.#holdSafely(app, name, undefined)
      else
        this.#noteFailure(
          app,
          name,
          error.code,
          `a published setting cannot be read, and stays as it was: ${error.message}`,
        )
      return true
    }
  }

  /** What comes from a hub must not end the daemon, and one setting must not keep the others back. */
  #holdSafely(app: string, name: string, value: Json | undefined): void {
    try {
      this.#hold(app, name, value)
    } catch (error) {
      this.#options.log.error({ app, setting: name, err: error }, 'a setting could not be published')
    }
  }

  #hold(app: string, name: string, value: Json | undefined): void {
    if (this.#retired) return
    const { holdings } = this.#options
    const tooLong = value !== undefined && JSON.stringify(value).length > MAX_LENGTH
    if (tooLong) this.#noteFailure(app, name, 'too_large', 'a setting is too large to be published')
    else this.#failures.delete(keyOf(app, name))
    const owner = this.#owner(app, name)
    if (value === undefined || tooLong) holdings.drop(owner)
    else holdings.set(owner, { value })
  }

  /** Logs a failure unless the latest one of that setting had the same reason: the hub's words may differ each time. */
  #noteFailure(app: string, name: string, reason: string, message: string): void {
    const { name: hub, log } = this.#options
    if (this.#retired || this.#failures.get(keyOf(app, name)) === reason) return
    this.#failures.set(keyOf(app, name), reason)
    log.warn({ hub, app, setting: name, reason }, message)
  }

  #owner(app: string, name: string): OwnerOf<'setting'> {
    return { kind: 'setting', hub: this.#options.name, app, name }
  }
}

const keyOf = (app: string, name: string) => `${app} ${name}`
