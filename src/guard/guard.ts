/**
 * The guardian: watches the apps of all hubs, restarts those that died, and updates them when it suits. What it decides
 * is in pure functions beside it; this is what drives them: the hubs' changes, the clock, and commands.
 */
import type { Logger } from 'pino'
import { type Clock, wallOffset } from '../base/clock.ts'
import type { Outcome } from '../contract/answer.ts'
import type { HubCommand } from '../contract/commands.ts'
import type { ErrorCode } from '../contract/errors.ts'
import type { GuardEventPayload } from '../contract/events.ts'
import type { GoneApp, GuardWish } from '../contract/guard.ts'
import { appFilter } from '../contract/permissions.ts'
import type { GuardFacts } from '../contract/publications.ts'
import type { App } from '../model/app.ts'
import type { Change } from '../model/reduce.ts'
import { DECISIONS, type Decisions } from './decisions.ts'
import { GoneApps } from './gone.ts'
import { isLeftName, LeftOver } from './left.ts'
import { Schedules } from './schedules.ts'
import { type GuardConfig, isGuarded, type Patterns, patternsOf } from './settings.ts'
import { Updater } from './updater.ts'
import { Ward, type WardContext } from './ward.ts'

/** Who sends the guardian's commands, for the log and for itself. */
export const BY = 'guard'

/** A command of the guardian's own. */
export interface GuardOrder {
  readonly hub: string
  readonly app: string
  readonly command: string
  readonly payload: object
  /** Asked when its turn comes: whether it is wanted still. */
  readonly isCurrent: () => boolean
}

export interface GuardOptions {
  readonly clock: Clock
  readonly log: Logger
  /** The configuration that holds now. */
  readonly live: { readonly value: GuardConfig }
  /** Carries a command out like one that came by MQTT. */
  readonly order: (order: GuardOrder) => Promise<Outcome>
  /**
   * Reads an app of a hub anew; what that changes is known before the answer. Returns whether it could be read, which it
   * cannot where the hub has it no more.
   */
  readonly read: (hub: string, app: string) => Promise<boolean>
  /**
   * Asks an app's own web API with GET. Returns the HTTP status; `null` if the app does not answer, and `undefined` if
   * that says nothing of the app.
   */
  readonly ask: (hub: string, app: string, path: string) => Promise<number | null | undefined>
  /** Whether a hub installs a version that is named, as far as is known. */
  readonly takesVersion: (hub: string) => boolean
  /** Makes a backup of a hub. @throws Error that says why there is none */
  readonly backup: (hub: string) => Promise<void>
  /** The apps of a hub as far as they are known. */
  readonly appsOf: (hub: string) => Iterable<App>
  /** Whether configuration shows an app. */
  readonly shows: (hub: string, app: string) => boolean
  readonly onEvent: (hub: string, event: GuardEventPayload) => void
  /** What is published of an app has changed. */
  readonly onFacts: (hub: string, app: string) => void
  /** Which apps of a hub need attention, or are remembered, has changed. */
  readonly onAttention: (hub: string) => void
  /** Whether the broker is there. */
  readonly isConnected: () => boolean
  readonly decisions?: Decisions
}

/** A command of anybody that begins or ends on a hub. */
export interface GuardRun {
  readonly hub: string
  /** The app that it is about. */
  readonly about: string | null
  readonly command: Pick<HubCommand, 'name' | 'operation' | 'write' | 'needs'>
  readonly phase: 'begun' | 'ended'
  readonly by: string | null
}

interface GuardedHub {
  readonly name: string
  readonly wards: Map<string, Ward>
  readonly gone: GoneApps
  /** What the broker is to hold of those; `undefined`: what it holds is not known yet. */
  goneApps: readonly GoneApp[] | undefined
  /** Whether its list has been read. */
  isRead: boolean
  readonly timers: Map<Ward, () => void>
  online: boolean
  wasOnline: boolean
  backAt: number | null
  /** What the guardian is busy with here. */
  busy: Ward | null
  /** Whether that is an update, which ends in its own way. */
  updating: boolean
  attention: readonly string[]
  readonly context: WardContext
}

