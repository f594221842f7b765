/** Records data about each app, as evidence for its crashes. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { readJson } from '../base/read-json.ts'
import { reasonOf } from '../contract/classify.ts'
import {
  CRASH,
  type Crash,
  fitted,
  type HubHealth,
  MAX_BEFORE,
  MAX_CRASH_BYTES,
  MAX_CRASH_SAMPLES,
  MAX_OTHERS,
  NOTED,
  type PriorEvent,
  shortOrNull,
  stackHead,
  together,
  type UsageHistory,
} from '../contract/crash.ts'
import { reportOf } from '../contract/crash-report.ts'
import type { GuardFacts } from '../contract/publications.ts'
import { type App, exitOf } from '../hub/app.ts'
import { crashStateOf, type HeldCrash, knowsCrash } from './held-crash.ts'
import type { NotableChange } from './hub-state.ts'
import type { CommandRun } from './requests.ts'
import { type Sample, Samples } from './samples.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const SAMPLES_MS = 6 * HOUR_MS
/** Crashes within this time are reported together. */
const TOGETHER_MS = 10 * 60_000
/** How long to wait for more crashes before the crashes are logged together. */
const QUIET_MS = 60_000
/** Maximum number of characters of evidence that are read from the broker. */
const MAX_LEARNED = 16 * 1024 * 1024
/** Maximum number of apps of a hub whose data is read from the broker. */
const MAX_HELD = 10_000

/** The hub's data at the time of a crash. */
interface HubAtCrash {
  readonly firmware: string | null
  readonly health: HubHealth | null
  /** The hub's uptime in seconds; `null` if the hub does not report it. */
  readonly uptime: number | null
  readonly guardOf: (app: string) => GuardFacts | null | undefined
}

interface Noted extends Omit<PriorEvent, 'at'> {
  /** When the event occurred, in epoch milliseconds. It is formatted only when needed, because formatting is slow. */
  readonly at: number
  /** When the event occurred, in `clock.elapsed()` milliseconds. */
  readonly elapsed: number
}

class HubEvidence {
  /** The evidence by app. `null` clears the broker's message; without an entry, the broker keeps its message. */
  readonly crashes = new Map<string, Crash | null>()
  /** The broker's data by app; kept until this bridge is active and has read the hub. */
  readonly #held = new Map<string, HeldCrash>()
  readonly #name: string
  readonly #all: Evidence
  readonly #clock: Clock
  /** When each app started, in `clock.elapsed()` milliseconds. */
  readonly #startedAt = new Map<string, number>()
  #priorEvents: Noted[] = []
  #firmware: string | null = null
  /** When the bridge added the hub, in epoch milliseconds. */
  readonly #since: number
  #cancelLog: (() => void) | undefined
  /** The apps in the last log message about crashes that occurred together. */
  #logged: ReadonlySet<string | null> = new Set()

  constructor(name: string, all: Evidence) {
    this.#name = name
    this.#all = all
    this.#clock = all.clock
    this.#since = all.clock.now()
  }

