/** Simulates homes with apps that fail in every way, and compares the guardian's actions with its promises. */
import * as v from 'valibot'
import type { GuardOrder } from '../../src/bridge/guarding.ts'
import type { Outcome } from '../../src/contract/answer.ts'
import type { GuardEventPayload } from '../../src/contract/events.ts'
import type { HistoryEntry } from '../../src/contract/guard.ts'
import type { GuardFacts } from '../../src/contract/publications.ts'
import { GUARD, GUARD_MEMORY, HISTORY } from '../../src/contract/schemas.ts'
import { DECISIONS as DEFAULTS, type Decisions } from '../../src/guardian/decisions.ts'
import { Guard } from '../../src/guardian/guard.ts'
import type { MemorySample } from '../../src/guardian/trend.ts'
import { type App, type AppPatch, patchApp } from '../../src/hub/app.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { Random } from '../support/random.ts'
import { silentLog } from '../support/silent-log.ts'
import { changed, commandOf, configOf, HOUR, MINUTE, OK, refusal, SECOND } from './stand.ts'

const DAY = 24 * HOUR
const MIB = 1_048_576
const READ_MS = 10 * MINUTE
const KEPT_READINGS = (6.5 * HOUR) / READ_MS
/** The maximum delay of a hub's events. */
const SLACK = 2 * SECOND
const RETRY = [15 * MINUTE, HOUR, 6 * HOUR, DAY]
const HUB_RESTARTS = 20
const OUTAGE_MS = 20 * MINUTE
const NEEDS_NET: readonly string[] = ['net', 'hours', 'well']

const VICES = [
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
  'net',
  'dead-at-boot',
  'big',
] as const
type Vice = (typeof VICES)[number]

const FILE = `
hubs: {}
guard:
  watch: ['*']
  ignore: ['*.ignored']
  silent: ['silent.*']
  hub_max_restarts: ${HUB_RESTARTS}
  quiet_hours: "23:00-06:00"
  time_zone: UTC
  schedule: { 'well.*': '0 12 * * 1' }
  after_boot: { 'saw.*': 10m }
updates:
  policy: window
  window: { start: '0 7 * * *', length: 3h }
  time_zone: UTC
  hold_days: 2
  severity: { 'well.*': minor }
  off_when_bad: true
`
const config = configOf(FILE)

class Truth {
  readonly id: string
  readonly vice: Vice
  app: App
  /** When the app was stopped by a crash or by the hub, not by a user; `null` while the app is not down. */
  downSince: number | null = null
  /** Times of the guardian's restarts since the app last ran for an hour, had an update, or received a command. */
  streak: number[] = []
  readonly restarts: number[] = []
  /** Whether a restart is in progress, until the app runs or crashes again. */
  starting = false
  upSince: number | null
  updating = false
  gaveUp = false
  memory = 30 * MIB
  updatedAt = Number.NEGATIVE_INFINITY
  offeredAt = Number.POSITIVE_INFINITY
  /** The restarts that count towards the limit. Those after a storm or after the guardian gave up do not count. */
  readonly counted: number[] = []
  /** Whether the latest crash was in a storm (`isSpared`), and how many restarts did not count because of a storm. */
  isSpared = false
  spared = 0
  /** When the guardian last gave up on the app or retried it, and how often it retried. */
  triedAt = Number.NEGATIVE_INFINITY
  tries = 0
  /** Whether the hub's firmware makes the app crash on each start. */
  broken = false
  readonly log: { readonly what: HistoryEntry['what']; readonly at: number }[] = []
  cancel = () => {}
  isRisingReported = false
  crashesByLeak = 0

  constructor(id: string, vice: Vice, app: App, upSince: number) {
    this.id = id
    this.vice = vice
    this.app = app
    this.upSince = upSince
  }
}

const NO_FIGURES = {
  days: 0,
  crashes: 0,
  restarts: 0,
  gaveUp: 0,
  updates: 0,
  badUpdates: 0,
  rising: 0,
  hubRestarts: 0,
  bridgeRestarts: 0,
  retries: 0,
  storms: 0,
  outages: 0,
  afterBoot: 0,
}

interface Story {
  readonly figures: typeof NO_FIGURES
  /** Maps each broken promise to the first case in which it was broken. */
  readonly broken: ReadonlyMap<string, string>
}

