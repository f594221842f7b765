/** Homes with apps of every vice, for as long as one likes: what the guardian does there is held against its promises. */
import * as v from 'valibot'
import type { GuardOrder } from '../../src/bridge/guarding.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Outcome } from '../../src/contract/answer.ts'
import { CommandError, type ErrorCode } from '../../src/contract/errors.ts'
import type { GuardEventPayload } from '../../src/contract/events.ts'
import type { HistoryEntry } from '../../src/contract/guard.ts'
import { GUARD, GUARD_MEMORY, HISTORY } from '../../src/contract/schemas.ts'
import { DECISIONS as DEFAULTS, type Decisions } from '../../src/guardian/decisions.ts'
import { Guard } from '../../src/guardian/guard.ts'
import { type App, type AppPatch, patchApp } from '../../src/hub/app.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { Random } from '../support/random.ts'
import { silentLog } from '../support/silent-log.ts'
import { commandOf } from './stand.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR
const MIB = 1_048_576
const READ_MS = 10 * MINUTE
/** How far a hub lags behind in telling. */
const SLACK = 2 * SECOND

export const VICES = [
  'well',
  'at-once',
  'hours',
  'leak',
  'saw',
  'silent',
  'stopped',
  'disabled',
  'unloaded',
  'bad-update',
] as const
export type Vice = (typeof VICES)[number]

const FILE = `
hubs: {}
guard:
  watch: ['*']
  ignore: ['*.ignored']
  silent: ['*']
  quiet_hours: "23:00-06:00"
  time_zone: UTC
  schedule: { 'well.*': '0 12 * * 1' }
updates:
  policy: window
  window: { start: '0 7 * * *', length: 3h }
  time_zone: UTC
  hold_days: 2
  off_when_bad: true
`
const { config } = loadConfig({ env: {}, file: 'x.yaml', readFile: () => FILE, requireHub: false })

interface Truth {
  readonly id: string
  readonly vice: Vice
  app: App
  /** Since when it lies there by a crash or the hub's doing, not a person's; `null`: it does not. */
  downSince: number | null
  /** Times of the guardian's restarts since it last ran for an hour, had an update, or was commanded. */
  streak: number[]
  restarts: number[]
  /** The restart under way: until it runs or falls again. */
  starting: boolean
  upSince: number | null
  updating: boolean
  gaveUp: boolean
  personAt: number
  memory: number
  /** Crashes since the version changed. */
  updatedAt: number
  crashesSince: number
  offeredAt: number
  readonly log: { readonly what: HistoryEntry['what']; readonly at: number }[]
  cancel: () => void
  toldRising: number
  crashesByLeak: number
}

export interface Figures {
  days: number
  crashes: number
  restarts: number
  gaveUp: number
  updates: number
  badUpdates: number
  rising: number
  hubRestarts: number
  bridgeRestarts: number
}

export interface Story {
  readonly figures: Figures
  /** Promises that were broken, each with its first case. */
  readonly broken: ReadonlyMap<string, string>
}

export interface SimulationOptions {
  readonly seed: number
  readonly days: number
  readonly apps: number
  readonly decisions?: Partial<Decisions>
}

const OK: Outcome = { ok: true, json: 'null' }
const failed = (code: ErrorCode): Outcome => ({ ok: false, error: new CommandError(code) })
const pass = <T>(value: T) => value

class Home {
  readonly apps = new Map<string, Truth>()
  online = true
  backAt = Number.NEGATIVE_INFINITY
  /** What was told of the apps when the hub was last there. */
  readonly told = new Map<string, App>()
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

class Simulation {
  readonly clock = new FakeClock()
  readonly #random: Random
  readonly #options: SimulationOptions
  readonly #homes = [new Home('home'), new Home('cabin')]
  readonly #broken = new Map<string, string>()
  readonly #retained = new Map<string, string>()
  readonly figures: Figures = {
    days: 0,
    crashes: 0,
    restarts: 0,
    gaveUp: 0,
    updates: 0,
    badUpdates: 0,
    rising: 0,
    hubRestarts: 0,
    bridgeRestarts: 0,
  }
  #guard: Guard
  #updating: string | undefined

