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
import { isSavedName, SavedStates } from './saved-states.ts'
import { Schedules } from './schedules.ts'
import { type GuardConfig, isGuarded, type Patterns, patternsOf } from './settings.ts'
import { Updater } from './updater.ts'
import { type Outlook, WatchedApp, type WatchedAppContext } from './watched-app.ts'

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
  /** The app that it is about: also of a command that is for the whole hub. */
  readonly about: string | null
  readonly command: Pick<HubCommand, 'name' | 'operation' | 'write' | 'needs'>
  readonly phase: 'begun' | 'ended'
  /** Who sent it, if not somebody by MQTT. */
  readonly by: string | null
}

interface GuardedHub {
  readonly name: string
  readonly watchedApps: Map<string, WatchedApp>
  readonly gone: GoneApps
  /** What the broker is to hold of those; `undefined`: what it holds is not known yet. */
  goneApps: readonly GoneApp[] | undefined
  /** Whether its list has been read. */
  isRead: boolean
  readonly timers: Map<WatchedApp, () => void>
  online: boolean
  wasOnline: boolean
  backAt: number | null
  /** What the guardian is busy with here. */
  busy: WatchedApp | null
  /** Whether that is an update, which ends in its own way. */
  updating: boolean
  attention: readonly string[]
  readonly context: WatchedAppContext
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
  readonly #left = new SavedStates()
  readonly #schedules: Schedules
  readonly #updater: Updater
  readonly #ending = new AbortController()
  readonly #offset: () => number
  /** Apps whose web API is being asked. */
  readonly #asking = new WeakSet<WatchedApp>()
  #cancelUpdates: () => void = () => {}
  #patterns: Patterns
  /** Whether configuration asks for it. */
  #on: boolean
  /** Whether it ever did; until then no app has a watched, as of many hubs those alone take a lot. */
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
      order: (watched, command, payload, isCurrent) => this.#order(watched, command, payload, isCurrent),
      candidates: () => this.#updatable(),
      isLeftOut: (watched) => this.#isLeftOut(watched),
      takesVersion: options.takesVersion,
      backup: options.backup,
      take: (watched) => this.#take(watched),
      release: (hub) => this.#release(this.#hub(hub)),
      tell: (watched, type, details) => this.#tell(watched, { event_type: type, reason: 'schedule', ...details }),
      mayAct: () => this.#mayAct,
      signal: this.#ending.signal,
    })
  }

  /** What is published of an app; `null` once the guardian is turned off, `undefined` while nothing is known. */
  factsOf(hub: string, app: string): GuardFacts | null | undefined {
    if (this.#on) return this.#hubs.get(hub)?.watchedApps.get(app)?.facts
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
    if (isSavedName(name)) this.#left.add(name, hub, app, text)
  }

  /** This bridge is the one that acts from now on. `anew`: what the broker holds is newer than what is known here. */
  begin(anew: boolean): void {
    this.#active = true
    for (const hub of this.#hubs.values()) {
      if (anew) hub.gone.clear()
      // What is known here is newer.
      else if (hub.isRead) this.#left.takeAll(hub.name)
      for (const watched of hub.watchedApps.values()) {
        const left = this.#left.take(hub.name, watched.id)
        if (anew && this.#on) watched.begin(left)
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
      for (const watched of hub.watchedApps.values()) {
        if (this.#active && this.#on) {
          if (wasOn) watched.settle()
          else watched.begin(this.#left.take(hub.name, watched.id))
        }
        if (wasOn !== this.#on) this.#options.onFacts(hub.name, watched.id)
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
    else for (const watched of hub.watchedApps.values()) watched.lost()
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
    if (silent && hub.watchedApps.size === 0) hub.gone.clear()
    hub.isRead ||= read
    if (read) this.#recall(hub)
    else if (changes.some(({ before, after }) => before === undefined || after === undefined)) this.#rememberGone(hub)
    if (!read || !this.#active || !this.#on) return
    const watchedApps = [...hub.watchedApps.values()]
    const telling = watchedApps.filter(({ app }) => app.memory_bytes !== null || app.cpu_percent !== null).length
    for (const watched of watchedApps) {
      watched.read(telling > 0)
      void this.#question(watched)
    }
    if (hub.busy !== null) this.#releaseAfter(hub, hub.busy)
    this.#considerUpdates()
  }

  /** At most one question to an app at a time. */
  async #question(watched: WatchedApp): Promise<void> {
    const { question } = watched
    if (question === undefined || this.#asking.has(watched)) return
    this.#asking.add(watched)
    try {
      const status = await this.#options.ask(watched.hub, watched.id, question.path)
      if (status !== undefined) watched.answered(status !== null && question.expects(status))
    } finally {
      this.#asking.delete(watched)
    }
  }

  /** A command to an app begins or ends. One for the guardian itself does nothing to the app. */
  ran({ hub, about, command, phase, by }: GuardRun): void {
    const watched = about === null ? undefined : this.#hubs.get(hub)?.watchedApps.get(about)
    if (watched === undefined || !this.#active || !this.#on) return
    const isOwn = by === BY
    if (command.operation === 'installFromAppStore') watched.installing(phase, isOwn ? BY : 'command')
    else if (isOwn || !command.write || command.needs === 'guard') return
    else watched.commanded(STARTS.has(command.operation ?? '') && command.name !== 'enabled')
    this.#retry(this.#hub(hub))
  }

  /** What a command wants of it. */
  control(hub: string, app: string, wish: GuardWish): void {
    this.#hubs.get(hub)?.watchedApps.get(app)?.control(wish)
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
      watchedApps: new Map(),
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
      for (const app of this.#options.appsOf(hub.name))
        hub.watchedApps.set(app.id, new WatchedApp(hub.name, app, hub.context))
    }
  }

  /** The same for all apps of a hub. */
  #contextOf(name: string): WatchedAppContext {
    return {
      clock: this.#options.clock,
      offset: this.#offset,
      config: () => this.#options.live.value,
      patterns: () => this.#patterns,
      decisions: this.#decisions,
      onChange: (watched) => this.#onChange(this.#hub(name), watched),
      tell: (watched, event_type, reason, details) => this.#tell(watched, { event_type, reason, ...details }),
      onBad: (watched) => this.#onBad(watched),
    }
  }

  #appChanged(hub: GuardedHub, before: App | undefined, after: App): void {
    if (!this.#wasOn) return
    const watched = hub.watchedApps.get(after.id)
    if (watched === undefined) this.#appCame(hub, after)
    else if (this.#active && this.#on) watched.changed(before ?? watched.app, after)
    else watched.see(after)
  }

  /** An app that is new, or was gone for less than a day. */
  #appCame(hub: GuardedHub, app: App): void {
    const known = hub.gone.take(app.id)
    const watched = known instanceof WatchedApp ? known : new WatchedApp(hub.name, app, hub.context)
    hub.watchedApps.set(app.id, watched)
    if (!this.#active || !this.#on) watched.see(app)
    else if (known instanceof WatchedApp) {
      watched.changed(watched.app, app)
      this.#onChange(hub, watched)
    } else watched.begin(known ?? this.#left.take(hub.name, app.id))
  }

  #appGone(hub: GuardedHub, id: string, silent: boolean): void {
    const watched = hub.watchedApps.get(id)
    if (watched === undefined) return
    watched.lost()
    if (!silent) hub.gone.add(id, watched)
    hub.timers.get(watched)?.()
    hub.timers.delete(watched)
    hub.watchedApps.delete(watched.id)
    if (hub.busy === watched && !hub.updating) hub.busy = null
    this.#countAttention(hub)
    this.#retry(hub)
  }

  /** What an earlier run has left of apps that the hub does not list. */
  #recall(hub: GuardedHub): void {
    if (!this.#active || !this.#on) return
    for (const { app, left, hours } of this.#left.takeAll(hub.name)) {
      if (!hub.watchedApps.has(app) && !hub.gone.has(app)) hub.gone.add(app, left, hours)
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

  #onChange(hub: GuardedHub, watched: WatchedApp): void {
    if (hub.watchedApps.get(watched.id) !== watched) return
    this.#options.onFacts(hub.name, watched.id)
    this.#countAttention(hub, watched)
    this.#arm(hub, watched)
    this.#releaseAfter(hub, watched)
  }

  /** The next one may be restarted as soon as that of `watched` is over. */
  #releaseAfter(hub: GuardedHub, watched: WatchedApp): void {
    if (hub.busy === watched && !hub.updating && !watched.isRestarting) this.#release(hub)
  }

  #countAttention(hub: GuardedHub, watched?: WatchedApp): void {
    if (watched !== undefined && hub.attention.includes(watched.id) === watched.needsAttention) return
    const ids = [...hub.watchedApps.values()].filter(({ needsAttention }) => needsAttention).map(({ id }) => id)
    const attention = ids.sort().slice(0, MAX_ATTENTION)
    if (attention.join('\n') === hub.attention.join('\n')) return
    hub.attention = attention
    this.#options.onAttention(hub.name)
  }

  /** One timer for what is due next of an app. */
  #arm(hub: GuardedHub, watched: WatchedApp): void {
    const { clock } = this.#options
    hub.timers.get(watched)?.()
    hub.timers.delete(watched)
    const left = watched.wakeAt - clock.elapsed()
    if (left === Number.POSITIVE_INFINITY || !this.#active || !this.#on) return
    const cancel = clock.after(Math.min(Math.max(left, 1), MAX_TIMER_MS), () => {
      hub.timers.delete(watched)
      if (!this.#on || !this.#active) return
      watched.settle()
      // One look at the clock for both: a timer may be early by less than a millisecond, and time goes on.
      const now = clock.elapsed()
      this.#tryRestart(hub, watched, now)
      if (!hub.timers.has(watched) && watched.wakeAt > now) this.#arm(hub, watched)
    })
    hub.timers.set(watched, cancel)
  }

  /** Looks again at everything that is due on a hub, the longest due first. */
  #retry(hub: GuardedHub): void {
    const due = [...hub.watchedApps.values()].filter(({ watch }) => watch.phase === 'waiting')
    due.sort((a, b) => (a.watch.dueAt ?? 0) - (b.watch.dueAt ?? 0))
    const now = this.#options.clock.elapsed()
    for (const watched of due) this.#tryRestart(hub, watched, now)
    for (const watched of hub.watchedApps.values()) if (!hub.timers.has(watched)) this.#arm(hub, watched)
  }

  #tryRestart(hub: GuardedHub, watched: WatchedApp, now: number): void {
    if (this.#mayRestart(hub, watched, now, hub.busy !== null)) void this.#restart(hub, watched)
  }

  /** Whether a restart is due and nothing stands in its way; if something does, that is followed. */
  #mayRestart(hub: GuardedHub, watched: WatchedApp, now: number, hubBusy: boolean): boolean {
    const { phase, dueAt } = watched.watch
    if (phase !== 'waiting' || dueAt === null || dueAt > now) return false
    const found = this.#decisions.obstacle({ ...this.#situation(hub, watched), hubBusy })
    if (found === 'cancel') watched.cancel()
    else if (found === 'give_up') watched.giveUp('More restarts than configuration allows.')
    else if (found !== undefined && found !== 'hold') watched.postpone(found)
    return found === undefined
  }

  #situation(hub: GuardedHub, watched: WatchedApp) {
    const { online, backAt, busy } = hub
    return watched.situation({ mayAct: this.#mayAct, hubOnline: online, hubBackAt: backAt, hubBusy: busy !== null })
  }

  /** What is known of an app may be an hour old: it is read anew, and that decides. */
  async #restart(hub: GuardedHub, watched: WatchedApp): Promise<void> {
    const { clock, read, log } = this.#options
    hub.busy = watched
    watched.beginRead()
    const isRead = await read(hub.name, watched.id)
    if (!isRead) log.info({ hub: hub.name, app: watched.id }, 'guardian: no restart yet, as the app could not be read')
    const isKnown = hub.watchedApps.get(watched.id) === watched
    if (isRead && isKnown && this.#mayRestart(hub, watched, clock.elapsed(), false))
      await this.#sendRestart(hub, watched)
    else watched.endRead(isRead)
    if (hub.busy === watched && !watched.isRestarting) this.#release(hub)
  }

  async #sendRestart(hub: GuardedHub, watched: WatchedApp): Promise<void> {
    const { clock } = this.#options
    const readAt = clock.elapsed()
    const { why } = watched.watch
    const entry = watched.beginRestart()
    const isCurrent = () => {
      const watch = { ...watched.watch, dueAt: null }
      const found = this.#decisions.obstacle({
        ...this.#situation(hub, watched),
        watch: { ...watch, recent: [] },
        hubBusy: false,
      })
      const isFresh = clock.elapsed() - readAt <= FRESH_MS && !watched.hasStopped
      return found === undefined && hub.watchedApps.get(watched.id) === watched && isFresh
    }
    const outcome = await this.#order(watched, 'restart', {}, isCurrent)
    if (outcome.ok) watched.restarted(why)
    else watched.restartFailed(entry, outcome.error.code, outlookOf(outcome.error.code))
  }

  #order(watched: WatchedApp, command: string, payload: object, isCurrent: () => boolean): Promise<Outcome> {
    return this.#options.order({ hub: watched.hub, app: watched.id, command, payload, isCurrent })
  }

  #take(watched: WatchedApp): boolean {
    const hub = this.#hubs.get(watched.hub)
    if (hub === undefined || hub.busy !== null) return false
    const { quietUntil, hubOnline, installing, aloneUntil, now } = this.#situation(hub, watched)
    if (!hubOnline || installing || aloneUntil > now || quietUntil !== undefined) return false
    if (watched.watch.phase !== 'idle' && watched.watch.phase !== 'given_up') return false
    hub.busy = watched
    hub.updating = true
    return true
  }

  #release(hub: GuardedHub): void {
    hub.busy = null
    hub.updating = false
    this.#retry(hub)
    this.#updater.consider()
  }

  *#updatable(): Iterable<WatchedApp> {
    for (const { watchedApps, busy } of this.#hubs.values()) if (busy === null) yield* watchedApps.values()
  }

  /** Switched off by command, at rest, or ignored by configuration. */
  #isLeftOut({ id, watch }: WatchedApp): boolean {
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
      for (const watched of [...hub.watchedApps.values()].filter(({ id }) => fits(id))) {
        found += 1
        const { quietUntil, hubOnline } = this.#situation(hub, watched)
        const why = !hubOnline
          ? 'the hub is offline'
          : quietUntil !== undefined
            ? 'it is a quiet hour'
            : watched.schedule()
        if (why !== undefined) log.info({ hub: hub.name, app: watched.id }, `no restart by schedule: ${why}`)
      }
    }
    if (found === 0) log.info({ pattern }, 'no restart by schedule: there is no such app')
  }

  #onBad(watched: WatchedApp): void {
    if (!this.#options.live.value.updates.off_when_bad || watched.app.autoupdate === false || !this.#mayAct) return
    void this.#order(watched, 'update', { autoupdate: false }, () => this.#mayAct)
  }

  #tell(watched: WatchedApp, news: Omit<GuardEventPayload, 'app' | 'changed' | 'at'>): void {
    const { clock, log, onEvent } = this.#options
    const { event_type, reason, ...details } = news
    const event = {
      event_type,
      app: watched.id,
      changed: [],
      at: new Date(clock.now()).toISOString(),
      reason,
      ...details,
    }
    onEvent(watched.hub, event)
    log.info({ hub: watched.hub, app: watched.id, reason, ...details }, `guardian: ${event_type.replaceAll('_', ' ')}`)
  }
}

function outlookOf(code: ErrorCode): Outlook {
  if (NOTHING_DONE.has(code)) return 'nothing_done'
  if (HOPELESS.has(code)) return 'hopeless'
  return code === 'outcome_unknown' ? 'unsure' : 'refused'
}