interface SimulationOptions {
  readonly seed: number
  readonly days: number
  readonly apps: number
  readonly decisions?: Partial<Decisions>
  /** Stops the simulation after the day on which a promise with this name is broken. */
  readonly until?: RegExp
}

const MEMORY = v.nullable(GUARD_MEMORY)
const pass = <T>(value: T) => value

class Home {
  readonly apps = new Map<string, Truth>()
  online = true
  backAt = Number.NEGATIVE_INFINITY
  /** The apps as the hub reported them when it was last online. */
  readonly reported = new Map<string, App>()
  /** App → memory in the reads of the last six and a half hours; `trend.test.ts` uses the bridge's samples instead. */
  readonly readings = new Map<string, MemorySample[]>()
  /** Reported crashes of watched apps, by app; cleared when a storm is over. */
  readonly crashes = new Map<string, { at: number; times: number }>()
  stormOn = false
  restarts: number[] = []
  readonly missing = new Set<string>()
  /** When the hub started, and for each app, the start of the hub after which the guardian restarted the app. */
  bootAt = -DAY
  readonly afterBoot = new Map<string, number>()
  /** When apps last had to wait because of a storm or the hub's budget. */
  heldAt = Number.NEGATIVE_INFINITY
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
  /** What the guardian has published, by hub and app. */
  readonly #published = new Map<string, GuardFacts>()
  readonly figures = { ...NO_FIGURES }
  #guard: Guard
  #updating: string | undefined
  #outageUntil = Number.NEGATIVE_INFINITY

  constructor(options: SimulationOptions) {
    this.#options = options
    this.#random = new Random(options.seed)
    for (let i = 0; i < options.apps; i += 1) this.#settle(this.#homes[i % 2] ?? new Home('x'), i)
    this.#guard = this.#startGuard()
  }