  /** Adds the reported firmware to the evidence of earlier crashes. Returns the affected apps. */
  setFirmware(firmware: string | null): string[] {
    const before = this.#firmware
    this.#firmware = firmware ?? before
    if (firmware === null || before === firmware) return []
    if (before !== null) this.#note('firmware_updated', { from: before, to: firmware })
    const changed: string[] = []
    for (const [id, crash] of before === null ? this.crashes : []) {
      // Keep evidence from earlier runs, because the firmware may have been different then.
      if (crash === null || crash.firmware !== null || Date.parse(crash.at) < this.#since) continue
      this.crashes.set(id, fitted({ ...crash, firmware: shortOrNull(firmware) }))
      changed.push(id)
    }
    return changed
  }

  restarted(): void {
    this.#note('hub_restarted')
  }

  commanded({ about, command, by, setting, phase, ok }: CommandRun): void {
    if (phase === 'begun' || !ok || !command.write) return
    this.#note(setting === null ? 'command' : 'setting', { app: about, to: setting ?? command.name, by })
  }

  /**
   * Returns the apps whose evidence has changed.
   * @param silent whether the apps have only just become known, so that no events occurred
   */
  appsChanged(changes: readonly NotableChange[], hubData: HubAtCrash, silent: boolean): Set<string> {
    const changed = new Set<string>()
    for (const { id, before, after, events } of changes) {
      let crashed = false
      for (const { event_type, from = null, to = null } of silent ? [] : events) {
        const what = NOTED.find((one) => one === event_type)
        crashed ||= what === 'crashed'
        if (what !== undefined) this.#note(what, { app: id, from, to })
        else if (event_type === 'started') this.#startedAt.set(id, this.#clock.elapsed())
      }
      if (after === undefined) this.forget(id)
      else if (crashed) this.#crashed(after, hubData, changed)
      else if (after.crashed === true) this.#foundOrExplained(before, after, hubData, changed)
    }
    return changed
  }

  forget(app: string): void {
    this.crashes.set(app, null)
    this.#held.delete(app)
    this.#startedAt.delete(app)
  }

  forgetAll(): void {
    for (const app of this.crashes.keys()) this.forget(app)
    this.#held.clear()
  }

  /** Call this before the broker's messages are read, and when they are no longer needed. @param apps default: all */
  forgetHeld(apps: Pick<ReadonlySet<string>, 'has'> = this.#held): void {
    for (const app of this.#held.keys()) if (apps.has(app)) this.#held.delete(app)
  }

  learn(app: string, found: HeldCrash, otherwise?: HeldCrash): void {
    const held = this.#held.get(app)
    const isNew = held === undefined && (found.state ?? found.crash) !== undefined && this.#held.size < MAX_HELD
    if (!isNew && held === undefined) return
    const latest = { ...(held ?? otherwise), ...found }
    if (latest.state === undefined && latest.crash === undefined) this.#held.delete(app)
    else this.#held.set(app, latest)
  }

  /**
   * Call this when the bridge becomes active. Returns the apps whose evidence has changed.
   * @param tookOver whether another bridge was active until now
   */
  adoptAll(apps: Iterable<App>, tookOver: boolean): string[] {
    return [...apps].flatMap((app) => {
      const own = this.crashes.get(app.id)
      if (app.crashed !== true && own === undefined) return []
      const held = this.#held.get(app.id)
      // Use the broker's state if the counts are equal: the other bridge may have noticed the app's recovery first.
      const isNewer = tookOver && app.crash_count !== null && app.crash_count === held?.state?.crash_count
      const isAdopted = this.#adopt(isNewer ? { ...app, ...held?.state } : app, held)
      return isAdopted && this.crashes.get(app.id) !== own ? [app.id] : []
    })
  }

  /** Stops recording. Keeps the evidence, because this bridge may serve the hub again after another bridge. */
  stop(): void {
    this.#cancelLog?.()
    this.#cancelLog = undefined
    this.#priorEvents = []
    this.#startedAt.clear()
    this.#all.samples.forget(this.#name)
  }

  #note(what: PriorEvent['what'], more: Partial<Omit<PriorEvent, 'at'>> = {}): void {
    const [at, elapsed] = [this.#clock.now(), this.#clock.elapsed()]
    this.#priorEvents.unshift({ at, what, app: null, from: null, to: null, by: null, ...more, elapsed })
    if (this.#priorEvents.length <= MAX_BEFORE) return
    // Drop the oldest write first, because an automation may write often.
    const write = this.#priorEvents.findLastIndex(({ what }) => what === 'command' || what === 'setting')
    this.#priorEvents.splice(write || -1, 1)
  }

  /**
   * Adopts the broker's evidence if the broker's messages already contain the latest crash of the app. If the broker
   * has no evidence of this crash, a command has removed the evidence.
   */
  #adopt(app: App, held: HeldCrash | undefined): boolean {
    if (held === undefined || held.crash === null || !knowsCrash(held, app)) return false
    this.crashes.set(app.id, held.crash ?? null)
    return true
  }

  #crashed(app: App, hubData: HubAtCrash, changed: Set<string>): void {
    const { id } = app
    changed.add(id)
    // This bridge may notice a crash late, and the bridge that was active then may have published evidence.
    const held = this.#held.get(id)
    if (held !== undefined && this.#adopt(app, held)) return
    const recent = new Set(this.#recentCrashes().flatMap(({ app }) => shortOrNull(app) ?? []))
    const others = [...recent].filter((one) => one !== id)
    this.crashes.set(id, this.#evidenceOf(app, hubData, others.slice(0, MAX_OTHERS)))
    this.#startedAt.delete(id)
    for (const other of others) {
      const crash = this.crashes.get(other)
      if (!crash || !shortOrNull(id) || crash.others_crashed.includes(id)) continue
      if (crash.others_crashed.length >= MAX_OTHERS) continue
      this.crashes.set(other, fitted({ ...crash, others_crashed: [...crash.others_crashed, id] }))
      changed.add(other)
    }
    if (others.length > 0) this.#logLater()
    else this.#logged = new Set()
  }

  /** Handles an app that crashed before the bridge discovered it, or a crash message that arrives after the crash. */
  #foundOrExplained(before: App | undefined, app: App, hubData: HubAtCrash, changed: Set<string>): void {
    const { id, crash_message: message } = app
    const known = this.crashes.get(id)
    if (before === undefined) {
      if (!this.#adopt(app, this.#held.get(id) ?? { crash: known })) {
        this.crashes.set(id, this.#evidenceOf(app, hubData, []))
      }
    } else {
      if (!known || known.message !== null || message === null || before.crash_message === message) return
      this.crashes.set(
        id,
        fitted({ ...known, message, reason: reasonOf(message, known.exit_signal), stack_head: stackHead(message) }),
      )
    }
    changed.add(id)
  }

  #evidenceOf(app: App, hubData: HubAtCrash, others_crashed: string[]): Crash {
    const { id, crash_message: message, version } = app
    const [now, elapsed] = [this.#clock.now(), this.#clock.elapsed()]
    const { code: exit_code, signal: exit_signal } = exitOf(app)
    const guard = hubData.guardOf(id)?.state
    const startedAt = this.#startedAt.get(id)
    const seconds = (since: number, until: number) => Math.max(0, Math.round((until - since) / 1000))
    const before = this.#priorEvents.filter((one) => elapsed - one.elapsed <= DAY_MS && !isCrashOf(one, id))
    const samples = thinned(this.#all.samples.read(this.#name, id, SAMPLES_MS).samples)
    return fitted({
      at: new Date(now).toISOString(),
      reason: reasonOf(message, exit_signal),
      message,
      stack_head: stackHead(message),
      version: shortOrNull(version),
      firmware: shortOrNull(hubData.firmware),
      uptime_seconds: hubData.uptime,
      app_uptime_seconds: startedAt === undefined ? null : seconds(startedAt, elapsed),
      exit_code,
      exit_signal,
      samples: samples.map(([at, cpu, memory]) => [seconds(at, now), cpu, memory]),
      hub: hubData.health,
      before: before.map(({ at, what, ...texts }) => ({
        at: new Date(at).toISOString(),
        what,
        app: shortOrNull(texts.app),
        from: shortOrNull(texts.from),
        to: shortOrNull(texts.to),
        by: shortOrNull(texts.by),
      })),
      others_crashed,
      guard: guard ? { state: guard.state, restarts: guard.restarts, next_restart_at: guard.next_restart_at } : null,
    })
  }

  #recentCrashes(): readonly Noted[] {
    const now = this.#clock.elapsed()
    return this.#priorEvents.filter(({ what, elapsed }) => what === 'crashed' && now - elapsed <= TOGETHER_MS)
  }

  #logLater(): void {
    this.#cancelLog ??= this.#clock.after(QUIET_MS, () => {
      this.#cancelLog = undefined
      const crashes = new Map(this.#recentCrashes().map(({ app, at }) => [app, at]))
      const text = together([...crashes.values()], this.#priorEvents)
      // Do not log again if the previous log message contains all these apps.
      const isNew = [...crashes.keys()].some((app) => !this.#logged.has(app))
      this.#logged = new Set(crashes.keys())
      if (text !== undefined && isNew) this.#all.log.warn({ hub: this.#name, apps: [...crashes.keys()] }, text)
    })
  }
}

const isCrashOf = ({ what, app }: Noted, id: string) => what === 'crashed' && app === id

export class Evidence {
  readonly samples: Samples
  readonly clock: Clock
  readonly log: Logger
  readonly #hubs = new Map<string, HubEvidence>()
  /** The size of the evidence that was read from the broker. */
  #learned = 0

  constructor(clock: Clock, log: Logger) {
    this.samples = new Samples(clock)
    this.clock = clock
    this.log = log
  }

  of(name: string): HubEvidence {
    const known = this.#hubs.get(name) ?? new HubEvidence(name, this)
    this.#hubs.set(name, known)
    return known
  }

  /** Call this before the broker's messages are read. */
  readsBack(): void {
    for (const hub of this.#hubs.values()) hub.forgetHeld()
  }

  /**
   * Reads evidence from an earlier run or another bridge. Returns whether the evidence is new.
   * @param isServed whether this bridge serves the hub, so that its own evidence may be newer
   */
  learn(hub: string, app: string, payload: string, isServed: boolean): boolean {
    const evidence = this.of(hub)
    const { crashes } = evidence
    const own = crashes.get(app)
    const text = own ? JSON.stringify(own) : ''
    const crash = own && text === payload ? own : this.#read(payload)
    evidence.learn(app, { crash: payload === '' ? undefined : (crash ?? null) })
    if (crash === own || (isServed && own !== undefined)) return false
    this.#learned += (crash === undefined ? 0 : payload.length) - (isServed ? 0 : text.length)
    if (crash !== undefined) crashes.set(app, crash)
    else if (!isServed) crashes.delete(app)
    return crash !== undefined
  }

  #read(payload: string): Crash | undefined {
    const fits = payload.length <= MAX_CRASH_BYTES && this.#learned + payload.length <= MAX_LEARNED
    return fits ? readJson(CRASH, payload) : undefined
  }

  /**
   * Reads the retained state of an app, which shows the latest crash that the active bridge had noticed.
   * @param isLive whether another bridge has just published the state, so that the broker may have older evidence
   */
  learnState(hub: string, app: string, payload: string, isLive: boolean): void {
    const state = crashStateOf(payload)
    const evidence = state === undefined ? this.#hubs.get(hub) : this.of(hub)
    evidence?.learn(app, { state }, isLive ? { crash: evidence.crashes.get(app) ?? undefined } : undefined)
  }

  forget(hub: string): void {
    this.#hubs.delete(hub)
  }

  /** Returns the report for the app's developer; `null` if there is no evidence. */
  report(hub: string, app: string): string | null {
    const crash = this.of(hub).crashes.get(app)
    return crash ? reportOf(app, crash) : null
  }

  history(hub: string, app: string, hours: number): UsageHistory {
    const { seconds, samples } = this.samples.read(hub, app, hours * HOUR_MS)
    const points = (column: 1 | 2) =>
      samples.flatMap(({ [0]: at, [column]: value }) =>
        value === null ? [] : [[Math.floor(at / 1000), value] as const],
      )
    return { resolution_seconds: seconds, cpu_percent: points(1), memory_bytes: points(2), source: 'bridge' }
  }
}

/** Replaces groups of samples with their highest values, at the time of the group's last sample. */
function thinned(samples: readonly Sample[]): readonly Sample[] {
  const step = Math.ceil(samples.length / MAX_CRASH_SAMPLES)
  if (step <= 1) return samples
  return samples.flatMap(([at], i): Sample[] => {
    if ((samples.length - 1 - i) % step !== 0) return []
    const group = samples.slice(Math.max(0, i - step + 1), i + 1)
    return [[at, highest(group.map(([, cpu]) => cpu)), highest(group.map(([, , memory]) => memory))]]
  })
}

function highest(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : Math.max(...known)
}
