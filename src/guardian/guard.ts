/** The guardian, which passes events to `decide.ts` and carries out the effects. */
import type { Logger } from 'pino'
import { type Clock, wallOffset } from '../base/clock.ts'
import { nextAfter } from '../base/cron.ts'
import type { GuardedHub, GuardInput, Guardian } from '../bridge/guarding.ts'
import type { GuardEventPayload, HubEventPayload } from '../contract/events.ts'
import type { GoneApp } from '../contract/guard.ts'
import { appFilter, isGuarded } from '../contract/permissions.ts'
import type { GuardFacts } from '../contract/publications.ts'
import type { App } from '../hub/app.ts'
import { decide, isCurrent } from './decide.ts'
import { DECISIONS, type Decisions } from './decisions.ts'
import { MAX_LATE_MS } from './restart-state.ts'
import { isSavedName, type SavedName, SavedStates } from './saved-states.ts'
import { type GuardConfig, type Patterns, patternsOf } from './settings.ts'
import { afterCrash } from './storm.ts'
import { BY, type Context, type Effect, type Input, WatchedHub } from './turn.ts'
import { isOpen } from './updates.ts'
import { WatchedApp } from './watched-app.ts'

interface GuardOptions extends Pick<Context, 'isConnected'> {
  readonly clock: Clock
  readonly log: Logger
  readonly live: { readonly value: GuardConfig }
  readonly decisions?: Decisions
}

const MINUTE_MS = 60_000

export class Guard implements Guardian {
  readonly #options: GuardOptions
  readonly #hubs = new Map<string, WatchedHub>()
  readonly #saved = new SavedStates()
  readonly #schedules: (() => void)[] = []
  readonly #offset: () => number
  #patterns: Patterns
  /** Whether the configuration enables the guardian. */
  #on: boolean
  /** Whether the guardian has ever been on. Until then, it tracks no apps, which saves memory with many hubs. */
  #wasOn: boolean
  #active = false

  constructor(options: GuardOptions) {
    const { clock, live } = options
    this.#options = options
    this.#offset = wallOffset(clock)
    this.#patterns = patternsOf(live.value)
    this.#on = isGuarded(live.value)
    this.#wasOn = this.#on
  }

