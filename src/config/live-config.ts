/** Holds the current configuration, and replaces it as a whole when its sources are read again. */
import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Credentials } from '../mqtt/types.ts'
import type { Loaded } from './load.ts'
import { ConfigError } from './mistakes.ts'
import type { Config, Live } from './options.ts'
import { differences, takeOver } from './reload.ts'

export type Load = () => Loaded

export type Reloaded = { readonly before: Config; readonly after: Config }

/** How long the hubs are kept after `hubs_dir` has become empty, because its volume may be unmounted only briefly. */
export const EMPTY_MS = 60_000

type Log = Logger & { addSecret(secret: string): void }

export class LiveConfig implements Live {
  /** Only this class replaces the value, and only as a whole. */
  value: Config
  onReplaced: (config: Config) => void = () => {}
  awaitsHubs = false
  readonly #load: Load
  readonly #log: Log
  readonly #clock: Clock
  /** Number of files in the folder of `hubs_dir` when it was last applied; `null` if no folder is configured. */
  #hubFiles: number | null
  #isRecheck = false
  /** The mistakes that were found when the sources were last read. */
  #mistakes: readonly string[] = []
  #onReload: (reloaded: Reloaded | undefined) => void = () => {}
  #cancelRecheck: () => void = () => {}

  constructor(
    { config, hubFiles = null }: Pick<Loaded, 'config'> & Partial<Loaded>,
    load: Load,
    log: Log,
    clock: Clock,
  ) {
    this.value = config
    this.#hubFiles = hubFiles
    this.#load = load
    this.#log = log
    this.#clock = clock
  }

  /** @param onReload called after each reload, with the changes if the new configuration was applied */
  start(onReload: (reloaded: Reloaded | undefined) => void): void {
    this.#onReload = onReload
    if (this.#hubFiles === 0) this.#awaitHubs()
  }

  readonly stop = (): void => this.#cancelRecheck()

  /**
   * Applies the changes that can take effect at run time, and logs all others. Ignores an invalid configuration.
   * @param isRetry whether to skip logging mistakes that are already in the log
   * @returns whether the configuration was valid
   */
  readonly reload = (isRetry = false): boolean => {
    const log = this.#log
    try {
      const loaded = this.#readValid(isRetry)
      if (loaded === undefined) {
        if (!isRetry) this.#onReload(undefined)
        return false
      }
      const before = this.value
      const after = takeOver(before, loaded.config)
      this.#replace(after)
      this.#onReload({ before, after })
      // Log the changes last, so that the lines are written in the new format and at the new level.
      log.info({ changed: differences(before, after) }, 'configuration read again')
      const later = differences(after, loaded.config)
      if (later.length > 0) log.warn({ options: later }, `takes effect at the next start: ${later.join(', ')}`)
    } catch (err) {
      log.error({ err }, 'the new configuration was applied only in part, because of a bug in hub2mqtt')
    }
    return true
  }

  /** Returns `undefined` if the new configuration is invalid. Includes the current hubs if they must be kept. */
  #readValid(isRetry: boolean): Loaded | undefined {
    const log = this.#log
    const { loaded, isKnown } = this.#readAgain()
    if (loaded instanceof ConfigError) {
      if (isRetry && isKnown) return undefined
      for (const mistake of loaded.mistakes) log.error(`configuration: ${mistake}`)
      log.error('invalid configuration; the previous one stays in effect')
      return undefined
    }
    for (const warning of loaded.warnings) log.warn(warning)
    if (!this.#mustKeepHubs(loaded.hubFiles)) return loaded
    return { ...loaded, config: { ...loaded.config, hubs: { ...this.value.hubs, ...loaded.config.hubs } } }
  }

  #replace(config: Config): void {
    this.value = config
    this.onReplaced(config)
  }

  /** Returns whether the folder became empty less than a minute ago, so that its hubs are kept for now. */
  #mustKeepHubs(hubFiles: number | null): boolean {
    if (hubFiles !== 0 || this.#isRecheck) {
      this.#cancelRecheck()
      this.awaitsHubs = false
      this.#hubFiles = hubFiles
    } else if (this.#hubFiles && !this.awaitsHubs) this.#awaitHubs()
    return this.awaitsHubs && this.#hubFiles !== 0
  }

  #awaitHubs(): void {
    const seconds = EMPTY_MS / 1000
    this.#log.warn(
      `the folder of hubs_dir has no files: the topics of its hubs stay for ${seconds} s and are then removed`,
    )
    this.awaitsHubs = true
    this.#recheckLater()
  }

  #recheckLater(): void {
    this.#cancelRecheck = this.#clock.after(EMPTY_MS, () => {
      this.#isRecheck = true
      this.reload()
      this.#isRecheck = false
      // If the folder still could not be read, check it again later.
      if (this.awaitsHubs) this.#recheckLater()
    })
  }

  /** Call this when a hub has rejected its key. Returns whether there is a new key, which the hub then uses. */
  renewKey(name: string): boolean {
    const now = this.value.hubs[name]
    const next = this.#reread()?.hubs[name]
    if (now === undefined || next === undefined || next.url !== now.url || next.api_key === now.api_key) return false
    this.#replace({ ...this.value, hubs: { ...this.value.hubs, [name]: { ...now, api_key: next.api_key } } })
    this.#log.info({ hub: name }, 'the hub refused the API key; using the new one from the configuration')
    return true
  }

  /** Reads the user name and password for the broker again. Call this when the broker has rejected them. */
  readonly credentials = (): Credentials => this.#renewLogin('mqtt', ({ mqtt }) => mqtt.url)

  /** Reads the user name and password for NATS again. Call this when NATS has rejected them. */
  readonly natsCredentials = (): Credentials => this.#renewLogin('fleet', ({ fleet }) => fleet.nats)

  #renewLogin(section: 'mqtt' | 'fleet', addressOf: (config: Config) => unknown): Credentials {
    const next = this.#reread()
    if (next !== undefined && isDeepStrictEqual(addressOf(next), addressOf(this.value))) {
      const { username, password } = next[section]
      this.#replace({ ...this.value, [section]: { ...this.value[section], username, password } })
    }
    const { username, password } = this.value[section]
    return { username: username ?? undefined, password: password ?? undefined }
  }

  /** Reads the sources again to find a changed secret. */
  #reread(): Config | undefined {
    const { loaded, isKnown } = this.#readAgain()
    if (!(loaded instanceof ConfigError)) return loaded.config
    const { mistakes } = loaded
    if (!isKnown) this.#log.warn({ mistakes }, 'refused credentials cannot be read again: the configuration is invalid')
    return undefined
  }

  /** Reads the sources. Also returns whether the previous read found the same mistakes. */
  #readAgain() {
    const loaded = this.#read()
    const known = this.#mistakes
    this.#mistakes = loaded instanceof ConfigError ? loaded.mistakes : []
    return { loaded, isKnown: isDeepStrictEqual(known, this.#mistakes) }
  }

  #read(): Loaded | ConfigError {
    try {
      const loaded = this.#load()
      for (const secret of loaded.secrets) this.#log.addSecret(secret)
      return loaded
    } catch (error) {
      if (error instanceof ConfigError) return error
      // The previous configuration stays in effect in any case.
      this.#log.error({ err: error }, 'the configuration could not be read because of a bug in hub2mqtt')
      return new ConfigError(['it cannot be read'])
    }
  }
}