const NOTHING_DONE: ReadonlySet<ErrorCode> = new Set(['busy', 'expired', 'hub_unreachable', 'rate_limited'])
const HOPELESS: ReadonlySet<ErrorCode> = new Set(['not_allowed', 'forbidden', 'unsupported', 'unauthorized'])
/** So old may be what was read of an app when its restart leaves. */
const FRESH_MS = 5_000
const STARTS: ReadonlySet<string> = new Set(['restartApp', 'enableApp'])
const MAX_TIMER_MS = 24 * 3_600_000
/** An entity's attributes have no room for more. */
const MAX_ATTENTION = 50

export class Guard {
  readonly #options: GuardOptions
  readonly #decisions: Decisions
  readonly #hubs = new Map<string, GuardedHub>()
  readonly #left = new LeftOver()
  readonly #schedules: Schedules
  readonly #updater: Updater
  readonly #ending = new AbortController()
  readonly #offset: () => number
  /** Apps whose web API is being asked. */
  readonly #asking = new WeakSet<Ward>()
  #cancelUpdates: () => void = () => {}
  #patterns: Patterns
  /** Whether configuration asks for it. */
  #on: boolean
  /** Whether it ever did; until then no app has a ward, as of many hubs those alone take a lot. */
  #wasOn: boolean
  /** Whether this bridge is the one that acts. */
  #active = false

