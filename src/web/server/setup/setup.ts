import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../../base/clock.ts'
import { examineBroker } from '../../../cli/doctor/broker.ts'
import type { Finding } from '../../../cli/doctor/finding.ts'
import { examineHub } from '../../../cli/doctor/hub.ts'
import type { Loaded } from '../../../config/load.ts'
import { ConfigError } from '../../../config/mistakes.ts'
import type { Config } from '../../../config/options.ts'
import { isOurs, textOf, writeWhole } from '../../../config/own-file.ts'
import { environmentName, valueAt } from '../../../config/table.ts'
import { shownText } from '../../../observability/controls.ts'
import { Scrubber } from '../../../observability/scrub.ts'
import type { SetupApply, SetupBroker, SetupDone, SetupHub, Setup as SetupState, SetupTest } from '../api/protocol.ts'
import { Refusal, retryAfter } from '../reply.ts'
import { type Checked, type Choice, checkBroker, checkHub, linesOf, withChoice } from './choice.ts'

export interface SetupOptions {
  readonly config: Config
  /** The path of the configuration file, which might not exist yet. */
  readonly path: string | null
  /** Loads the configuration with this text in place of the file. @throws ConfigError */
  readonly check: (text: string) => Loaded
  readonly search: () => Promise<SetupState['found']>
  /** Starts and stops the embedded broker. Resolves to its address, or to the reason why it cannot be started. */
  readonly tryEmbedded: (config: Config) => Promise<{ readonly url: string } | { readonly why: string }>
  readonly log: { addSecret(secret: string): void; warn(fields: object, message: string): void }
  readonly clock: Clock
  /** Called once, after the file was written and the answer to `apply` was sent. */
  readonly onWritten: () => void
}

const KEEP_FOUND_MS = 10_000
const MAX_IN_A_MINUTE = 20
const MINUTE_MS = 60_000
const DONE = 'The setup is already finished, perhaps in another tab.'

export class Setup {
  readonly #options: SetupOptions
  #isTesting = false
  /** When the latest tests started, in `clock.elapsed()` milliseconds. */
  #tests: number[] = []
  #search: { readonly at: number; readonly found: Promise<SetupState['found']> } | undefined
  #state: 'open' | 'applying' | 'written' = 'open'

  constructor(options: SetupOptions) {
    this.#options = options
  }

