/** What changes something, on one app that its owner has named; at the end the app is as it was. */
import { isDeepStrictEqual } from 'node:util'
import { type Clock, sleep } from '../base/clock.ts'
import { isRecord } from '../base/json.ts'
import { type AppRecord, PROBES, type ProbeName, pathTo, type Reading } from './probes.ts'
import type { HubEvent, Session } from './realtime.ts'
import { type Asker, outcomeOf, type Seen } from './seen.ts'

const SETTING = 'hub2mqtt-conformance'
const VALUE = { a: [1, null, 'b'] }
/** Until the hub tells of a change, and until an app has started. */
const EVENT_MS = 3_000
const START_MS = 20_000
const LOOK_MS = 1_000
/** An install takes that long. */
const INSTALL_MS = 60_000
const DOWNGRADE_MS = 10_000
const NO_CHANNEL = 'hub2mqtt-conformance'

export interface WritesSeen {
  /** Writes after which an event of the app came. */
  readonly told: readonly ProbeName[]
  /** … and that no event followed. */
  readonly untold: readonly ProbeName[]
  /** The value of a setting came back as it was sent. */
  readonly settingKept: boolean | null
  readonly settingGone: boolean | null
  readonly autoupdateChanged: boolean | null
  /** A channel sent with updateApp was taken over. */
  readonly channelTaken: boolean | null
  readonly stopped: boolean | null
  readonly startedAgain: boolean | null
  /** Whether getAppStd wants a message. */
  readonly messageWanted: boolean | null
  /** What an install of a lower version came to. */
  readonly downgrade: 'downgraded' | 'kept' | 'refused' | 'not_tried'
  /** What could not be put back. */
  readonly left: readonly string[]
}

export interface WritesOptions {
  readonly asker: Asker
  readonly reading: Reading
  readonly app: string
  /** The version to go back to; by default 1.0.0 where the app's is higher. */
  readonly downgrade: string | undefined
  readonly session: Session | undefined
  readonly clock: Clock
}

export async function write(options: WritesOptions): Promise<WritesSeen> {
  const writer = new Writer(options)
  const before = await writer.look()
  const settings = await writer.settings()
  const updates = await writer.updates(before)
  const life = await writer.life(before)
  const messageWanted = await writer.words()
  const downgrade = await writer.goBack(before)
  const now = await writer.look()
  const left = ['enabled', 'autoupdate', 'channel', 'version'].filter(
    (key) => !isDeepStrictEqual(before[key], now[key]),
  )
  return { ...settings, ...updates, ...life, messageWanted, downgrade, left, ...writer.events }
}

const runs = (record: AppRecord) => record['state'] === 'running' || record['ready'] === true

class Writer {
  readonly #options: WritesOptions
  readonly #told = new Set<ProbeName>()
  readonly #untold = new Set<ProbeName>()

  constructor(options: WritesOptions) {
    this.#options = options
  }