  factsOf(hub: string, app: string): GuardFacts | null | undefined {
    if (this.#on) return this.#hubs.get(hub)?.apps.get(app)?.facts
    return this.#wasOn ? null : undefined
  }

  attentionOf(hub: string): readonly string[] | undefined {
    return this.#on ? (this.#hubs.get(hub)?.attention ?? []) : undefined
  }

  goneAppsOf(hub: string): readonly GoneApp[] | null | undefined {
    if (this.#on) return this.#hubs.get(hub)?.goneApps
    return this.#wasOn ? null : undefined
  }

  learn(name: string, hub: string, app: string, text: string): void {
    if (isSavedName(name)) this.#saved.add(name, hub, app, text)
  }

  activate(restore: boolean): void {
    this.#active = true
    this.#decideAll({ kind: 'activate', restore })
    this.#schedule()
  }

  standBy(): void {
    this.#active = false
    for (const cancel of this.#schedules.splice(0)) cancel()
    for (const hub of this.#hubs.values()) this.#arm(hub)
  }

  reconfigured(): void {
    const { clock, live } = this.#options
    const wasOn = this.#on
    this.#patterns = patternsOf(live.value)
    this.#on = isGuarded(live.value)
    if (this.#on && !this.#wasOn) {
      this.#wasOn = true
      const now = clock.elapsed()
      for (const { port, apps } of this.#hubs.values())
        for (const app of port.apps()) apps.set(app.id, new WatchedApp(app, now))
    }
    this.#decideAll({ kind: 'configured', wasOn, isOn: this.#on })
    if (this.#active) this.#schedule()
  }

  hubAdded(name: string, port: GuardedHub): void {
    this.#hubs.set(name, new WatchedHub(name, port))
  }

  hubRemoved(name: string): void {
    this.#hubs.get(name)?.alarm?.cancel()
    this.#hubs.delete(name)
  }

  hubReleased(name: string): void {
    const hub = this.#on ? this.#hubs.get(name) : undefined
    // Until the next read-back, this bridge receives only messages of other members, and none of its own.
    const save = (topic: SavedName, app: string, value: unknown) =>
      this.#saved.add(topic, name, app, value === null ? '' : JSON.stringify(value))
    for (const [app, { facts }] of hub?.apps ?? []) {
      if (facts === undefined) continue
      save('guard', app, facts.state)
      save('history', app, facts.history)
      save('guardMemory', app, facts.memory)
    }
    if (hub?.goneApps !== undefined) save('hubGuardMemory', '', hub.goneApps)
    this.hubRemoved(name)
  }

  hubReplaced(name: string): void {
    this.#saved.forget(name)
    const hub = this.#hubs.get(name)
    const apps = [...(hub?.port.apps() ?? [])]
    const gone = apps.map((before) => ({ id: before.id, before, after: undefined }))
    const come = apps.map((after) => ({ id: after.id, before: undefined, after }))
    this.take(name, { kind: 'apps', changes: gone, read: false, silent: true })
    this.take(name, { kind: 'apps', changes: come, read: hub?.isRead === true, silent: true })
  }

  take(name: string, input: GuardInput): void {
    const hub = this.#hubs.get(name)
    if (this.#wasOn || input.kind === 'online' || input.kind === 'booted') this.#decide(hub, input)
    else if (input.kind === 'apps' && hub !== undefined) hub.isRead ||= input.read
    if (input.kind !== 'apps' || this.#on || !this.#active || input.silent) return
    // Count crashes even while the guardian is off, to report storms. Skip changes that show no sign of a crash.
    for (const { before, after } of input.changes) {
      if (before === undefined || after === undefined) continue
      const isSame = after.crash_count === before.crash_count && after.crash_message === before.crash_message
      if (!isSame || after.crashed || after.state === 'crashed') this.#countCrash(hub, before, after)
    }
  }

  #countCrash(hub: WatchedHub | undefined, before: App, after: App): void {
    const { clock, live, decisions = DECISIONS } = this.#options
    if (hub === undefined || after.enabled === false || this.#patterns.ignores(after.id)) return
    if (!decisions.hasCrashed(before, after)) return
    const storm = afterCrash(hub.storm, after.id, clock.elapsed(), live.value, decisions)
    if (storm.isOn) this.#decide(hub, { kind: 'crashed', app: after.id })
    else hub.storm = storm
  }

  #context(): Context {
    const { clock, live, decisions = DECISIONS, isConnected } = this.#options
    const [wall, now] = [clock.now(), clock.elapsed()]
    const { quiet_hours, time_zone } = live.value.guard
    let quiet: { readonly until: number | undefined } | undefined
    return {
      now,
      wall,
      offset: this.#offset(),
      config: live.value,
      patterns: this.#patterns,
      decisions,
      isActive: this.#active,
      isActing: this.#active && this.#on,
      isConnected,
      saved: this.#saved,
      quietUntil() {
        quiet ??= { until: decisions.quietUntil(quiet_hours, time_zone, wall) }
        return quiet.until === undefined ? undefined : quiet.until - wall + now
      },
      mayUpdate: () =>
        isConnected() && [...this.#hubs.values()].every(({ update }) => update === null) && isOpen(live.value, wall),
    }
  }

  #decideAll(input: Input): void {
    for (const hub of this.#hubs.values()) this.#decide(hub, input)
  }

  #decide(hub: WatchedHub | undefined, input: Input): void {
    // An effect may complete after its hub was removed.
    if (hub === undefined || this.#hubs.get(hub.name) !== hub) return
    const wasUpdating = hub.update !== null
    const { events, facts, attention, effects } = decide(hub, input, this.#context())
    for (const event of events) this.#emit(hub, event)
    for (const app of facts) hub.port.onFacts(app)
    if (attention) hub.port.onAttention()
    this.#arm(hub)
    for (const effect of effects) void this.#perform(hub, effect)
    // An update has ended, so the next update may start, possibly on a different hub.
    if (wasUpdating && hub.update === null) this.#decideAll({ kind: 'wake' })
  }

  #emit({ name: hub, port }: WatchedHub, event: GuardEventPayload | HubEventPayload): void {
    port.onEvent(event)
    const { event_type, at: _, changed: __, ...details } = { changed: [], ...event }
    this.#options.log.info({ hub, ...details }, `guardian: ${event_type.replaceAll('_', ' ')}`)
  }

  #arm(hub: WatchedHub): void {
    const at = this.#active ? hub.wakeAt : Number.POSITIVE_INFINITY
    if (at === (hub.alarm?.at ?? Number.POSITIVE_INFINITY)) return
    hub.alarm?.cancel()
    hub.alarm = undefined
    if (at === Number.POSITIVE_INFINITY) return
    const { clock } = this.#options
    const cancel = clock.after(Math.max(at - clock.elapsed(), 1), () => {
      hub.alarm = undefined
      this.#decide(hub, { kind: 'wake' })
    })
    hub.alarm = { at, cancel }
  }

  async #perform(hub: WatchedHub, effect: Effect): Promise<void> {
    const { log } = this.#options
    const { name, port } = hub
    switch (effect.kind) {
      case 'log':
        return log[effect.level]({ hub: name, ...effect.details }, effect.text)
      case 'read': {
        const { watched } = effect
        const isRead = await port.read(watched.id)
        const details = { hub: name, app: watched.id }
        if (!isRead) log.info(details, 'guardian: no restart yet, because the app could not be read')
        return this.#decide(hub, { kind: 'read', watched, isRead })
      }
      case 'request': {
        const { watched, web } = effect
        const status = await port.requestApp(watched.id, web.path)
        const isGood = status === undefined ? undefined : status !== null && web.expects(status)
        return this.#decide(hub, { kind: 'requested', watched, isGood })
      }
      case 'backup': {
        const failure = await port.backup()
        const { id: app } = effect.update.watched
        log.info({ hub: name, app, outcome: failure ?? 'ok', by: BY }, 'guardian: backup before an update')
        return this.#decide(hub, { ...effect, failure })
      }
      case 'order': {
        const { watched, command, payload } = effect.order
        const stillWanted = () => isCurrent(hub, effect.order, this.#context())
        const outcome = await port.send({ app: watched.id, command, payload, by: BY, isCurrent: stillWanted })
        return this.#decide(hub, { kind: 'outcome', order: effect.order, outcome })
      }
    }
  }

  #schedule(): void {
    const { guard, updates } = this.#options.live.value
    for (const cancel of this.#schedules.splice(0)) cancel()
    for (const [pattern, cron] of guard.schedule) {
      this.#repeat(cron, guard.time_zone, MINUTE_MS, (lateMs) => this.#onSchedule(pattern, lateMs))
    }
    const { policy, window, time_zone } = updates
    if (policy !== 'window' || window.start === null) return
    this.#repeat(window.start, time_zone, 60 * MINUTE_MS, () => this.#decideAll({ kind: 'wake' }))
  }

  /** Runs `task` at the times of `cron`. Checks the clock at least every `checkMs`, because it may be changed. */
  #repeat(cron: string, timeZone: string | null, checkMs: number, task: (lateMs: number) => void): void {
    const { clock } = this.#options
    let cancel = () => {}
    const awaitNext = (from: number) => {
      const at = nextAfter(cron, timeZone ?? undefined, from)
      if (at === undefined) return
      cancel = clock.after(Math.min(at - clock.now(), checkMs), () => {
        // Read the clock only once, so that a task that is not yet due is scheduled again, not skipped.
        const now = clock.now()
        awaitNext(now >= at ? at : now)
        if (now >= at) task(now - at)
      })
    }
    awaitNext(clock.now())
    this.#schedules.push(() => cancel())
  }

  #onSchedule(pattern: string, lateMs: number): void {
    const { log } = this.#options
    if (lateMs > MAX_LATE_MS) return void log.info({ pattern }, 'no scheduled restart: its time has passed')
    const fits = appFilter([pattern], [])
    const apps = [...this.#hubs.values()].flatMap(({ apps }) => [...apps.keys()])
    if (!apps.some(fits)) log.info({ pattern }, 'no scheduled restart: no app matches')
    this.#decideAll({ kind: 'schedule', fits })
  }
}