  async read(): Promise<SetupState> {
    const { config, path, search, clock } = this.#options
    const isWritable = path !== null && (await isOurs(path))
    const now = clock.elapsed()
    if (this.#search === undefined || now - this.#search.at > KEEP_FOUND_MS) this.#search = { at: now, found: search() }
    return {
      path: isWritable ? path : null,
      broker: config.mqtt.url?.join(', ') ?? 'embedded',
      found: await this.#search.found,
    }
  }

  /** Tests whether the hub can be used. @throws Refusal if tests are too frequent */
  async testHub(given: SetupHub): Promise<SetupTest> {
    const { config, clock } = this.#options
    const checked = checkHub(given)
    if (checked.wrong !== undefined) return failed(checked.wrong)
    const { chosen, hub } = checked.value
    this.#protect(chosen.api_key)
    return await this.#paced(() => tryHub({ name: chosen.name, hub, config, clock }))
  }

  /** Tests whether the broker can be used. @throws Refusal if tests are too frequent */
  async testBroker(given: SetupBroker): Promise<SetupTest> {
    const checked = checkBroker(given, this.#options.config)
    if (checked.wrong !== undefined) return failed(checked.wrong)
    const { config } = checked.value
    this.#protect(config.mqtt.password)
    return await this.#paced(() => this.#tryBroker(config))
  }

  /** Limits the number of tests, because each connects to an address that the user entered. @throws Refusal */
  async #paced(test: () => Promise<SetupTest>): Promise<SetupTest> {
    const now = this.#options.clock.elapsed()
    this.#tests = this.#tests.filter((at) => now - at < MINUTE_MS)
    const [oldest = now] = this.#tests
    if (this.#isTesting) throw busy(1_000, 'Another test is running; wait until it ends.')
    if (this.#tests.length >= MAX_IN_A_MINUTE) {
      throw busy(oldest + MINUTE_MS - now, 'Too many tests in the last minute; wait a little.')
    }
    this.#tests.push(now)
    this.#isTesting = true
    try {
      return await test()
    } finally {
      this.#isTesting = false
    }
  }

  async #tryBroker(config: Config): Promise<SetupTest> {
    const { url, password } = config.mqtt
    const { clock } = this.#options
    if (url !== null) return verdict(await examineBroker(config, clock), [password ?? ''])
    const tried = await this.#options.tryEmbedded(config)
    if ('why' in tried) return failed([tried.why])
    return { ok: true, message: `the embedded broker can be started, at ${tried.url}` }
  }

  /** Checks the user's choice. Writes it to the configuration file if hub2mqtt may write that file. @throws Refusal */
  async apply(wanted: SetupApply): Promise<SetupDone> {
    if (this.#state !== 'open') throw new Refusal(409, 'conflict', DONE)
    this.#state = 'applying'
    try {
      const done = await this.#apply(wanted)
      if (done.written !== null) this.#state = 'written'
      return done
    } finally {
      if (this.#state === 'applying') this.#state = 'open'
    }
  }

  /** Must be called after the answer to `apply` was sent. Starts the bridge if the configuration was written. */
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
    const lines = linesOf(choice, path === null ? 'environment' : 'file', 'copy')
    if (path === null || !(await isOurs(path))) return { written: null, lines }
    const text = await this.#textWith(choice, path)
    try {
      await writeWhole(path, text)
    } catch (err) {
      this.#options.log.warn({ err, path }, 'the configuration file could not be written')
      return { written: null, lines }
    }
    return { written: path, lines: linesOf(choice, 'file', 'written') }
  }

  /** Checks that the new text is a valid configuration. @throws Refusal */
  async #textWith(choice: Choice, path: string): Promise<string> {
    const text = textOf(path)
    if (Object.keys(this.#check(text).hubs).length > 0) {
      throw new Refusal(409, 'conflict', `${path} already contains a hub; restart hub2mqtt.`)
    }
    const next = withChoice(text, choice)
    const config = this.#check(next)
    const stronger = strongerVariable(config, choice)
    if (stronger !== undefined) {
      const why = `${stronger} is set and overrides the file: change the variable, or choose the same value.`
      throw new Refusal(409, 'conflict', why)
    }
    if (config.mqtt.url === null) {
      const tried = await this.#options.tryEmbedded(config)
      if ('why' in tried) throw new Refusal(409, 'conflict', tried.why)
    }
    return next
  }

  #check(text: string): Config {
    try {
      return this.#options.check(text).config
    } catch (error) {
      if (error instanceof ConfigError) throw new Refusal(400, 'invalid', error.message)
      throw error
    }
  }

  #protect(secret: string | null | undefined): void {
    if (secret) this.#options.log.addSecret(secret)
  }
}

const busy = (waitMs: number, message: string) => new Refusal(429, 'busy', message, retryAfter(waitMs))

const failed = (lines: readonly string[]): SetupTest => ({ ok: false, message: lines.join('\n') })

function valid<T>(checked: Checked<T>): T {
  if (checked.wrong !== undefined) throw new Refusal(400, 'invalid', checked.wrong.join('\n'))
  return checked.value
}

function strongerVariable({ mqtt }: Config, { broker }: Choice): string | undefined {
  const differs = Object.entries(broker ?? {}).find(([key, value]) => !isDeepStrictEqual(valueAt(mqtt, key), value))
  return differs && environmentName(`mqtt.${differs[0]}`)
}

/** Time limit for each request of a hub test. It is short, because a user is waiting for the answer. */
const HUB_TIMEOUT_MS = 5_000

export async function tryHub(given: Parameters<typeof examineHub>[0]): Promise<SetupTest> {
  const { hub } = given
  const findings = await Array.fromAsync(examineHub({ ...given, hub: { ...hub, timeout: HUB_TIMEOUT_MS } }))
  return verdict(findings, [hub.api_key])
}

/** Returns the problems of a test, or all findings if there is no problem. Masks secrets and control characters. */
function verdict(findings: readonly Finding[], secrets: readonly string[]): SetupTest {
  const scrubber = new Scrubber(secrets)
  const problems = findings.filter(({ outcome }) => outcome === 'problem')
  const shown = problems.length === 0 ? findings : problems
  const lines = shown.map(({ text, remedy }) => {
    return shownText(scrubber.text(remedy === '' ? text : `${text} → ${remedy}`))
  })
  return { ok: problems.length === 0, message: lines.join('\n') }
}