  constructor(options: GuardOptions) {
    const { clock, log, live, decisions = DECISIONS } = options
    const config = () => live.value
    this.#options = options
    this.#offset = wallOffset(clock)
    this.#decisions = decisions
    this.#patterns = patternsOf(config())
    this.#on = isGuarded(config())
    this.#wasOn = this.#on
    this.#schedules = new Schedules({ clock, config, onDue: (pattern) => this.#onSchedule(pattern) })
    this.#updater = new Updater({
      clock,
      log,
      config,
      order: (ward, command, payload, isCurrent) => this.#order(ward, command, payload, isCurrent),
      candidates: () => this.#updatable(),
      isLeftOut: (ward) => this.#isLeftOut(ward),
      takesVersion: options.takesVersion,
      backup: options.backup,
      take: (ward) => this.#take(ward),
      release: (hub) => this.#release(this.#hub(hub)),
      tell: (ward, type, details) => this.#tell(ward, { event_type: type, reason: 'schedule', ...details }),
      mayAct: () => this.#mayAct,
      signal: this.#ending.signal,
    })
  }

  /** What is published of an app; `null` once the guardian is turned off, `undefined` while nothing is known. */
  factsOf(hub: string, app: string): GuardFacts | null | undefined {
    if (this.#on) return this.#hubs.get(hub)?.wards.get(app)?.facts
    return this.#wasOn ? null : undefined
  }

  /** Apps that need attention; `undefined` while the guardian is off. */
  attentionOf(hub: string): readonly string[] | undefined {
    return this.#on ? (this.#hubs.get(hub)?.attention ?? []) : undefined
  }

  /** Apps of a hub that are gone and remembered; as with `factsOf`. */
  goneAppsOf(hub: string): readonly GoneApp[] | null | undefined {
    if (this.#on) return this.#hubs.get(hub)?.goneApps
    return this.#wasOn ? null : undefined
  }

  /** Takes in what the broker holds of the guardian's topics, before `begin`. `app`: empty for a topic of the hub. */
  learn(name: string, hub: string, app: string, text: string): void {
    if (isLeftName(name)) this.#left.add(name, hub, app, text)
  }

  /** This bridge is the one that acts from now on. `anew`: what the broker holds is newer than what is known here. */
  begin(anew: boolean): void {
    this.#active = true
    for (const hub of this.#hubs.values()) {
      if (anew) hub.gone.clear()
      // What is known here is newer.
      else if (hub.isRead) this.#left.takeAll(hub.name)
      for (const ward of hub.wards.values()) {
        const left = this.#left.take(hub.name, ward.id)
        if (anew && this.#on) ward.begin(left)
      }
      if (hub.isRead) this.#recall(hub)
      this.#retry(hub)
    }
    this.#schedules.set()
    this.#considerUpdates()
  }

  /** Another bridge acts. */
  standBy(): void {
    this.#active = false
    this.#schedules.stop()
    this.#disarm()
  }

  stop(): void {
    this.#ending.abort()
    this.#active = false
    this.#schedules.stop()
    this.#disarm()
  }

  /** Configuration has changed. */
  reconfigured(): void {
    const wasOn = this.#on
    this.#patterns = patternsOf(this.#options.live.value)
    this.#on = isGuarded(this.#options.live.value)
    if (this.#on && !this.#wasOn) this.#watchAll()
    for (const hub of this.#hubs.values()) {
      for (const ward of hub.wards.values()) {
        if (this.#active && this.#on) {
          if (wasOn) ward.settle()
          else ward.begin(this.#left.take(hub.name, ward.id))
        }
        if (wasOn !== this.#on) this.#options.onFacts(hub.name, ward.id)
      }
      if (wasOn !== this.#on) this.#options.onAttention(hub.name)
      this.#retry(hub)
    }
    if (this.#active) this.#schedules.set()
    this.#considerUpdates()
  }

  hubChanged(name: string, online: boolean): void {
    const hub = this.#hub(name)
    if (hub.online === online) return
    hub.online = online
    if (online && hub.wasOnline) hub.backAt = this.#options.clock.elapsed()
    if (online) hub.wasOnline = true
    else for (const ward of hub.wards.values()) ward.lost()
    this.#retry(hub)
  }

  hubRemoved(name: string): void {
    const hub = this.#hubs.get(name)
    for (const cancel of hub?.timers.values() ?? []) cancel()
    this.#hubs.delete(name)
  }

  /**
   * Apps have changed; `read`: the whole list has just been read. `silent`: nothing happened to them, but configuration or
   * the hub is another one. What was known of apps that are gone thereby is forgotten.
   */
  appsChanged(name: string, changes: readonly Change[], read: boolean, silent = false): void {
    const hub = this.#hub(name)
    for (const { id, before, after } of changes) {
      if (after === undefined) this.#appGone(hub, id, silent)
      else this.#appChanged(hub, before, after)
    }
    if (silent && hub.wards.size === 0) hub.gone.clear()
    hub.isRead ||= read
    if (read) this.#recall(hub)
    else if (changes.some(({ before, after }) => before === undefined || after === undefined)) this.#rememberGone(hub)
    if (!read || !this.#active || !this.#on) return
    const wards = [...hub.wards.values()]
    const telling = wards.filter(({ app }) => app.memory_bytes !== null || app.cpu_percent !== null).length
    for (const ward of wards) {
      ward.read(telling > 0)
      void this.#question(ward)
    }
    this.#considerUpdates()
  }

  /** At most one question to an app at a time. */
  async #question(ward: Ward): Promise<void> {
    const { question } = ward
    if (question === undefined || this.#asking.has(ward)) return
    this.#asking.add(ward)
    try {
      const status = await this.#options.ask(ward.hub, ward.id, question.path)
      if (status !== undefined) ward.answered(status !== null && question.expects(status))
    } finally {
      this.#asking.delete(ward)
    }
  }

  /** A command to an app begins or ends. One for the guardian itself does nothing to the app. */
  ran({ hub, about, command, phase, by }: GuardRun): void {
    const ward = about === null ? undefined : this.#hubs.get(hub)?.wards.get(about)
    if (ward === undefined || !this.#active || !this.#on) return
    const isOwn = by === BY
    if (command.operation === 'installFromAppStore') ward.installing(phase, isOwn ? BY : 'command')
    else if (isOwn || !command.write || command.needs === 'guard') return
    else ward.commanded(STARTS.has(command.operation ?? '') && command.name !== 'enabled')
    this.#retry(this.#hub(hub))
  }

  /** What a command wants of it. */
  wish(hub: string, app: string, wish: GuardWish): void {
    this.#hubs.get(hub)?.wards.get(app)?.wish(wish)
  }

  #disarm(): void {
    this.#cancelUpdates()
    for (const { timers } of this.#hubs.values()) {
      for (const cancel of timers.values()) cancel()
      timers.clear()
    }
  }

  get #mayAct(): boolean {
    return this.#active && this.#on && this.#options.isConnected()
  }

  #hub(name: string): GuardedHub {
    const known = this.#hubs.get(name)
    if (known !== undefined) return known
    const hub: GuardedHub = {
      name,
      wards: new Map(),
      gone: new GoneApps(this.#options.clock, (app) => this.#options.shows(name, app)),
      goneApps: undefined,
      isRead: false,
      timers: new Map(),
      online: false,
      wasOnline: false,
      backAt: null,
      busy: null,
      updating: false,
      attention: [],
      context: this.#contextOf(name),
    }
    this.#hubs.set(name, hub)
    return hub
  }

  /** Configuration asks for it for the first time. */
  #watchAll(): void {
    this.#wasOn = true
    for (const hub of this.#hubs.values()) {
      for (const app of this.#options.appsOf(hub.name)) hub.wards.set(app.id, new Ward(hub.name, app, hub.context))
    }
  }

  /** The same for all apps of a hub. */
  #contextOf(name: string): WardContext {
    return {
      clock: this.#options.clock,
      offset: this.#offset,
      config: () => this.#options.live.value,
      patterns: () => this.#patterns,
      decisions: this.#decisions,
      onChange: (ward) => this.#onChange(this.#hub(name), ward),
      tell: (ward, event_type, reason, details) => this.#tell(ward, { event_type, reason, ...details }),
      onBad: (ward) => this.#onBad(ward),
    }
  }

  #appChanged(hub: GuardedHub, before: App | undefined, after: App): void {
    if (!this.#wasOn) return
    const ward = hub.wards.get(after.id)
    if (ward === undefined) this.#appCame(hub, after)
    else if (this.#active && this.#on) ward.changed(before ?? ward.app, after)
    else ward.see(after)
  }

  /** An app that is new, or was gone for less than a day. */
  #appCame(hub: GuardedHub, app: App): void {
    const known = hub.gone.take(app.id)
    const ward = known instanceof Ward ? known : new Ward(hub.name, app, hub.context)
    hub.wards.set(app.id, ward)
    if (!this.#active || !this.#on) ward.see(app)
    else if (known instanceof Ward) {
      ward.changed(ward.app, app)
      this.#onChange(hub, ward)
    } else ward.begin(known ?? this.#left.take(hub.name, app.id))
  }

  #appGone(hub: GuardedHub, id: string, silent: boolean): void {
    const ward = hub.wards.get(id)
    if (ward === undefined) return
    ward.lost()
    if (!silent) hub.gone.add(id, ward)
    hub.timers.get(ward)?.()
    hub.timers.delete(ward)
    hub.wards.delete(ward.id)
    if (hub.busy === ward && !hub.updating) hub.busy = null
    this.#countAttention(hub)
    this.#retry(hub)
  }

  /** What an earlier run has left of apps that the hub does not list. */
  #recall(hub: GuardedHub): void {
    if (!this.#active || !this.#on) return
    for (const { app, left, hours } of this.#left.takeAll(hub.name)) {
      if (!hub.wards.has(app) && !hub.gone.has(app)) hub.gone.add(app, left, hours)
    }
    this.#rememberGone(hub)
  }

  #rememberGone(hub: GuardedHub): void {
    if (!this.#active || !this.#on || !hub.isRead) return
    const { payload } = hub.gone
    if (JSON.stringify(payload) === JSON.stringify(hub.goneApps)) return
    hub.goneApps = payload
    this.#options.onAttention(hub.name)
  }

  #onChange(hub: GuardedHub, ward: Ward): void {
    if (hub.wards.get(ward.id) !== ward) return
    this.#options.onFacts(hub.name, ward.id)
    this.#countAttention(hub, ward)
    this.#arm(hub, ward)
    if (hub.busy === ward && !hub.updating && !ward.isRestarting) this.#release(hub)
  }

  #countAttention(hub: GuardedHub, ward?: Ward): void {
    if (ward !== undefined && hub.attention.includes(ward.id) === ward.needsAttention) return
    const ids = [...hub.wards.values()].filter(({ needsAttention }) => needsAttention).map(({ id }) => id)
    const attention = ids.sort().slice(0, MAX_ATTENTION)
    if (attention.join('\n') === hub.attention.join('\n')) return
    hub.attention = attention
    this.#options.onAttention(hub.name)
  }

  /** One timer for what is due next of an app. */
  #arm(hub: GuardedHub, ward: Ward): void {
    const { clock } = this.#options
    hub.timers.get(ward)?.()
    hub.timers.delete(ward)
    const left = ward.wakeAt - clock.elapsed()
    if (left === Number.POSITIVE_INFINITY || !this.#active || !this.#on) return
    const cancel = clock.after(Math.min(Math.max(left, 1), MAX_TIMER_MS), () => {
      hub.timers.delete(ward)
      if (!this.#on || !this.#active) return
      ward.settle()
      // One look at the clock for both: a timer may be early by less than a millisecond, and time goes on.
      const now = clock.elapsed()
      this.#tryRestart(hub, ward, now)
      if (!hub.timers.has(ward) && ward.wakeAt > now) this.#arm(hub, ward)
    })
    hub.timers.set(ward, cancel)
  }

  /** Looks again at everything that is due on a hub, the longest due first. */
  #retry(hub: GuardedHub): void {
    const due = [...hub.wards.values()].filter(({ watch }) => watch.phase === 'waiting')
    due.sort((a, b) => (a.watch.dueAt ?? 0) - (b.watch.dueAt ?? 0))
    const now = this.#options.clock.elapsed()
    for (const ward of due) this.#tryRestart(hub, ward, now)
    for (const ward of hub.wards.values()) if (!hub.timers.has(ward)) this.#arm(hub, ward)
  }

  #tryRestart(hub: GuardedHub, ward: Ward, now: number): void {
    if (this.#mayRestart(hub, ward, now, hub.busy !== null)) void this.#restart(hub, ward)
  }

  /** Whether a restart is due and nothing stands in its way; if something does, that is followed. */
  #mayRestart(hub: GuardedHub, ward: Ward, now: number, hubBusy: boolean): boolean {
    const { phase, dueAt } = ward.watch
    if (phase !== 'waiting' || dueAt === null || dueAt > now) return false
    const found = this.#decisions.obstacle({ ...this.#situation(hub, ward), hubBusy })
    if (found === 'cancel') ward.cancel()
    else if (found === 'give_up') ward.giveUp('More restarts than configuration allows.')
    else if (found !== undefined && found !== 'hold') ward.postpone(found)
    return found === undefined
  }

  #situation(hub: GuardedHub, ward: Ward) {
    const { online, backAt, busy } = hub
    return ward.situation({ mayAct: this.#mayAct, hubOnline: online, hubBackAt: backAt, hubBusy: busy !== null })
  }

  /** What is known of an app may be an hour old: it is read anew, and that decides. */
  async #restart(hub: GuardedHub, ward: Ward): Promise<void> {
    const { clock, read, log } = this.#options
    hub.busy = ward
    ward.beginRead()
    const isRead = await read(hub.name, ward.id)
    if (!isRead) log.info({ hub: hub.name, app: ward.id }, 'guardian: no restart yet, as the app could not be read')
    const isKnown = hub.wards.get(ward.id) === ward
    if (isRead && isKnown && this.#mayRestart(hub, ward, clock.elapsed(), false)) await this.#sendRestart(hub, ward)
    else ward.endRead(isRead)
    if (hub.busy === ward && !ward.isRestarting) this.#release(hub)
  }

  async #sendRestart(hub: GuardedHub, ward: Ward): Promise<void> {
    const { clock } = this.#options
    const readAt = clock.elapsed()
    const { why } = ward.watch
    const entry = ward.beginRestart()
    const isCurrent = () => {
      const watch = { ...ward.watch, dueAt: null }
      const found = this.#decisions.obstacle({
        ...this.#situation(hub, ward),
        watch: { ...watch, recent: [] },
        hubBusy: false,
      })
      const isFresh = clock.elapsed() - readAt <= FRESH_MS && !ward.hasStopped
      return found === undefined && hub.wards.get(ward.id) === ward && isFresh
    }
    const outcome = await this.#order(ward, 'restart', {}, isCurrent)
    if (outcome.ok) ward.restarted(why)
    else ward.restartFailed(entry, outcome.error.code, outlookOf(outcome.error.code))
  }

  #order(ward: Ward, command: string, payload: object, isCurrent: () => boolean): Promise<Outcome> {
    return this.#options.order({ hub: ward.hub, app: ward.id, command, payload, isCurrent })
  }

  #take(ward: Ward): boolean {
    const hub = this.#hubs.get(ward.hub)
    if (hub === undefined || hub.busy !== null) return false
    const { quietUntil, hubOnline, installing, aloneUntil, now } = this.#situation(hub, ward)
    if (!hubOnline || installing || aloneUntil > now || quietUntil !== undefined) return false
    if (ward.watch.phase !== 'idle' && ward.watch.phase !== 'given_up') return false
    hub.busy = ward
    hub.updating = true
    return true
  }

  #release(hub: GuardedHub): void {
    hub.busy = null
    hub.updating = false
    this.#retry(hub)
    this.#updater.consider()
  }

  *#updatable(): Iterable<Ward> {
    for (const { wards, busy } of this.#hubs.values()) if (busy === null) yield* wards.values()
  }

  /** Switched off by command, at rest, or ignored by configuration. */
  #isLeftOut({ id, watch }: Ward): boolean {
    if (watch.snoozedUntil !== null) return true
    return watch.switched === null ? this.#patterns.ignores(id) : !watch.switched
  }

  #considerUpdates(): void {
    const { clock } = this.#options
    this.#cancelUpdates()
    this.#cancelUpdates = () => {}
    if (!this.#active) return
    this.#updater.consider()
    const left = this.#updater.wakeAt - clock.now()
    if (left === Number.POSITIVE_INFINITY) return
    this.#cancelUpdates = clock.after(Math.min(left, MAX_TIMER_MS), () => this.#considerUpdates())
  }

  #onSchedule(pattern: string): void {
    const { log } = this.#options
    if (!this.#mayAct) return
    const fits = appFilter([pattern], [])
    let found = 0
    for (const hub of this.#hubs.values()) {
      for (const ward of [...hub.wards.values()].filter(({ id }) => fits(id))) {
        found += 1
        const { quietUntil, hubOnline } = this.#situation(hub, ward)
        const why = !hubOnline
          ? 'the hub is offline'
          : quietUntil !== undefined
            ? 'it is a quiet hour'
            : ward.schedule()
        if (why !== undefined) log.info({ hub: hub.name, app: ward.id }, `no restart by schedule: ${why}`)
      }
    }
    if (found === 0) log.info({ pattern }, 'no restart by schedule: there is no such app')
  }

  #onBad(ward: Ward): void {
    if (!this.#options.live.value.updates.off_when_bad || ward.app.autoupdate === false || !this.#mayAct) return
    void this.#order(ward, 'update', { autoupdate: false }, () => this.#mayAct)
  }

  #tell(ward: Ward, news: Omit<GuardEventPayload, 'app' | 'changed' | 'at'>): void {
    const { clock, log, onEvent } = this.#options
    const { event_type, reason, ...details } = news
    const event = { event_type, app: ward.id, changed: [], at: new Date(clock.now()).toISOString(), reason, ...details }
    onEvent(ward.hub, event)
    log.info({ hub: ward.hub, app: ward.id, reason, ...details }, `guardian: ${event_type.replaceAll('_', ' ')}`)
  }
}

function outlookOf(code: ErrorCode): 'nothing_done' | 'hopeless' | 'unsure' {
  if (NOTHING_DONE.has(code)) return 'nothing_done'
  return HOPELESS.has(code) ? 'hopeless' : 'unsure'
}
