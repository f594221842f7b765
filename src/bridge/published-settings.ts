/** The settings that configuration publishes by name: read with each list, and after our own writes. */
import type { Logger } from 'pino'
import type { Json } from '../base/json.ts'
import type { PublishedSetting } from '../config/settings.ts'
import type { OwnerOf } from '../contract/publications.ts'
import { HubError } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import type { Holdings } from './holdings.ts'

/** App id → name of the setting → what it holds. */
export type SettingsToPublish = ReadonlyMap<string, ReadonlyMap<string, PublishedSetting>>

/** A state is read by people and automations; what is larger is a database and stays where it is. */
const MAX_LENGTH = 64 * 1024

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
  #reading = false
  #retired = false

  constructor(options: PublishedSettingsOptions) {
    this.#options = options
  }

  /** Whether a setting is published: what the broker holds of it is not to be swept unread. */
  publishes({ app, name }: OwnerOf<'setting'>): boolean {
    return this.#options.settings.get(app)?.has(name) === true
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
    const names = settings.get(app)?.keys() ?? []
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
    const { holdings, log } = this.#options
    const tooLong = value !== undefined && JSON.stringify(value).length > MAX_LENGTH
    if (tooLong) log.warn({ app, setting: name }, 'a setting is too large to be published')
    const owner = this.#owner(app, name)
    if (value === undefined || tooLong) holdings.drop(owner)
    else holdings.set(owner, { value })
  }

  #owner(app: string, name: string): OwnerOf<'setting'> {
    return { kind: 'setting', hub: this.#options.name, app, name }
  }
}