  async run(): Promise<Story> {
    const { days, until } = this.#options
    for (const home of this.#homes) {
      this.#every(READ_MS, () => this.#read(home))
      this.#every(9 * DAY + 7 * HOUR, () => this.#restartHub(home))
    }
    this.#every(6 * DAY + 5 * HOUR, () => this.#restartBridge())
    // These outages begin at night, in the quiet hours and shortly before them.
    this.#at(2 * DAY + 2 * HOUR + 40 * MINUTE, 10 * DAY, () => this.#loseInternet(6 * HOUR + 20 * MINUTE))
    this.#at(4 * DAY + 22 * HOUR + 10 * MINUTE, 6 * DAY, () => this.#loseInternet(22 * HOUR + 50 * MINUTE))
    this.#at(13 * HOUR + 5 * MINUTE, 4 * DAY, () => this.#leaveOut())
    this.#at(5 * DAY + 16 * HOUR, 13 * DAY, () => this.clock.step(HOUR))
    this.#at(5 * DAY + 19 * HOUR, 13 * DAY, () => this.clock.step(-HOUR))
    this.#at(9 * DAY + 12 * HOUR, 15 * DAY, () => this.#breakByFirmware())
    for (const home of this.#homes) this.#at(3 * DAY + 9 * HOUR, 8 * DAY, () => this.#loseHub(home))
    const isBroken = () => [...this.#broken.keys()].some((name) => until?.test(name))
    while (this.figures.days < days && !isBroken()) {
      await this.clock.advance(DAY)
      this.figures.days += 1
    }
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
    const truth = new Truth(id, vice, app, this.#elapsed())
    home.apps.set(id, truth)
    home.reported.set(id, app)
    this.#live(home, truth)
    if (vice === 'bad-update' || vice === 'well') this.#offerLater(home, truth)
  }

  /** Simulates what a running app does on its own. */
  #live(home: Home, truth: Truth): void {
    const { vice } = truth
    const random = this.#random
    truth.cancel()
    truth.cancel = () => {}
    const isOffline = NEEDS_NET.includes(vice) && this.#elapsed() < this.#outageUntil
    if (truth.broken || isOffline) {
      truth.cancel = this.clock.after(3 * SECOND, () => this.#crash(home, truth, 'Error: getaddrinfo ENOTFOUND'))
      return
    }
    const later = (ms: number, task: () => void) => {
      truth.cancel = this.clock.after(ms, task)
    }
    if (vice === 'at-once' && random.chance(0.9)) later(3 * SECOND, () => this.#crash(home, truth, 'Error: at once'))
    else if (vice === 'at-once') later(random.int(2, 40) * HOUR, () => this.#crash(home, truth, 'Error: later'))
    if (vice === 'hours') later(random.int(1, 30) * HOUR, () => this.#crash(home, truth, 'CPU Warning Limit Reached'))
    if (vice === 'silent')
      later(random.int(10, 200) * HOUR, () => this.#say(home, truth, { cpu_percent: null, memory_bytes: null }))
    // Some hubs no longer report the usage of an app that has grown large.
    if (vice === 'big')
      later(random.int(1, 9) * HOUR, () => this.#say(home, truth, { cpu_percent: null, memory_bytes: null }))
    const unloaded = { state: 'stopped', crash_message: 'unloaded by Homey core' } as const
    if (vice === 'unloaded') later(random.int(5, 90) * HOUR, () => this.#fall(home, truth, unloaded))
    const isUnseen = vice === 'disabled' && random.chance(0.3)
    if (isUnseen) later(random.int(5, 90) * HOUR, () => this.#disableUnseen(home, truth))
    else if (vice === 'stopped' || vice === 'disabled') later(random.int(5, 90) * HOUR, () => this.#person(home, truth))
    if (vice === 'bad-update' && truth.app.version?.includes('bad')) {
      later(2 * MINUTE, () => this.#crash(home, truth, 'Error: bad version'))
    }
  }

  #crash(home: Home, truth: Truth, message: string): void {
    const crash_count = (truth.app.crash_count ?? 0) + 1
    this.#fall(home, truth, { state: 'crashed', crashed: true, crash_message: message, crash_count })
  }

  #fall(home: Home, truth: Truth, patch: AppPatch): void {
    const now = this.#elapsed()
    truth.cancel()
    this.#calm(truth)
    this.#countCrash(home, truth)
    truth.downSince = now
    truth.upSince = null
    truth.starting = false
    truth.memory = 30 * MIB
    truth.log.push({ what: 'crash', at: now })
    this.figures.crashes += 1
    this.#say(home, truth, patch)
  }

  /** Resets the restart counts of an app that has run for an hour. */
  #calm(truth: Truth): void {
    if (truth.upSince === null || this.#elapsed() - truth.upSince < HOUR) return
    this.#startAfresh(truth)
  }

  #startAfresh(truth: Truth): void {
    truth.streak = []
    truth.gaveUp = false
    truth.spared = 0
  }

  /** Decides whether the crashes count as a storm, before the guardian receives the event. */
  #countCrash(home: Home, { id, gaveUp, app }: Truth): void {
    const now = this.#elapsed()
    if (!home.online || gaveUp || app.enabled === false || id.endsWith('ignored') || home.missing.has(id)) return
    this.#endStorm(home)
    if (!home.stormOn) for (const [one, { at }] of home.crashes) if (now - at >= MINUTE) home.crashes.delete(one)
    const times = (home.crashes.get(id)?.times ?? 0) + 1
    if (times > 5) return
    home.crashes.set(id, { at: now, times })
    if (home.crashes.size < 3 && !home.stormOn) return
    const others = home.stormOn ? [] : [...home.crashes.keys()].filter((one) => one !== id)
    home.stormOn = true
    for (const truth of [...others, id].flatMap((one) => home.apps.get(one) ?? [])) {
      truth.isSpared = truth.spared < 5 && (truth.id === id || truth.downSince !== null)
    }
  }

  #endStorm(home: Home): void {
    const last = Math.max(...[...home.crashes.values()].map(({ at }) => at))
    if (!home.stormOn || this.#elapsed() - last < MINUTE) return
    home.stormOn = false
    home.crashes.clear()
  }

  /** Makes all apps that need the internet crash, now and whenever they are started during the outage. */
  #loseInternet(checkedAt: number): void {
    this.figures.outages += 1
    this.#outageUntil = this.#elapsed() + OUTAGE_MS
    const affected: Truth[] = []
    for (const home of this.#homes) {
      for (const truth of home.apps.values()) {
        if (!NEEDS_NET.includes(truth.vice) || truth.upSince === null || truth.updating) continue
        affected.push(truth)
        truth.cancel()
        truth.cancel = this.clock.after(this.#random.int(1, 50) * SECOND, () => {
          this.#crash(home, truth, 'Error: getaddrinfo ENOTFOUND')
        })
      }
    }
    // Check at the time of day `checkedAt` of the monotonic clock.
    this.clock.after(checkedAt - (this.#elapsed() % DAY), () => {
      for (const { id, upSince, broken } of affected) {
        if (upSince === null && !broken && !id.endsWith('ignored'))
          this.#breach('after an outage of the internet every app runs again within twenty minutes', id)
      }
    })
  }

  /** Makes four apps of a home crash on each start, until the firmware is fixed three days later. */
  #breakByFirmware(): void {
    const home = this.#random.pick(this.#homes)
    const broken = [...home.apps.values()].filter(({ vice }) => /^(?:net|saw|big|leak|hours)$/.test(vice)).slice(0, 4)
    for (const truth of broken) {
      truth.broken = true
      if (truth.upSince !== null) this.#live(home, truth)
    }
    this.clock.after(3 * DAY, () => {
      for (const truth of broken) truth.broken = false
    })
    this.clock.after(4 * DAY + 8 * HOUR, () => {
      for (const { id, upSince } of broken)
        if (upSince === null) this.#breach('an app that can run again is tried again within a day', id)
    })
  }

  #leaveOut(): void {
    for (const home of this.#homes) {
      const truth = this.#random.pick([...home.apps.values()].filter(({ vice }) => /^(?:big|silent|saw)$/.test(vice)))
      const before = home.reported.get(truth.id)
      if (!home.online || before === undefined || truth.upSince === null || truth.starting) continue
      home.missing.add(truth.id)
      home.reported.delete(truth.id)
      this.#guard.take(home.name, changed([{ id: truth.id, before, after: undefined }], true))
      this.clock.after(READ_MS, () => {
        home.missing.delete(truth.id)
        this.#read(home)
      })
    }
  }

  #loseHub(home: Home): void {
    home.online = false
    this.#guard.take(home.name, { kind: 'online', online: false })
    this.clock.after(3 * MINUTE, () => {
      home.online = true
      home.backAt = this.#elapsed()
      this.#read(home)
      this.#guard.take(home.name, { kind: 'online', online: true })
    })
  }

  /** Lets a user disable a crashed app right before its restart. The event of this change is lost. */
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

  /** Lets a user stop or disable an app, on the hub itself or by command, and start it again a day later. */
  #person(home: Home, truth: Truth): void {
    if (!home.online || truth.updating) {
      this.#live(home, truth)
      return
    }
    const byCommand = this.#random.chance(0.5)
    const name = truth.vice === 'disabled' ? 'disable' : 'stop'
    truth.cancel()
    truth.downSince = null
    truth.upSince = null
    if (name === 'disable') {
      if (byCommand) this.#run(home, truth, 'disable', 'begun')
      this.#say(home, truth, { enabled: false, state: 'stopped' })
      if (byCommand) this.#run(home, truth, 'disable', 'ended')
    } else this.#say(home, truth, { state: 'stopped' })
    truth.cancel = this.clock.after(DAY, () => {
      if (byCommand && name === 'disable') {
        this.#run(home, truth, 'enable', 'begun')
        this.#startAfresh(truth)
      }
      this.#say(home, truth, { enabled: true, state: 'starting' })
      if (byCommand && name === 'disable') this.#run(home, truth, 'enable', 'ended')
      this.#comeUp(home, truth)
    })
  }

  #comeUp(home: Home, truth: Truth): void {
    truth.cancel()
    truth.cancel = this.clock.after(8 * SECOND, () => {
      truth.downSince = null
      truth.starting = false
      truth.isSpared = false
      truth.upSince = this.#elapsed()
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
      truth.offeredAt = this.#elapsed()
      const isMajor = truth.vice === 'well' && this.#random.chance(0.4)
      const next = isMajor ? `${1 + number}.0.0` : `1.${number}.0${bad ? '-bad' : ''}`
      this.#say(home, truth, { update_available: true, latest_version: next })
      this.#offerLater(home, truth)
    })
  }

  #restartHub(home: Home): void {
    this.figures.hubRestarts += 1
    home.online = false
    this.#guard.take(home.name, { kind: 'online', online: false })
    for (const truth of home.apps.values()) {
      truth.cancel()
      truth.starting = false
      if (truth.app.enabled !== false && truth.downSince === null) this.#say(home, truth, { state: 'stopped' })
    }
    this.clock.after(3 * MINUTE, () => {
      home.online = true
      home.backAt = this.#elapsed()
      home.bootAt = this.#elapsed() - MINUTE
      for (const truth of home.apps.values()) {
        // Count the app's run until now, because no bridge can detect when exactly the app stopped.
        this.#calm(truth)
        truth.upSince = null
        if (truth.app.enabled === false) continue
        // Some apps crash while the hub starts. The hub starts them again, unless their vice is `dead-at-boot`.
        const isDead = truth.vice === 'dead-at-boot'
        if (isDead || this.#random.chance(0.3)) this.#crash(home, truth, 'Error: too early')
        if (!isDead) truth.cancel = this.clock.after(40 * SECOND, () => this.#comeUp(home, truth))
      }
      this.#read(home)
      this.#guard.take(home.name, { kind: 'online', online: true })
    })
  }

  #restartBridge(): void {
    // Do not restart the bridge during a command, because the result of the command would be lost.
    if (this.#updating !== undefined) return
    this.figures.bridgeRestarts += 1
    this.#guard.standBy()
    // Reset the data about storms, which the new process does not have.
    for (const home of this.#homes) {
      home.stormOn = false
      home.crashes.clear()
      for (const truth of home.apps.values()) Object.assign(truth, { isSpared: false, spared: 0 })
    }
    this.#guard = this.#startGuard()
  }

  #say(home: Home, truth: Truth, patch: AppPatch): void {
    const before = truth.app
    truth.app = patchApp(before, truth.id, patch)
    if (home.online && before !== truth.app) this.#report(home, [truth], false)
  }

  #report(home: Home, truths: readonly Truth[], read: boolean): void {
    const changes = truths.flatMap(({ id, app }) => {
      if (home.missing.has(id)) return []
      const before = home.reported.get(id)
      home.reported.set(id, app)
      return before === app ? [] : [{ id, before, after: app }]
    })
    this.#guard.take(home.name, changed(changes, read))
  }

