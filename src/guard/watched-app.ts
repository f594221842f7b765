/** One app under the guardian's eyes: what is known of it, what has happened to it, and what is to be told. */
import type { Clock } from '../base/clock.ts'
import type { GuardEventPayload, GuardEventType } from '../contract/events.ts'
import type { GuardMemory, GuardWish, HistoryEntry, Reason } from '../contract/guard.ts'
import type { GuardFacts } from '../contract/publications.ts'
import type { App } from '../hub/app.ts'
import { headOf, isCrashed, isUp, reasonOf } from './classify.ts'
import { BAD_WITHIN_MS, type Decisions, isFallen, type Situation } from './decisions.ts'
import { type History, lasting, updatedFrom, withEntry, without } from './history.ts'
import { answered, foundBy, type Limits, probe, UNPROBED } from './probes.ts'
import * as watch from './restart-state.ts'
import type { GuardConfig, Patterns, WebProbe } from './settings.ts'
import { type Memory, noMemory, remember, trendOf } from './trend.ts'
import { offerOf, shownOffer } from './updates.ts'

/** After a command that writes, the app is left alone for so long. */
const ALONE_MS = 60_000
/** How long an app may take to come up after a restart. */
export const START_MS = 60_000
/** Between two reports of growing memory of one app. */
const RISING_AGAIN_MS = 24 * 3_600_000
/** A trend is published anew when it differs by so much, as of itself and in bytes an hour. */
const TREND_STEP = { part: 0.25, bytes: 64 * 1024 }

/** Of a restart that failed: not sent, never to be taken, refused, or perhaps done. */
export type Outlook = 'nothing_done' | 'hopeless' | 'refused' | 'unsure'

/** What else belongs to an event. */
export type Details = Partial<Pick<GuardEventPayload, 'message' | 'from' | 'to'>>

export interface WatchedAppContext {
  readonly clock: Clock
  /** What is added to `elapsed` for the time that others read and write. */
  readonly offset: () => number
  readonly config: () => GuardConfig
  readonly patterns: () => Patterns
  readonly decisions: Decisions
  /** What is published of it has changed. */
  readonly onChange: (watched: WatchedApp) => void
  readonly tell: (watched: WatchedApp, type: GuardEventType, reason: Reason, details: Details) => void
  /** An update was a bad one. */
  readonly onBad: (watched: WatchedApp) => void
}

export class WatchedApp {
  readonly hub: string
  readonly id: string
  readonly #context: WatchedAppContext
  #app: App
  #watch: watch.RestartState = watch.UNTOUCHED
  #history: History = []
  /** Its time is of `elapsed`, as all that are numbers. */
  #updated: (Omit<NonNullable<GuardMemory['updated']>, 'at'> & { readonly at: number }) | null = null
  #offered: GuardMemory['offered'] = null
  /** When the app was last seen, in `clock.elapsed()` milliseconds; `undefined`: not since it or its hub came back. */
  #seenAt: number | undefined
  #facts: GuardFacts | undefined
  #text = ''
  /** What the facts follow from, as it was when they were made. */
  #basis: readonly unknown[] = []
  #memory: Memory
  #probed = UNPROBED
  #changedAt: number
  #trend: number | null = null
  #rising = false
  #risingSaidAt = Number.NEGATIVE_INFINITY
  /** Reason of the crashes after an update that was a bad one. */
  #bad: Reason | null = null
  /** Why it should be restarted although it runs. */
  #found: Reason | undefined
  /** Whether the hub does not say any more what it uses. */
  #silent = false
  #hasStopped = false
  /** Whether the hub has answered to the restart under way, and to the read before it. */
  #answered = true
  /** Lists in a row, since the hub took its restart, in which it runs. */
  #listsUp = 0
  /** Reads before a restart that have failed since the last good one. */
  #failedReads = 0
  /** The time until which quiet hours have put a restart off. */
  #quietDue: number | undefined
  #aloneUntil = 0
  /** Installs of it under way, and who does them. */
  #installs = 0
  #installedBy: string | null = null

  constructor(hub: string, app: App, context: WatchedAppContext) {
    this.hub = hub
    this.id = app.id
    this.#app = app
    this.#context = context
    this.#changedAt = this.#now
    this.#memory = noMemory(app.id)
  }