  constructor(options: SimulationOptions) {
    this.#options = options
    this.#random = new Random(options.seed)
    for (let i = 0; i < options.apps; i += 1) this.#settle(this.#homes[i % 2] ?? new Home('x'), i)
    this.#guard = this.#startGuard()
  }

  async run(): Promise<Story> {
    const { days } = this.#options
    for (const home of this.#homes) {
      this.#every(READ_MS, () => this.#read(home))
      this.#every(9 * DAY + 7 * HOUR, () => this.#restartHub(home))
    }
    this.#every(6 * DAY + 5 * HOUR, () => this.#restartBridge())
    for (let day = 0; day < days; day += 1) await this.clock.advance(DAY)
    this.figures.days = days
    this.#guard.standBy()
    for (const home of this.#homes) for (const truth of home.apps.values()) this.#compareHistory(home, truth)
    this.#compareLeaks()
    return { figures: this.figures, broken: this.#broken }
  }

  // --- the world -------------------------------------------------------------------------------------------------

  #settle(home: Home, i: number): void {
    const vice = VICES[i % VICES.length] ?? 'well'
    const id = `${vice}.app${i}${i === 21 ? '.ignored' : ''}`
    const app = patchApp(undefined, id, {
      name: id,
      version: '1.0.0',
      enabled: true,
      state: 'running',
      crashed: false,
      crash_count: 0,
      autoupdate: true,
      update_available: false,
      cpu_percent: 1,
      memory_bytes: 30 * MIB,
    })
    const truth: Truth = {
      id,
      vice,
      app,
      downSince: null,
      streak: [],
      restarts: [],
      starting: false,
      upSince: this.clock.now(),
      updating: false,
      gaveUp: false,
      personAt: Number.NEGATIVE_INFINITY,
      memory: 30 * MIB,
      updatedAt: Number.NEGATIVE_INFINITY,
      crashesSince: 0,
      offeredAt: Number.POSITIVE_INFINITY,
      log: [],
      cancel: () => {},
      toldRising: Number.NEGATIVE_INFINITY,
      crashesByLeak: 0,
    }
    home.apps.set(id, truth)
    home.told.set(id, app)
    this.#live(home, truth)
    if (vice === 'bad-update' || vice === 'well') this.#offerLater(home, truth)
  }

  /** What an app that runs does by itself. */
  #live(home: Home, truth: Truth): void {
    const { vice } = truth
    const random = this.#random
    truth.cancel()
    truth.cancel = () => {}
    const later = (ms: number, task: () => void) => {
      truth.cancel = this.clock.after(ms, task)
    }
    if (vice === 'at-once' && random.chance(0.9)) later(3 * SECOND, () => this.#crash(home, truth, 'Error: at once'))
    else if (vice === 'at-once') later(random.int(2, 40) * HOUR, () => this.#crash(home, truth, 'Error: later'))
    if (vice === 'hours') later(random.int(1, 30) * HOUR, () => this.#crash(home, truth, 'CPU Warning Limit Reached'))
    if (vice === 'silent')
      later(random.int(10, 200) * HOUR, () => this.#say(home, truth, { cpu_percent: null, memory_bytes: null }))
    if (vice === 'unloaded') later(random.int(5, 90) * HOUR, () => this.#unload(home, truth))
    const isUnseen = vice === 'disabled' && random.chance(0.3)
    if (isUnseen) later(random.int(5, 90) * HOUR, () => this.#disableUnseen(home, truth))
    else if (vice === 'stopped' || vice === 'disabled') later(random.int(5, 90) * HOUR, () => this.#person(home, truth))
    if (vice === 'bad-update' && truth.app.version?.includes('bad')) {
      later(2 * MINUTE, () => this.#crash(home, truth, 'Error: bad version'))
    }
  }

  #crash(home: Home, truth: Truth, message: string): void {
    const now = this.clock.now()
    truth.cancel()
    if (truth.upSince !== null && now - truth.upSince >= HOUR) {
      truth.streak = []
      truth.gaveUp = false
    }
    truth.downSince = now
    truth.upSince = null
    truth.starting = false
    truth.memory = 30 * MIB
    truth.log.push({ what: 'crash', at: now })
    truth.crashesSince += 1
    this.figures.crashes += 1
    this.#say(home, truth, {
      state: 'crashed',
      crashed: true,
      crash_message: message,
      crash_count: (truth.app.crash_count ?? 0) + 1,
    })
  }

  #unload(home: Home, truth: Truth): void {
    const now = this.clock.now()
    truth.downSince = now
    truth.upSince = null
    truth.log.push({ what: 'crash', at: now })
    this.figures.crashes += 1
    this.#say(home, truth, { state: 'stopped', crash_message: 'unloaded by Homey core' })
  }

  /** A person disables an app that has crashed, right before it would be restarted, and the event of that is lost. */
  #disableUnseen(home: Home, truth: Truth): void {
    if (!home.online) {
      this.#live(home, truth)
      return
    }
    this.#crash(home, truth, 'Error: boom')
    truth.cancel = this.clock.after(9 * SECOND, () => {
      truth.downSince = null
      truth.app = patchApp(truth.app, truth.id, { enabled: false, state: 'stopped', crashed: false })
      truth.cancel = this.clock.after(DAY, () => {
        this.#say(home, truth, { enabled: true, state: 'starting' })
        this.#comeUp(home, truth)
      })
    })
  }

  /** A person stops or disables an app, on the hub itself or by command, and starts it again a day later. */
  #person(home: Home, truth: Truth): void {
    if (!home.online || truth.updating) {
      this.#live(home, truth)
      return
    }
    const byCommand = this.#random.chance(0.5)
    const name = truth.vice === 'disabled' ? 'disable' : 'stop'
    const run = (phase: 'begun' | 'ended', command: 'disable' | 'enable') => {
      this.#guard.ran({ hub: home.name, about: truth.id, command: commandOf(command), setting: null, phase, by: null })
    }
    truth.cancel()
    truth.downSince = null
    truth.upSince = null
    truth.personAt = this.clock.now()
    if (name === 'disable') {
      if (byCommand) run('begun', 'disable')
      this.#say(home, truth, { enabled: false, state: 'stopped' })
      if (byCommand) run('ended', 'disable')
    } else this.#say(home, truth, { state: 'stopped' })
    truth.cancel = this.clock.after(DAY, () => {
      if (byCommand && name === 'disable') {
        run('begun', 'enable')
        truth.streak = []
        truth.gaveUp = false
      }
      this.#say(home, truth, { enabled: true, state: 'starting' })
      if (byCommand && name === 'disable') run('ended', 'enable')
      this.#comeUp(home, truth)
    })
  }

  #comeUp(home: Home, truth: Truth): void {
    truth.cancel()
    truth.cancel = this.clock.after(8 * SECOND, () => {
      truth.downSince = null
      truth.starting = false
      truth.upSince = this.clock.now()
      truth.memory = 30 * MIB
      this.#say(home, truth, {
        state: 'running',
        crashed: false,
        crash_message: null,
        cpu_percent: 1,
        memory_bytes: truth.memory,
      })
      this.#live(home, truth)
    })
  }