  #read(home: Home): void {
    if (!home.online) return
    for (const truth of home.apps.values()) this.#use(home, truth)
    for (const { id, app } of home.apps.values()) {
      if (app.memory_bytes === null) continue
      const before = home.readings.get(id) ?? []
      home.readings.set(id, [...before.slice(-KEPT_READINGS), [this.#elapsed(), app.memory_bytes]])
    }
    this.#report(home, [...home.apps.values()], true)
    this.#guard.take(home.name, { kind: 'booted', at: this.clock.now() - (this.#elapsed() - home.bootAt) })
    this.#endStorm(home)
    const recent = home.restarts.filter((at) => at > this.#elapsed() - 30 * MINUTE)
    if (home.stormOn || recent.length >= HUB_RESTARTS) home.heldAt = this.#elapsed()
    for (const truth of home.apps.values()) this.#checkRestarted(home, truth)
  }

  /** Changes the memory that an app uses. */
  #use(home: Home, truth: Truth): void {
    const hours = READ_MS / HOUR
    const { app, vice } = truth
    if (app.state !== 'running' || app.memory_bytes === null) return
    const noise = (this.#random.next() - 0.5) * MIB
    if (vice === 'leak') truth.memory += 6 * MIB * hours
    if (vice === 'saw') truth.memory = truth.memory > 70 * MIB ? 30 * MIB : truth.memory + 15 * MIB * hours
    truth.app = patchApp(app, truth.id, { memory_bytes: Math.round(truth.memory + noise) })
    if (vice === 'leak' && truth.memory > 120 * MIB) {
      if (this.#elapsed() - (truth.upSince ?? 0) > 7 * HOUR) truth.crashesByLeak += 1
      this.#report(home, [truth], false)
      this.#crash(home, truth, 'Too many memwarns')
    }
  }

  /** Returns the milliseconds since the start, independent of the wall clock. */
  #elapsed(): number {
    return this.clock.elapsed()
  }

  #at(first: number, ms: number, task: () => void): void {
    this.clock.after(first, () => {
      task()
      this.#every(ms, task)
    })
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
      const { name, apps, reported, readings } = home
      readings.clear()
      guard.hubAdded(name, {
        read: (app) => {
          const truth = apps.get(app)
          if (home.online && truth !== undefined) this.#report(home, [truth], false)
          return Promise.resolve(home.online && !home.missing.has(app))
        },
        requestApp: () => Promise.resolve(undefined),
        backup: () => Promise.resolve(undefined),
        acceptsVersion: () => true,
        shows: () => true,
        memory(app, since) {
          const all = readings.get(app) ?? []
          const last = all.findLastIndex(([at]) => at <= since)
          // Add the reading before `since`, because it still applies at that time.
          return last === -1 ? all : [[since, all[last]?.[1] ?? 0], ...all.slice(last + 1)]
        },
        send: (order) => this.#order(home, order),
        apps: () => reported.values(),
        onEvent: (event) => {
          if (event.app !== null) this.#event(name, event)
          else if (event.event_type === 'storm') this.figures.storms += 1
        },
        onFacts: (app) => this.#keep(guard, name, app),
        onAttention: () => {},
      })
    }
    for (const [key, { state, history, memory }] of this.#published) {
      const [hub = '', app = ''] = key.split(' ')
      for (const [name, value] of Object.entries({ guard: state, history, guardMemory: memory })) {
        if (value !== null) guard.learn(name, hub, app, JSON.stringify(value))
      }
    }
    guard.activate(true)
    for (const home of this.#homes) {
      const changes = [...home.reported.values()].map((after) => ({ id: after.id, before: undefined, after }))
      guard.take(home.name, changed(changes, true))
      guard.take(home.name, { kind: 'online', online: home.online })
    }
    return guard
  }

  #keep(guard: Guard, hub: string, app: string): void {
    const facts = guard.factsOf(hub, app)
    if (facts === null || facts === undefined) return
    const key = `${hub} ${app}`
    const { state, history, memory } = facts
    const isKnown = this.#published.get(key)?.history === history
    this.#published.set(key, facts)
    if (!v.is(GUARD, state) || !v.is(MEMORY, memory) || !(isKnown || v.is(HISTORY, history)))
      this.#breach('everything published matches the contract', JSON.stringify(facts))
  }