  get app(): App {
    return this.#app
  }

  get watch(): watch.RestartState {
    return this.#watch
  }

  get offered(): GuardMemory['offered'] {
    return this.#offered
  }

  get facts(): GuardFacts | undefined {
    return this.#facts
  }

  /** Whether it is watched: as a command says, else as configuration does. */
  get on(): boolean {
    return this.#watch.switched ?? this.#context.patterns().watches(this.id)
  }

  get needsAttention(): boolean {
    return (this.#facts?.state.attention.length ?? 0) > 0
  }

  /**
   * Whether a restart is being prepared or has been sent, and the app has neither come up nor had the time for it. Polling may
   * not see it stop and start. The first list may have been asked for before the restart, so that the second one counts.
   */
  get isRestarting(): boolean {
    return !this.#answered || (this.#watch.phase === 'restarting' && this.#listsUp < 2)
  }

  /** Whether it has been seen to stop, or to start, since its restart began. */
  get hasStopped(): boolean {
    return this.#hasStopped
  }

  /** When something is due without anything happening. */
  get wakeAt(): number {
    const { phase, dueAt, sentAt, upSince, recent, snoozedUntil } = this.#watch
    const times = [phase === 'waiting' ? dueAt : null, snoozedUntil]
    if (phase === 'restarting' && sentAt !== null) times.push(sentAt + START_MS)
    const counts = recent.length > 0 || phase === 'given_up'
    if (upSince !== null && counts) times.push(upSince + watch.CALM_MS)
    const oldest = recent.find((at) => at > this.#now - this.#pace.window)
    if (oldest !== undefined) times.push(oldest + this.#pace.window)
    if (this.#updated !== null) times.push(this.#updated.at + BAD_WITHIN_MS + 1)
    return Math.min(...times.map((at) => at ?? Number.POSITIVE_INFINITY))
  }

  /** This bridge answers for the app from now on; what was left of it on the broker is taken up. */
  begin(left: watch.SavedState | undefined): void {
    const now = this.#now
    const app = this.#app
    this.lost()
    if (left !== undefined) {
      const offset = this.#context.offset()
      this.#watch = watch.restored(left, now, offset)
      this.#history = left.history.slice(0, this.#context.config().guard.history)
      this.#offered = left.memory?.offered ?? null
      const updated = left.memory?.updated ?? null
      this.#updated = updated && { ...updated, at: Math.min(Date.parse(updated.at) - offset, now) }
      this.#bad = lasting(this.#history, 'bad_update', app.version) ?? null
      const said = left.history.find(({ what }) => what === 'memory_rising')
      if (said !== undefined) this.#risingSaidAt = Math.min(Date.parse(said.at) - offset, now)
    }
    if (this.#isNewCrash(left)) this.#crashed(app)
    else if (app.enabled === false) this.#watch = watch.stopped(this.#watch)
    else if (isUp(app) && !(isCrashed(app) && this.#lies)) {
      this.#watch = watch.up(this.#watch, app.state === 'running', now)
    } else if (!isCrashed(app) && this.#watch.phase === 'idle') this.#watch = watch.stopped(this.#watch)
    this.settle()
  }

  /** At the first sight of an app: whether it has crashed, and not already when it was seen before. */
  #isNewCrash(left: watch.SavedState | undefined): boolean {
    if (!this.#context.decisions.hasCrashed(undefined, this.#app)) return false
    if (this.#watch.phase !== 'idle') return false
    const [newest] = left?.history ?? []
    const { crash_message, version } = this.#app
    const known = isUp(this.#app) ? left?.state?.last_crash : newest?.what === 'crash' ? newest : undefined
    return known?.message !== headOf(crash_message) || known.version !== version
  }

  /** Whether it has not been restarted since it fell, and may still be. */
  get #lies(): boolean {
    const { down, phase } = this.#watch
    return down && (phase === 'idle' || phase === 'waiting')
  }

  /** Only looks on: another bridge answers for the app. */
  see(app: App): void {
    this.#app = app
    this.lost()
  }

  /** The app or its hub is away: that time does not count as one in which an offer was seen. */
  lost(): void {
    this.#seenAt = undefined
  }

  changed(before: App, after: App): void {
    const now = this.#now
    this.#app = after
    this.#changedAt = now
    const lies = this.#lies
    // A timer may be late.
    if (watch.isCalm(this.#watch, now)) this.#watch = watch.afresh(this.#watch)
    if (before.version !== after.version) this.#versionChanged(before.version, after.version)
    this.#offer()
    if (before.state === 'running' && after.state !== 'running') this.#memory = noMemory(this.id)
    if (this.#context.decisions.hasCrashed(before, after, lies)) this.#crashed(after)
    else if (after.enabled === false) this.#watch = watch.stopped(this.#watch)
    else if (isUp(after)) {
      if (after.state !== 'running') this.#hasStopped = true
      const stillLies = lies && isCrashed(after) && after.state === before.state
      if (!stillLies && (!this.#watch.forced || this.#hasStopped || this.#watch.phase !== 'restarting')) {
        this.#watch = watch.up(this.#watch, after.state === 'running', now)
      }
    } else if (!isCrashed(after) && isStopped(after)) {
      this.#hasStopped = true
      // Where the flag of a crash goes without a start, a person has stopped it.
      if (!this.#watch.down || isCrashed(before)) this.#watch = watch.stopped(this.#watch)
    }
    this.settle()
  }

  /** The whole list has been read. */
  read(tellsUsage: boolean): void {
    const { memory_bytes, state } = this.#app
    const now = this.#now
    const limits = this.#limits
    this.#listsUp = this.#answered && state === 'running' ? this.#listsUp + 1 : 0
    this.#probed = probe(this.#probed, this.#app, limits, tellsUsage)
    if (state === 'running' && memory_bytes !== null && remember(this.#memory, now, memory_bytes)) this.#follow(limits)
    this.#offer()
    const wasFound = this.#found
    const isWatched = this.on && state === 'running' && this.#app.enabled !== false
    this.#silent = isWatched && this.#probed.silent >= limits.reads
    this.#found = isWatched ? foundBy(this.#probed, limits, now - this.#changedAt) : undefined
    if (this.#found !== undefined && this.#watch.phase === 'idle') {
      this.#watch = watch.planned(this.#watch, this.#found, now, this.#pace, true)
    } else if (wasFound !== undefined && this.#found === undefined && this.#watch.forced) {
      if (this.#watch.phase === 'waiting') this.#watch = watch.up({ ...this.#watch, forced: false }, true, now)
    }
    this.settle()
  }

  /** What to ask the app's web API now, if anything. */
  get question(): WebProbe | undefined {
    return this.on && this.#app.state === 'running' ? this.#context.patterns().webProbe(this.id) : undefined
  }

  /** Whether that was answered as expected; it counts with the next read. */
  answered(isGood: boolean): void {
    if (this.#app.state === 'running') this.#probed = answered(this.#probed, isGood)
  }

  /** A restart at a time that configuration names. Returns why there is none. */
  schedule(): string | undefined {
    const { enabled, state } = this.#app
    if (!this.on) return 'it is not watched'
    if (enabled === false) return 'it is disabled'
    if (state !== 'running') return 'it does not run'
    if ((this.#watch.snoozedUntil ?? 0) > this.#now) return 'the guardian rests'
    if (this.#watch.phase !== 'idle') return 'it is about to be restarted, or was given up'
    this.#watch = { ...watch.planned(this.#watch, 'schedule', this.#now, this.#pace, true), dueAt: this.#now }
    this.settle()
    return undefined
  }

  control({ enabled, snooze, forget }: GuardWish): void {
    const now = this.#now
    if (forget) {
      this.#history = []
      this.#bad = null
      this.#updated = null
      this.#rising = false
      const { switched, snoozedUntil, upSince, down } = this.#watch
      this.#watch = { ...watch.UNTOUCHED, switched, snoozedUntil, upSince, down }
    }
    if (enabled !== undefined) {
      const { phase } = this.#watch
      const rested =
        phase === 'waiting' || phase === 'given_up' ? ({ phase: 'idle', forced: false, dueAt: null } as const) : {}
      this.#watch = { ...watch.afresh({ ...this.#watch, ...rested }), switched: enabled, snoozedUntil: null }
      if (enabled) this.#bad = null
    }
    if (snooze !== undefined) {
      const rested = this.#watch.phase === 'waiting' ? ({ phase: 'idle', forced: false, dueAt: null } as const) : {}
      this.#watch = { ...this.#watch, ...rested, snoozedUntil: now + snooze }
    }
    this.settle()
  }

  /** A command that writes, and is not the guardian's, begins or ends: the app is left alone for a while. */
  commanded(isStart: boolean): void {
    this.#aloneUntil = this.#now + ALONE_MS
    if (isStart) this.#watch = watch.afresh(this.#watch)
    this.settle()
  }

  installing(phase: 'begun' | 'ended', by: string): void {
    // Of an app that came by its install only the end is heard.
    this.#installs = Math.max(0, this.#installs + (phase === 'begun' ? 1 : -1))
    this.#installedBy = by
    if (phase === 'ended') this.#aloneUntil = this.#now + ALONE_MS
    this.settle()
  }

  /** What stands in the way of a restart, for the decision. */
  situation(hub: Pick<Situation, 'mayAct' | 'hubOnline' | 'hubBackAt' | 'hubBusy'>): Situation {
    return {
      watch: this.#watch,
      app: this.#app,
      on: this.on,
      now: this.#now,
      pace: this.#pace,
      installing: this.#installs > 0,
      aloneUntil: this.#aloneUntil,
      quietUntil: this.#quietUntil,
      ...hub,
    }
  }

  cancel(): void {
    this.#watch = watch.stopped({ ...this.#watch, phase: 'idle' })
    this.settle()
  }

  postpone(until: number): void {
    this.#watch = watch.postponed(this.#watch, until)
    this.#quietDue = this.#quietUntil === undefined ? undefined : until
    this.settle()
  }

  /** The app is read anew before its restart. */
  beginRead(): void {
    this.#answered = false
  }

  /** No restart has followed. `isRead`: whether it could be read; it is tried again by the back-off otherwise. */
  endRead(isRead: boolean): void {
    this.#failedReads = isRead ? 0 : this.#failedReads + 1
    if (!isRead && this.#watch.phase === 'waiting') {
      const { recent } = this.#watch
      this.postpone(this.#now + this.#context.decisions.delayAfter(recent.length + this.#failedReads, this.#pace))
    }
    this.#answered = true
  }

  giveUp(message: string): void {
    this.#watch = watch.givenUp(this.#watch)
    this.#note('gave_up', this.#watch.why, 'guard', message)
    this.#context.tell(this, 'gave_up', this.#watch.why, { message })
    this.settle()
  }

  /** A restart is sent now. Returns its entry in the history. */
  beginRestart(): HistoryEntry {
    this.#watch = watch.restarting(this.#watch, this.#now)
    this.#hasStopped = false
    this.#answered = false
    this.#listsUp = 0
    this.#failedReads = 0
    const entry = this.#note('restart', this.#watch.why, 'guard', null)
    this.settle()
    return entry
  }

  /** The hub has taken it. */
  restarted(why: Reason): void {
    this.#answered = true
    this.#memory = noMemory(this.id)
    this.#rising = false
    this.#context.tell(this, 'restarted', why, {})
    this.settle()
  }

  /** It came to nothing, as far as is known: it is tried again after a while, or never. */
  restartFailed(entry: HistoryEntry, code: string, outlook: Outlook): void {
    this.#answered = true
    if (outlook === 'refused' || outlook === 'unsure') {
      this.#history = this.#history.map((one) => (one === entry ? { ...entry, message: code } : one))
      if (outlook === 'refused' && this.#watch.phase === 'restarting') this.#endRestart()
      this.settle()
      return
    }
    this.#history = without(this.#history, entry)
    const { phase } = this.#watch
    this.#watch = this.#unlessStopped(watch.withdrawn(this.#watch))
    if (outlook === 'hopeless') {
      this.giveUp(code)
      return
    }
    this.#aloneUntil = Math.max(this.#aloneUntil, phase === 'restarting' ? this.#now + ALONE_MS : 0)
    this.settle()
  }

  /** Since its restart began, a person may have stopped it: it is left as it is then. */
  #unlessStopped(rested: watch.RestartState): watch.RestartState {
    return this.#hasStopped && isStopped(this.#app) && !isCrashed(this.#app) ? watch.stopped(rested) : rested
  }

  /** It has had its time, or the hub has refused it. */
  #endRestart(): void {
    const rested = this.#unlessStopped({ ...this.#watch, phase: 'idle', forced: false, sentAt: null })
    // Some hubs say nothing new of an app that runs again.
    this.#watch = this.#app.state === 'running' ? watch.up(rested, true, this.#now) : rested
  }

  /** Follows from time alone, and plans what is to be done. */
  settle(): void {
    const now = this.#now
    if (watch.isCalm(this.#watch, now)) this.#watch = watch.afresh(this.#watch)
    const { phase, sentAt, snoozedUntil } = this.#watch
    if (phase === 'restarting' && sentAt !== null && now - sentAt >= START_MS) this.#endRestart()
    // A clock that is set may end quiet hours early.
    if (this.#quietDue !== undefined && this.#quietUntil === undefined) {
      if (this.#watch.dueAt === this.#quietDue) this.#watch = { ...this.#watch, dueAt: Math.min(this.#quietDue, now) }
      this.#quietDue = undefined
    }
    if (snoozedUntil !== null && snoozedUntil <= now) this.#watch = { ...this.#watch, snoozedUntil: null }
    if (this.#updated !== null && now - this.#updated.at > BAD_WITHIN_MS) this.#updated = null
    this.#plan(now)
    this.#publish(now)
  }

  #plan(now: number): void {
    const { phase, snoozedUntil, lastCrash } = this.#watch
    const needed = isFallen(this.#watch, this.#app) && this.#app.enabled !== false
    if (!this.on || phase !== 'idle' || !needed || snoozedUntil !== null || this.#installs > 0) return
    const why = lastCrash?.reason ?? 'unknown'
    const { decisions } = this.#context
    if (decisions.hasUsedUp(this.#watch, now, this.#pace)) {
      this.#watch = { ...this.#watch, why }
      this.giveUp(`${this.#pace.max_restarts} restarts did not help.`)
      return
    }
    const dueAt = now + decisions.delayAfter(this.#watch.recent.length, this.#pace)
    this.#watch = { ...watch.planned(this.#watch, why, now, this.#pace), dueAt }
  }

  #crashed(app: App): void {
    const now = this.#now
    const reason = reasonOf(app.crash_message)
    const crash = { at: this.#time, reason, message: headOf(app.crash_message), version: app.version }
    this.#watch = watch.crashed(this.#watch, crash)
    this.#memory = noMemory(this.id)
    this.#note('crash', reason, null, crash.message)
    if (this.#updated === null) return
    this.#updated = { ...this.#updated, crashes: this.#updated.crashes + 1 }
    const { at, crashes, from, to } = this.#updated
    if (this.#bad !== null || !this.#context.decisions.isBad(crashes, now - at)) return
    this.#bad = reason
    const message = `${crashes} crashes since the update from ${from ?? '?'} to ${to ?? '?'}`
    this.#note('bad_update', reason, null, message)
    this.#context.tell(this, 'bad_update', reason, { message, ...versions(from, to) })
    this.#context.onBad(this)
  }

  #versionChanged(from: string | null, to: string | null): void {
    if (from === null || to === null) return
    this.#updated = { at: this.#now, from, to, crashes: 0 }
    this.#bad = null
    this.#offered = null
    this.#rising = false
    this.#memory = noMemory(this.id)
    this.#watch = watch.updated(this.#watch, from, to)
    this.#note('update', null, this.#installedBy, updatedFrom(from))
    if (this.#installs === 0) this.#installedBy = null
  }

  #follow(limits: Limits): void {
    const trend = trendOf(this.#memory)
    this.#trend = shownTrend(this.#trend, trend)
    const now = this.#now
    const rising = this.#context.decisions.isRising(this.#memory, trend, limits.memory)
    if (rising && !this.#rising && now - this.#risingSaidAt >= RISING_AGAIN_MS) {
      this.#risingSaidAt = now
      const message = `${mebibytes(this.#app.memory_bytes ?? 0)} MiB, and ${mebibytes(trend ?? 0)} MiB more each hour`
      this.#note('memory_rising', 'memory_limit', null, message)
      this.#context.tell(this, 'memory_rising', 'memory_limit', { message })
    }
    this.#rising = rising || (this.#rising && (trend ?? 0) > 0)
  }

  /** Which version is on offer, and for how long that was seen. */
  #offer(): void {
    const now = this.#context.clock.elapsed()
    const gap = now - (this.#seenAt ?? now)
    this.#seenAt = now
    const isWanted = this.#context.config().updates.policy !== 'manual'
    this.#offered = isWanted ? offerOf(this.#app, this.#offered, gap, this.#time) : null
  }

  #note(what: HistoryEntry['what'], reason: Reason | null, by: string | null, message: string | null): HistoryEntry {
    const entry = { at: this.#time, what, reason, version: this.#app.version, by, message: headOf(message) }
    this.#history = withEntry(this.#history, entry, this.#context.config().guard.history)
    return entry
  }

  #publish(now: number): void {
    const { on } = this
    const { switched } = this.#watch
    const attention = this.#attention()
    const count = watch.countRecent(this.#watch.recent, now, this.#pace)
    const offset = this.#context.offset()
    const updated = this.#updated
    const basis = [this.#watch, on, this.#trend, attention.join(), count, this.#history, this.#offered, updated, offset]
    if (basis.every((value, i) => value === this.#basis[i])) return
    const hasMoved = this.#watch !== this.#basis[0]
    this.#basis = basis
    const state = watch.payloadOf(this.#watch, now, this.#pace, { offset, on, trend: this.#trend, attention })
    const isNothing = switched === null && this.#offered === null && updated === null
    const shown = updated && { ...updated, at: new Date(updated.at + offset).toISOString() }
    const offered = shownOffer(this.#offered, this.#context.config().updates.hold_days)
    const memory = isNothing ? null : { enabled: switched, offered, updated: shown }
    const text = JSON.stringify([state, memory])
    if (text !== this.#text || this.#facts?.history !== this.#history) {
      this.#text = text
      this.#facts = { state, history: this.#history, memory }
      // What is not published counts too: a restart of an app that was switched off since has its end.
    } else if (!hasMoved) return
    this.#context.onChange(this)
  }

  #attention(): Reason[] {
    const { phase, why } = this.#watch
    const reasons = [
      phase === 'given_up' ? why : undefined,
      this.#bad ?? undefined,
      this.#rising ? ('memory_limit' as const) : undefined,
      this.#found,
      this.#silent ? ('silent' as const) : undefined,
    ]
    return [...new Set(reasons.filter((reason) => reason !== undefined))]
  }

  get #limits(): Limits {
    const { memoryLimit, cpuLimit, changeLimit, restartsSilent } = this.#context.patterns()
    return {
      memory: memoryLimit(this.id),
      cpu: cpuLimit(this.id),
      change: changeLimit(this.id),
      reads: this.#context.config().guard.for_reads,
      mayBeSilent: !restartsSilent(this.id),
    }
  }

  /** Quiet hours go by the clock of the people there. */
  get #quietUntil(): number | undefined {
    const { quiet_hours, time_zone } = this.#context.config().guard
    const wall = this.#context.clock.now()
    const until = this.#context.decisions.quietUntil(quiet_hours, time_zone, wall)
    return until === undefined ? undefined : until - wall + this.#now
  }

  get #pace(): watch.RestartLimits {
    return this.#context.config().guard
  }

  get #now(): number {
    return this.#context.clock.elapsed()
  }

  /** The time that others read, ISO 8601. */
  get #time(): string {
    return new Date(this.#context.clock.now()).toISOString()
  }
}

const isStopped = ({ state }: App) => state === 'stopped' || state === 'stopping'
const mebibytes = (bytes: number) => (bytes / 1_048_576).toFixed(1)

/** An event names only versions that are known. */
export function versions(from: string | null, to: string | null): Details {
  return { ...(from !== null && { from }), ...(to !== null && { to }) }
}

/** A trend with two digits, and the one before where it says nearly the same: each read would be news otherwise. */
function shownTrend(before: number | null, now: number | null): number | null {
  if (now === null) return null
  const shown = Math.abs(now) < TREND_STEP.bytes ? 0 : Number(now.toPrecision(2))
  if (before === null) return shown
  const differs = Math.abs(shown - before)
  return differs >= TREND_STEP.bytes && differs >= TREND_STEP.part * Math.abs(before) ? shown : before
}