  #offerLater(home: Home, truth: Truth): void {
    this.clock.after(this.#random.int(6, 14) * DAY, () => {
      const bad = truth.vice === 'bad-update' && !truth.app.version?.includes('bad')
      const number = Number(truth.app.version?.split('.')[1] ?? 0) + 1
      truth.offeredAt = this.clock.now()
      this.#say(home, truth, { update_available: true, latest_version: `1.${number}.0${bad ? '-bad' : ''}` })
      this.#offerLater(home, truth)
    })
  }

  #restartHub(home: Home): void {
    this.figures.hubRestarts += 1
    home.online = false
    this.#guard.hubChanged(home.name, false)
    for (const truth of home.apps.values()) {
      truth.cancel()
      truth.upSince = null
      truth.starting = false
      if (truth.app.enabled !== false && truth.downSince === null) this.#say(home, truth, { state: 'stopped' })
    }
    this.clock.after(3 * MINUTE, () => {
      home.online = true
      home.backAt = this.clock.now()
      for (const truth of home.apps.values()) {
        if (truth.app.enabled === false) continue
        // Some fall while the hub is starting, and the hub starts them once more.
        const falls = this.#random.chance(0.3)
        if (falls) {
          truth.log.push({ what: 'crash', at: this.clock.now() })
          this.figures.crashes += 1
          truth.downSince = this.clock.now()
          this.#say(home, truth, {
            state: 'crashed',
            crashed: true,
            crash_message: 'Error: too early',
            crash_count: (truth.app.crash_count ?? 0) + 1,
          })
        }
        truth.cancel = this.clock.after(40 * SECOND, () => this.#comeUp(home, truth))
      }
      this.#read(home)
      this.#guard.hubChanged(home.name, true)
    })
  }

  #restartBridge(): void {
    // While a command is under way, its end would be nobody's.
    if (this.#updating !== undefined) return
    this.figures.bridgeRestarts += 1
    this.#guard.standBy()
    this.#guard = this.#startGuard()
  }

  #say(home: Home, truth: Truth, patch: AppPatch): void {
    const before = truth.app
    truth.app = patchApp(before, truth.id, patch)
    if (home.online && before !== truth.app) this.#tell(home, [truth], false)
  }

  #tell(home: Home, truths: readonly Truth[], read: boolean): void {
    const changes = truths.flatMap(({ id, app }) => {
      const before = home.told.get(id)
      home.told.set(id, app)
      return before === app ? [] : [{ id, before, after: app }]
    })
    this.#guard.appsChanged(home.name, changes, read)
  }

  #read(home: Home): void {
    if (!home.online) return
    const hours = READ_MS / HOUR
    for (const truth of home.apps.values()) {
      const { app, vice } = truth
      if (app.state !== 'running' || app.memory_bytes === null) continue
      const noise = (this.#random.next() - 0.5) * MIB
      if (vice === 'leak') truth.memory += 6 * MIB * hours
      if (vice === 'saw') truth.memory = truth.memory > 70 * MIB ? 30 * MIB : truth.memory + 15 * MIB * hours
      truth.app = patchApp(app, truth.id, { memory_bytes: Math.round(truth.memory + noise) })
      if (vice === 'leak' && truth.memory > 120 * MIB) {
        if (this.clock.now() - (truth.upSince ?? 0) > 7 * HOUR) truth.crashesByLeak += 1
        this.#tell(home, [truth], false)
        this.#crash(home, truth, 'Too many memwarns')
      }
    }
    this.#tell(home, [...home.apps.values()], true)
    for (const truth of home.apps.values()) this.#isHelped(home, truth)
  }

  #every(ms: number, task: () => void): void {
    this.clock.after(ms, () => {
      task()
      this.#every(ms, task)
    })
  }

  // --- the bridge ------------------------------------------------------------------------------------------------

  #startGuard(): Guard {
    const { decisions } = this.#options
    const guard = new Guard({
      clock: this.clock,
      log: silentLog,
      live: { value: config },
      isConnected: () => true,
      ...(decisions && { decisions: { ...DEFAULTS, ...decisions } }),
    })
    for (const home of this.#homes) {
      const { name, apps, told } = home
      guard.hubAdded(name, {
        read: (app) => {
          const truth = apps.get(app)
          if (home.online && truth !== undefined) this.#tell(home, [truth], false)
          return Promise.resolve(home.online)
        },
        ask: () => Promise.resolve(undefined),
        backup: () => Promise.resolve(undefined),
        takesVersion: () => true,
        shows: () => true,
        send: (order) => this.#order(home, order),
        apps: () => told.values(),
        onEvent: (event) => this.#event(name, event),
        onFacts: (app) => this.#keep(guard, name, app),
        onAttention: () => {},
      })
    }
    for (const [key, text] of this.#retained) {
      const [name = '', hub = '', app = ''] = key.split(' ')
      guard.learn(name, hub, app, text)
    }
    guard.begin(true)
    for (const home of this.#homes) {
      const changes = [...home.told.values()].map((after) => ({ id: after.id, before: undefined, after }))
      guard.appsChanged(home.name, changes, true)
      guard.hubChanged(home.name, home.online)
    }
    return guard
  }

  #keep(guard: Guard, hub: string, app: string): void {
    const facts = guard.factsOf(hub, app)
    if (facts === null || facts === undefined) return
    for (const [name, value, schema] of [
      ['guard', facts.state, GUARD],
      ['history', facts.history, HISTORY],
      ['guardMemory', facts.memory, v.nullable(GUARD_MEMORY)],
    ] as const) {
      if (!v.is(schema, value))
        this.#breach('what is published is what the contract says', `${name} ${JSON.stringify(value)}`)
      const key = `${name} ${hub} ${app}`
      if (value === null) this.#retained.delete(key)
      else this.#retained.set(key, JSON.stringify(value))
    }
  }

  async #order(home: Home, { app, command, isCurrent }: GuardOrder): Promise<Outcome> {
    const truth = home.apps.get(app)
    if (truth === undefined) return failed('unknown_app')
    await pass(null)
    if (!isCurrent()) return failed('expired')
    if (!home.online) {
      this.#breach('nothing is sent while the hub is away', app)
      return failed('hub_unreachable')
    }
    if (command === 'restart') return this.#restart(home, truth)
    if (command === 'update') {
      this.#say(home, truth, { autoupdate: false })
      return OK
    }
    return this.#install(home, truth)
  }

  #restart(home: Home, truth: Truth): Outcome {
    const now = this.clock.now()
    this.figures.restarts += 1
    this.#judge(home, truth, now)
    truth.log.push({ what: 'restart', at: now })
    truth.restarts.push(now)
    truth.streak.push(now)
    truth.starting = true
    truth.upSince = null
    truth.cancel()
    this.clock.after(SECOND, () => {
      if (!home.online) return
      this.#say(home, truth, { state: 'stopping', crashed: false })
      this.#say(home, truth, { state: 'starting' })
      this.#comeUp(home, truth)
    })
    return OK
  }

  async #install(home: Home, truth: Truth): Promise<Outcome> {
    const now = this.clock.now()
    const hour = new Date(now).getUTCHours()
    if (hour < 7 || hour >= 10) this.#breach('updates keep to their window', truth.id)
    if (this.#updating !== undefined) this.#breach('one update at a time', truth.id)
    if (now - truth.offeredAt < 2 * DAY) this.#breach('a version is held for the days configured', truth.id)
    if (truth.app.enabled === false || truth.id.endsWith('ignored'))
      this.#breach('what a person leaves out is not updated', truth.id)
    const run = (phase: 'begun' | 'ended') => {
      this.#guard.ran({
        hub: home.name,
        about: truth.id,
        command: commandOf('install'),
        setting: null,
        phase,
        by: 'guard',
      })
    }
    this.#updating = truth.id
    truth.updating = true
    run('begun')
    const to = truth.app.latest_version
    truth.cancel()
    await new Promise<void>((resolve) => {
      this.clock.after(30 * SECOND, resolve)
    })
    truth.updatedAt = this.clock.now()
    truth.crashesSince = 0
    truth.streak = []
    truth.gaveUp = false
    truth.log.push({ what: 'update', at: this.clock.now() })
    this.#say(home, truth, {
      version: to,
      update_available: false,
      latest_version: null,
      state: 'starting',
      crashed: false,
    })
    this.#comeUp(home, truth)
    run('ended')
    truth.updating = false
    this.#updating = undefined
    return OK
  }

  // --- the promises ----------------------------------------------------------------------------------------------

  #breach(promise: string, what: string): void {
    if (!this.#broken.has(promise)) this.#broken.set(promise, `${new Date(this.clock.now()).toISOString()} ${what}`)
  }

  #judge(home: Home, truth: Truth, now: number): void {
    const { id, app, vice } = truth
    const isSilent = vice === 'silent' && app.state === 'running' && app.memory_bytes === null
    const isScheduled = vice === 'well' && new Date(now).getUTCDay() === 1 && new Date(now).getUTCHours() === 12
    if (truth.downSince === null && !isSilent && !isScheduled)
      this.#breach("no restart against a person's will", `${id} ${app.state}`)
    if (app.enabled === false || id.endsWith('ignored')) this.#breach("no restart against a person's will", id)
    if (truth.restarts.filter((at) => at > now - 30 * MINUTE).length >= 5) this.#breach('never more than the limit', id)
    for (const other of home.apps.values()) {
      const last = other.restarts.at(-1) ?? 0
      if (other !== truth && other.starting && now - last < MINUTE)
        this.#breach('never two at a time on one hub', `${id} ${other.id}`)
    }
    const hour = new Date(now).getUTCHours()
    if (hour >= 23 || hour < 6) this.#breach('quiet hours are kept', id)
    if (now - home.backAt < 2 * MINUTE - SLACK) this.#breach('a hub that came back is left alone for two minutes', id)
    if (truth.updating) this.#breach('no app in an update is restarted', id)
    if (truth.gaveUp) this.#breach('what was given up stays so', id)
    const last = truth.streak.at(-1)
    const wait = Math.min(600 * SECOND, 10 * SECOND * 2 ** truth.streak.length)
    const since = truth.downSince ?? now
    if (last !== undefined && !isScheduled && !isSilent && now - since < wait - SLACK) {
      this.#breach('the wait doubles', `${id} after ${now - since} ms and ${truth.streak.length} restarts`)
    }
  }

  /** No app that lies there is forgotten. */
  #isHelped(home: Home, truth: Truth): void {
    const now = this.clock.now()
    if (truth.upSince !== null && now - truth.upSince >= HOUR) {
      truth.streak = []
      truth.gaveUp = false
    }
    const hour = new Date(now).getUTCHours()
    const quiet = hour >= 23 || hour < 6 || (hour === 6 && new Date(now).getUTCMinutes() < 15)
    if (
      truth.downSince === null ||
      truth.app.enabled === false ||
      truth.gaveUp ||
      quiet ||
      truth.id.endsWith('ignored')
    )
      return
    if (truth.starting || truth.updating || now - home.backAt < 20 * MINUTE) return
    if (now - truth.downSince > 15 * MINUTE)
      this.#breach(
        'whatever died is started again',
        `${truth.id} ${this.#retained.get(`guard ${home.name} ${truth.id}`)}`,
      )
  }

  #event(hub: string, event: GuardEventPayload): void {
    const truth = this.#homes.find(({ name }) => name === hub)?.apps.get(event.app)
    if (truth === undefined) return
    const now = this.clock.now()
    switch (event.event_type) {
      case 'gave_up':
        if (truth.gaveUp) this.#breach('giving up is told once', event.app)
        truth.gaveUp = true
        truth.log.push({ what: 'gave_up', at: now })
        this.figures.gaveUp += 1
        break
      case 'memory_rising':
        if (truth.vice !== 'leak') this.#breach('memory that comes and goes is no leak', event.app)
        truth.toldRising = now
        truth.log.push({ what: 'memory_rising', at: now })
        this.figures.rising += 1
        break
      case 'bad_update':
        if (!truth.app.version?.includes('bad')) this.#breach('only bad updates are called so', event.app)
        if (event.from === undefined || event.to !== truth.app.version)
          this.#breach('a bad update names both versions', event.app)
        truth.log.push({ what: 'bad_update', at: now })
        this.figures.badUpdates += 1
        break
      case 'updated_by_guard':
        this.figures.updates += 1
        break
      case 'update_failed':
        this.#breach('updates that the hub takes succeed', `${event.app} ${event.message}`)
        break
    }
  }

  #compareHistory(home: Home, { id, log }: Truth): void {
    const text = this.#retained.get(`history ${home.name} ${id}`) ?? '[]'
    const kept = v.parse(HISTORY, JSON.parse(text)).map(({ what }) => what)
    const wanted = log
      .slice(-20)
      .map(({ what }) => what)
      .reverse()
    // Within one moment, the order is the guardian's own.
    if (kept.toSorted().join() !== wanted.toSorted().join())
      this.#breach('the history is right', `${id}\n${kept}\n${wanted}`)
    const truth = home.apps.get(id)
    const isBad = truth?.app.version?.includes('bad') === true && this.clock.now() - truth.updatedAt > HOUR
    if (isBad && !log.some(({ what }) => what === 'bad_update')) this.#breach('a bad update is told', id)
  }

  #compareLeaks(): void {
    for (const home of this.#homes) {
      for (const { vice, id, toldRising, crashesByLeak } of home.apps.values()) {
        if (vice === 'leak' && crashesByLeak > 0 && toldRising < 0) this.#breach('a leak is told before it kills', id)
      }
    }
  }
}

export async function simulate(options: SimulationOptions): Promise<Story> {
  return await new Simulation(options).run()
}
