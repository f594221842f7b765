/** The first run: finds hubs, tries what was chosen, and writes it into the configuration file. */
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../../base/clock.ts'
import type { Loaded } from '../../../config/load.ts'
import { ConfigError } from '../../../config/mistakes.ts'
import type { Config } from '../../../config/options.ts'
import { isOurs, textOf, writeWhole } from '../../../config/own-file.ts'
import { environmentName, valueAt } from '../../../config/table.ts'
import type { Setup as Look, SetupApply, SetupBroker, SetupDone, SetupHub, SetupTest } from '../api/protocol.ts'
import { type SetupDoor, SetupRefusal } from '../api/setup.ts'
import { type Checked, checkBroker, checkHub } from './choice.ts'
import { Pace } from './pace.ts'
import type { FoundHub } from './search.ts'
import { type Choice, linesOf, withChoice } from './text.ts'
import { tryBroker, tryHub } from './trials.ts'

export interface SetupOptions {
  /** The present configuration, which names no hub. */
  readonly config: Config
  /** The configuration file that was named, there or not. */
  readonly path: string | null
  /** The configuration as it would be with this text in the file. @throws ConfigError */
  readonly check: (text: string) => Loaded
  readonly search: () => Promise<readonly FoundHub[]>
  /** Starts and ends the embedded broker. @returns where it can be reached, or why it cannot be started */
  readonly tryEmbedded: (config: Config) => Promise<{ readonly url: string } | { readonly why: string }>
  readonly log: { addSecret(secret: string): void; warn(fields: object, message: string): void }
  readonly clock: Clock
  /** Called once, when the file is written and whoever wanted that has heard of it. */
  readonly onWritten: () => void
}

const KEEP_FOUND_MS = 10_000
const DONE = 'The set-up was finished meanwhile, perhaps in another tab.'

export class Setup implements SetupDoor {
  readonly #options: SetupOptions
  readonly #pace: Pace
  #search: { readonly at: number; readonly found: Promise<readonly FoundHub[]> } | undefined
  #state: 'open' | 'applying' | 'written' = 'open'

  constructor(options: SetupOptions) {
    this.#options = options
    this.#pace = new Pace(options.clock)
  }

  async look(): Promise<Look> {
    const { config, path } = this.#options
    const isWritable = path !== null && (await isOurs(path))
    return {
      path: isWritable ? path : null,
      broker: config.mqtt.url?.join(', ') ?? 'embedded',
      found: [...(await this.#found())],
    }
  }

  /** One search serves all who ask within ten seconds. */
  #found(): Promise<readonly FoundHub[]> {
    const { search, clock } = this.#options
    const now = clock.elapsed()
    if (this.#search === undefined || now - this.#search.at > KEEP_FOUND_MS) this.#search = { at: now, found: search() }
    return this.#search.found
  }

  async testHub(given: SetupHub): Promise<SetupTest> {
    const { config, clock } = this.#options
    const checked = checkHub(given)
    if (checked.wrong !== undefined) return failed(checked.wrong)
    const { chosen, hub } = checked.value
    this.#protect(chosen.api_key)
    return await this.#pace.run(() => tryHub({ name: chosen.name, hub, config, clock }))
  }

  async testBroker(given: SetupBroker): Promise<SetupTest> {
    const checked = checkBroker(given, this.#options.config)
    if (checked.wrong !== undefined) return failed(checked.wrong)
    const { config } = checked.value
    this.#protect(config.mqtt.password)
    return await this.#pace.run(() => this.#tryBroker(config))
  }

  async #tryBroker(config: Config): Promise<SetupTest> {
    if (config.mqtt.url !== null) return await tryBroker(config, this.#options.clock)
    const tried = await this.#options.tryEmbedded(config)
    if ('why' in tried) return failed([tried.why])
    return { ok: true, message: `the embedded broker can be started, at ${tried.url}` }
  }

  async apply(wanted: SetupApply): Promise<SetupDone> {
    if (this.#state !== 'open') throw new SetupRefusal('conflict', DONE)
    this.#state = 'applying'
    try {
      const done = await this.#apply(wanted)
      if (done.written !== null) this.#state = 'written'
      return done
    } finally {
      if (this.#state === 'applying') this.#state = 'open'
    }
  }

  answered(): void {
    if (this.#state === 'written') this.#options.onWritten()
  }

  async #apply({ hub, broker }: SetupApply): Promise<SetupDone> {
    const { path } = this.#options
    const choice: Choice = {
      hub: valid(checkHub(hub)).chosen,
      broker: valid(checkBroker(broker, this.#options.config)).chosen,
    }
    this.#protect(choice.hub.api_key)
    this.#protect(choice.broker?.password)
    const lines = linesOf(choice, path === null ? 'environment' : 'file')
    if (path === null || !(await isOurs(path))) return { written: null, lines }
    const text = await this.#textWith(choice, path)
    try {
      await writeWhole(path, text)
    } catch (err) {
      this.#options.log.warn({ err, path }, 'the configuration file could not be written')
      return { written: null, lines }
    }
    return { written: path, lines }
  }

  /** The file's next text, which the bridge can begin with. */
  async #textWith(choice: Choice, path: string): Promise<string> {
    const text = textOf(path)
    if (Object.keys(this.#check(text).hubs).length > 0) {
      throw new SetupRefusal('conflict', `${path} names a hub by now; restart hub2mqtt.`)
    }
    const next = withChoice(text, choice)
    const config = this.#check(next)
    const stronger = strongerVariable(config, choice)
    if (stronger !== undefined) {
      throw new SetupRefusal(
        'conflict',
        `${stronger} is set and wins over the file: change it there, or choose the same.`,
      )
    }
    if (config.mqtt.url === null) {
      const tried = await this.#options.tryEmbedded(config)
      if ('why' in tried) throw new SetupRefusal('conflict', tried.why)
    }
    return next
  }

  #check(text: string): Config {
    try {
      return this.#options.check(text).config
    } catch (error) {
      if (error instanceof ConfigError) throw new SetupRefusal('invalid', error.message)
      throw error
    }
  }

  #protect(secret: string | null | undefined): void {
    if (secret) this.#options.log.addSecret(secret)
  }
}

const failed = (lines: readonly string[]): SetupTest => ({ ok: false, message: lines.join('\n') })

function valid<T>(checked: Checked<T>): T {
  if (checked.wrong !== undefined) throw new SetupRefusal('invalid', checked.wrong.join('\n'))
  return checked.value
}

/** The variable that keeps something else than the choice. */
function strongerVariable({ mqtt }: Config, { broker }: Choice): string | undefined {
  const differs = Object.entries(broker ?? {}).find(([key, value]) => !isDeepStrictEqual(valueAt(mqtt, key), value))
  return differs && environmentName(`mqtt.${differs[0]}`)
}