  async #order(home: Home, { app, command, isCurrent }: GuardOrder): Promise<Outcome> {
    const truth = home.apps.get(app)
    if (truth === undefined) return refusal('unknown_app')
    await pass(null)
    if (!isCurrent()) return refusal('expired')
    if (!home.online) {
      this.#breach('nothing is sent while the hub is offline', app)
      return refusal('hub_unreachable')
    }
    if (command === 'restart') return this.#restart(home, truth)
    if (command === 'update') {
      this.#say(home, truth, { autoupdate: false })
      return OK
    }
    return this.#install(home, truth)
  }

  #restart(home: Home, truth: Truth): Outcome {
    const now = this.#elapsed()
    this.figures.restarts += 1
    this.#judge(home, truth, now)
    truth.log.push({ what: 'restart', at: now })
    truth.restarts.push(now)
    home.restarts.push(now)
    if (truth.gaveUp) Object.assign(truth, { triedAt: now, tries: truth.tries + 1 })
    else if (truth.isSpared) Object.assign(truth, { isSpared: false, spared: truth.spared + 1 })
    // Scheduled restarts, and restarts after a start of the hub, do not count.
    else if (truth.downSince !== null || truth.vice === 'silent') {
      truth.streak.push(now)
      truth.counted.push(now)
    }
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
    const now = this.#elapsed()
    const hour = new Date(this.clock.now()).getUTCHours()
    if (hour < 7 || hour >= 10) this.#breach('updates keep to their window', truth.id)
    if (this.#updating !== undefined) this.#breach('one update at a time', truth.id)
    if (now - truth.offeredAt < 2 * DAY) this.#breach('a version is held for the days configured', truth.id)
    if (truth.app.enabled === false || truth.id.endsWith('ignored'))
      this.#breach('an app that a person leaves out is not updated', truth.id)
    this.#updating = truth.id
    truth.updating = true
    this.#run(home, truth, 'install', 'begun', 'guard')
    const to = truth.app.latest_version
    if (to?.startsWith('1.') !== true) this.#breach('no larger step is installed than configured', truth.id)
    truth.cancel()
    await new Promise<void>((resolve) => {
      this.clock.after(30 * SECOND, resolve)
    })
    truth.updatedAt = this.#elapsed()
    this.#startAfresh(truth)
    truth.log.push({ what: 'update', at: this.#elapsed() })
    this.#say(home, truth, {
      version: to,
      update_available: false,
      latest_version: null,
      state: 'starting',
      crashed: false,
    })
    this.#comeUp(home, truth)
    this.#run(home, truth, 'install', 'ended', 'guard')
    truth.updating = false
    this.#updating = undefined
    return OK
  }

  #run(
    home: Home,
    { id: about }: Truth,
    name: 'disable' | 'enable' | 'install',
    phase: 'begun' | 'ended',
    by: string | null = null,
  ): void {
    const command = commandOf(name)
    const ok = phase === 'ended'
    const run = { about, command, setting: null, starts: name === 'enable', phase, ok, by }
    this.#guard.take(home.name, { kind: 'command', run })
  }

  // --- the promises ----------------------------------------------------------------------------------------------

  #breach(promise: string, what: string): void {
    if (!this.#broken.has(promise)) this.#broken.set(promise, `${new Date(this.clock.now()).toISOString()} ${what}`)
  }

  #judge(home: Home, truth: Truth, now: number): void {
    const { id, app } = truth
    const isOfItsOwn = this.#judgeReason(home, truth, now)
    this.#judgeLimits(home, truth, now)
    for (const other of home.apps.values()) {
      const last = other.restarts.at(-1) ?? 0
      if (other !== truth && other.starting && now - last < MINUTE)
        this.#breach('never two at a time on one hub', `${id} ${other.id}`)
    }
    const hour = new Date(this.clock.now()).getUTCHours()
    if (hour >= 23 || hour < 6) this.#breach('quiet hours are kept', id)
    if (now - home.backAt < 2 * MINUTE - SLACK) this.#breach('a hub that is back is left alone for two minutes', id)
    if (truth.updating) this.#breach('no app in an update is restarted', id)
    const last = truth.streak.at(-1)
    const wait = Math.min(600 * SECOND, 10 * SECOND * 2 ** truth.streak.length)
    const since = truth.downSince ?? now
    const waits = isOfItsOwn && !truth.gaveUp && !truth.isSpared && app.enabled !== false
    if (last !== undefined && waits && now - since < wait - SLACK) {
      this.#breach('the wait doubles', `${id} after ${now - since} ms and ${truth.streak.length} restarts`)
    }
  }

  /** Checks that a restart has a reason. Returns whether the reason is a crash. */
  #judgeReason(home: Home, truth: Truth, now: number): boolean {
    const { id, app, vice } = truth
    const isSilent = vice === 'silent' && app.state === 'running' && app.memory_bytes === null
    const wall = new Date(this.clock.now())
    const isScheduled = vice === 'well' && wall.getUTCDay() === 1 && wall.getUTCHours() >= 12
    const isAfterBoot = vice === 'saw' && truth.downSince === null && now >= home.bootAt + 10 * MINUTE - SLACK
    if (isAfterBoot) this.#afterBoot(home, truth)
    else if (truth.downSince === null && !isSilent && !isScheduled)
      this.#breach("no restart against a person's will", `${id} ${app.state}`)
    if (app.enabled === false || id.endsWith('ignored')) this.#breach("no restart against a person's will", id)
    return !isSilent && !isScheduled && !isAfterBoot
  }

  #judgeLimits(home: Home, truth: Truth, now: number): void {
    const { id, gaveUp, triedAt, tries, isSpared, counted } = truth
    const inWindow = (times: readonly number[]) => times.filter((at) => at > now - 30 * MINUTE).length
    if (gaveUp && now - triedAt < (RETRY[tries] ?? DAY) - SLACK)
      this.#breach('an app that was given up is tried again by the list', `${id} after ${now - triedAt} ms`)
    if (!gaveUp && !isSpared && inWindow(counted) >= 5) this.#breach('never more than the limit', id)
    if (inWindow(home.restarts) >= HUB_RESTARTS) this.#breach('never more than the budget of the hub', id)
    this.#endStorm(home)
    if (home.stormOn) this.#breach('nothing is restarted in a storm', id)
  }

  #afterBoot(home: Home, { id }: Truth): void {
    if (home.afterBoot.get(id) === home.bootAt || home.bootAt < 0)
      this.#breach('an app is restarted once after a start of its hub, and after nothing else', id)
    home.afterBoot.set(id, home.bootAt)
    this.figures.afterBoot += 1
  }

  /** Checks that an app that is down has not waited too long for its restart. */
  #checkRestarted(home: Home, truth: Truth): void {
    const now = this.#elapsed()
    this.#calm(truth)
    const hour = new Date(this.clock.now()).getUTCHours()
    const quiet = hour >= 23 || hour < 6 || (hour === 6 && new Date(this.clock.now()).getUTCMinutes() < 15)
    if (
      truth.downSince === null ||
      truth.app.enabled === false ||
      truth.gaveUp ||
      quiet ||
      truth.id.endsWith('ignored')
    )
      return
    if (truth.starting || truth.updating || now - Math.max(home.backAt, home.heldAt) < 20 * MINUTE) return
    if (now - truth.downSince > 15 * MINUTE)
      this.#breach(
        'whatever died is started again',
        `${truth.id} ${JSON.stringify(this.#published.get(`${home.name} ${truth.id}`)?.state)}`,
      )
  }

  #event(hub: string, event: GuardEventPayload): void {
    const truth = this.#homes.find(({ name }) => name === hub)?.apps.get(event.app)
    if (truth === undefined) return
    const now = this.#elapsed()
    switch (event.event_type) {
      case 'gave_up':
        if (truth.gaveUp) this.#breach('giving up is reported once', event.app)
        Object.assign(truth, { gaveUp: true, triedAt: now, tries: 0 })
        truth.log.push({ what: 'gave_up', at: now })
        this.figures.gaveUp += 1
        break
      case 'retried':
        if (!truth.gaveUp) this.#breach('only an app that was given up is tried again', event.app)
        this.figures.retries += 1
        break
      case 'memory_rising':
        if (truth.vice !== 'leak') this.#breach('memory that rises and falls is no leak', event.app)
        truth.isRisingReported = true
        truth.log.push({ what: 'memory_rising', at: now })
        this.figures.rising += 1
        break
      case 'bad_update':
        if (!truth.app.version?.includes('bad')) this.#breach('only bad updates are reported as bad', event.app)
        if (event.from === undefined || event.to !== truth.app.version)
          this.#breach('a bad update names both versions', event.app)
        truth.log.push({ what: 'bad_update', at: now })
        this.figures.badUpdates += 1
        break
      case 'updated_by_guard':
        this.figures.updates += 1
        break
      case 'update_failed':
        this.#breach('updates that the hub accepts succeed', `${event.app} ${event.message}`)
        break
    }
  }

  #compareHistory(home: Home, { id, log }: Truth): void {
    const kept = (this.#published.get(`${home.name} ${id}`)?.history ?? []).map(({ what }) => what)
    const wanted = log
      .slice(-20)
      .map(({ what }) => what)
      .reverse()
    // Ignore the order, because entries with the same time may be in any order.
    if (kept.toSorted().join() !== wanted.toSorted().join())
      this.#breach('the history is right', `${id}\n${kept}\n${wanted}`)
    const truth = home.apps.get(id)
    const isBad = truth?.app.version?.includes('bad') === true && this.#elapsed() - truth.updatedAt > HOUR
    if (isBad && !log.some(({ what }) => what === 'bad_update')) this.#breach('a bad update is reported', id)
  }

  #compareLeaks(): void {
    for (const home of this.#homes) {
      for (const { vice, id, isRisingReported, crashesByLeak } of home.apps.values()) {
        if (vice === 'leak' && crashesByLeak > 0 && !isRisingReported) this.#breach('a leak is reported in time', id)
      }
    }
  }
}

export async function simulate(options: SimulationOptions): Promise<Story> {
  return await new Simulation(options).run()
}