  get events(): Pick<WritesSeen, 'told' | 'untold'> {
    return { told: [...this.#told], untold: [...this.#untold].filter((name) => !this.#told.has(name)) }
  }

  async look(): Promise<AppRecord> {
    const { value } = await this.#send('getApp')
    return isRecord(value) ? value : {}
  }

  async settings(): Promise<Pick<WritesSeen, 'settingKept' | 'settingGone'>> {
    if (!(await this.#keep('setAppSetting', { value: VALUE }))) return { settingKept: null, settingGone: null }
    await this.#keep('readBack')
    const { value } = this.#options.reading.answers.get('readBack') ?? {}
    const settingKept = isDeepStrictEqual(value, VALUE)
    if (!(await this.#keep('unsetAppSetting'))) return { settingKept, settingGone: null }
    const { value: rest } = await this.#send('getAppSettings')
    await this.#keep('unsetAgain')
    return { settingKept, settingGone: isRecord(rest) && !Object.hasOwn(rest, SETTING) }
  }

  async updates({ autoupdate, channel }: AppRecord): Promise<Pick<WritesSeen, 'autoupdateChanged' | 'channelTaken'>> {
    let autoupdateChanged = null
    if (typeof autoupdate === 'boolean' && (await this.#change('updateApp', { autoupdate: !autoupdate }))) {
      autoupdateChanged = (await this.look())['autoupdate'] === !autoupdate
      await this.#send('updateApp', { autoupdate })
    }
    if (typeof channel !== 'string') return { autoupdateChanged, channelTaken: null }
    const asked = await this.#send('updateApp', { channel: NO_CHANNEL })
    if (outcomeOf(asked) !== 'ok') return { autoupdateChanged, channelTaken: false }
    const channelTaken = (await this.look())['channel'] === NO_CHANNEL
    if (channelTaken) await this.#send('updateApp', { channel })
    return { autoupdateChanged, channelTaken }
  }

  async life({ enabled }: AppRecord): Promise<Pick<WritesSeen, 'stopped' | 'startedAgain'>> {
    const wasEnabled = enabled !== false
    await this.#change('garbageCollectApp')
    if (wasEnabled && (await this.#change('restartApp'))) await this.#becomes(runs, START_MS)
    const isOff = (record: AppRecord) => record['enabled'] === false && !runs(record)
    const stopped = (await this.#change('disableApp')) ? await this.#becomes(isOff, START_MS) : null
    const startedAgain = (await this.#change('enableApp')) ? await this.#becomes(runs, START_MS) : null
    if (!wasEnabled) await this.#send('disableApp')
    return { stopped, startedAgain }
  }

  /** What goes to people: a report to the app's developer, and a word aloud. */
  async words(): Promise<boolean | null> {
    const { answers } = this.#options.reading
    await this.#keep('getAppStd', {})
    const bare = answers.get('getAppStd')
    if (bare !== undefined && outcomeOf(bare) === 'rejected') await this.#keep('getAppStd', { message: '' })
    await this.#keep('speak', { text: 'hub2mqtt' })
    const spoken = answers.get('speak')
    if (spoken !== undefined && outcomeOf(spoken) === 'absent') await this.#keep('speakReference', { text: 'hub2mqtt' })
    const outcome = bare === undefined ? undefined : outcomeOf(bare)
    return outcome === 'ok' ? false : outcome === 'rejected' ? true : null
  }

  /** Installs a lower version, and the newest again if that was done. */
  async goBack({ version, channel }: AppRecord): Promise<WritesSeen['downgrade']> {
    const { app, downgrade: wanted = '1.0.0' } = this.#options
    if (typeof version !== 'string' || !isLower(wanted, version)) return 'not_tried'
    const install = { id: app, ...(typeof channel === 'string' && { channel }) }
    if (!(await this.#keep('installFromAppStore', { ...install, version: wanted }))) return 'refused'
    if (!(await this.#becomes((record) => record['version'] === wanted, DOWNGRADE_MS))) return 'kept'
    await this.#send('installFromAppStore', install)
    await this.#becomes((record) => record['version'] !== wanted, INSTALL_MS)
    return 'downgraded'
  }

  async #send(name: ProbeName | keyof typeof VARIANTS, body?: unknown): Promise<Seen> {
    const { asker, reading, app } = this.#options
    const probe = PROBES[isVariant(name) ? VARIANTS[name] : name]
    return await asker.ask(probe.method, pathTo(reading.prefix, probe, app, SETTING), { body })
  }

  /** Keeps the answer for the report; whether it is a success. */
  async #keep(name: ProbeName | keyof typeof VARIANTS, body?: unknown): Promise<boolean> {
    const seen = await this.#send(name, body)
    this.#options.reading.answers.set(name, seen)
    return outcomeOf(seen) === 'ok'
  }

  /** The same, and whether an event tells of it. */
  async #change(name: ProbeName, body?: unknown): Promise<boolean> {
    const { app, session } = this.#options
    const from = session?.events.length ?? 0
    const isDone = await this.#keep(name, body)
    const isOurs = ({ name: event, payload }: HubEvent) => event === 'app.update' && payload['id'] === app
    if (!isDone || session === undefined) return isDone
    const heard = await session.hears(from, isOurs, EVENT_MS)
    if (heard) this.#told.add(name)
    else this.#untold.add(name)
    return isDone
  }

  async #becomes(wanted: (record: AppRecord) => boolean, ms: number): Promise<boolean> {
    for (let waited = 0; ; waited += LOOK_MS) {
      if (wanted(await this.look())) return true
      if (waited >= ms) return false
      await sleep(this.#options.clock, LOOK_MS)
    }
  }
}

/** Questions that are an operation asked in another way. */
const VARIANTS = { readBack: 'getAppSetting', unsetAgain: 'unsetAppSetting' } as const

function isVariant(name: string): name is keyof typeof VARIANTS {
  return Object.hasOwn(VARIANTS, name)
}

/** Whether a version stands before another one, number by number. */
export function isLower(one: string, other: string): boolean {
  const numbers = (version: string) => version.split(/[.+-]/).map(Number)
  const [a, b] = [numbers(one), numbers(other)]
  for (let i = 0; i < Math.max(a.length, b.length); i += 1) {
    const [x, y] = [a[i] ?? 0, b[i] ?? 0]
    if (x !== y) return x < y
  }
  return false
}
