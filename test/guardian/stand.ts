/** A guardian with one hub that a test controls. Records the guardian's orders, reports and publications. */
import { deepEqual } from 'node:assert/strict'
import type { Clock } from '../../src/base/clock.ts'
import type { GuardedHub, GuardOrder, GuardRun } from '../../src/bridge/guarding.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Outcome } from '../../src/contract/answer.ts'
import type { HubCommand } from '../../src/contract/command.ts'
import { type CommandName, findCommand } from '../../src/contract/commands.ts'
import { CommandError, type ErrorCode } from '../../src/contract/errors.ts'
import type { GuardEventPayload, HubEventPayload } from '../../src/contract/events.ts'
import type { GuardControl } from '../../src/contract/guard.ts'
import type { GuardFacts } from '../../src/contract/publications.ts'
import { Guard } from '../../src/guardian/guard.ts'
import type { GuardConfig } from '../../src/guardian/settings.ts'
import { type App, type AppPatch, type Change, patchApp } from '../../src/hub/app.ts'
import { createLog } from '../../src/observability/log.ts'
import { FakeClock } from '../support/fake-clock.ts'

export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE

/** The configuration of a window for updates, to which tests add options and a closing brace. */
export const UPDATES =
  'guard: { watch: ["*"] }\nupdates: { policy: window, window: { start: "0 13 * * *", length: 2h }, time_zone: UTC'

export const OK: Outcome = { ok: true, json: 'null' }
export const refusal = (code: ErrorCode): Outcome => ({ ok: false, error: new CommandError(code) })

export const changed = (changes: readonly Change[], read = false, silent = false) =>
  ({ kind: 'apps', changes, read, silent }) as const

export const configOf = (yaml: string): GuardConfig =>
  loadConfig({ env: {}, file: 'x.yaml', readFile: () => yaml, requireHub: false }).config

export function commandOf(name: CommandName<'app'>): HubCommand {
  const row = findCommand('app', name, false) ?? findCommand('app', name, true)
  if (row === undefined || row.target === 'bridge') throw new Error(`no command ${name}`)
  return row
}

const WELL: AppPatch = { version: '1.0.0', enabled: true, state: 'running', crashed: false, crash_count: 0 }

/** Wraps a clock: the first timer fires a millisecond early, and the time catches up after `reads` further reads. */
export function early(reads: number) {
  return (clock: Clock): Clock => {
    let left = Number.POSITIVE_INFINITY
    const late = () => {
      left -= 1
      return left >= 0 ? 0 : 1
    }
    return {
      elapsed: () => clock.elapsed() + late(),
      now: () => clock.now() + late(),
      after: (ms, task) =>
        clock.after(left === Number.POSITIVE_INFINITY ? ms - 1 : ms, () => {
          left = Math.min(left, reads)
          task()
        }),
    }
  }
}

export class Stand {
  readonly clock = new FakeClock(Date.parse('2026-01-05T12:00:00Z'))
  readonly orders: GuardOrder[] = []
  readonly events: GuardEventPayload[] = []
  readonly hubEvents: HubEventPayload[] = []
  readonly warnings: string[] = []
  readonly apps = new Map<string, App>()
  readonly live: { value: GuardConfig }
  readonly guard: Guard
  connected = true
  readonly hidden = new Set<string>()
  acceptsVersion = true
  /** Answers an order of the guardian; by default, the hub accepts the order. */
  answer: (order: GuardOrder) => Promise<Outcome> = () => Promise.resolve(OK)
  backup: () => Promise<string | undefined> = () => Promise.resolve(undefined)
  /** Returns the changes that a read of an app finds, or `null` if the read fails or the app is removed. */
  found: (app: string) => AppPatch | null | Promise<AppPatch | null> = () => ({})
  /** Returns the status of an app's web API; by default, there is no conclusive answer. */
  ask: (app: string, path: string) => number | null | undefined = () => undefined
  /** Simulates that this member of a fleet serves the hub (again). */
  readonly serve: () => void

  readonly #yaml: string

  constructor(yaml = 'guard: { watch: ["*"] }', seen: (clock: Clock) => Clock = (clock) => clock) {
    this.#yaml = yaml
    this.live = { value: configOf(yaml) }
    this.guard = new Guard({
      clock: seen(this.clock),
      log: createLog({
        level: 'warn',
        format: 'json',
        secrets: [],
        destination: { write: (line) => this.warnings.push(line) },
      }),
      live: this.live,
      isConnected: () => this.connected,
    })
    const port: GuardedHub = {
      read: async (app) => {
        const patch = await this.found(app)
        if (patch !== null) this.say(app, patch)
        return patch !== null
      },
      backup: () => this.backup(),
      acceptsVersion: () => this.acceptsVersion,
      shows: (app) => !this.hidden.has(app),
      apps: () => this.apps.values(),
      requestApp: (app, path) => Promise.resolve(this.ask(app, path)),
      memory: () => [],
      send: (order) => {
        this.orders.push(order)
        return this.answer(order)
      },
      onEvent: (event) => (event.app === null ? this.hubEvents.push(event) : this.events.push(event)),
      onFacts: () => {},
      onAttention: () => {},
    }
    this.serve = () => this.guard.hubAdded('home', port)
    this.serve()
  }

  /** Simulates the first read of the hub's app list while this bridge is active. */
  start(...ids: readonly string[]): this {
    this.guard.activate(true)
    for (const id of ids) this.say(id, {})
    this.guard.take('home', { kind: 'online', online: true })
    return this
  }

  /** Returns a stand for the next run of the bridge, at the same time and with the data that this one published. */
  async next(yaml = this.#yaml): Promise<Stand> {
    const next = new Stand(yaml)
    await next.clock.advance(this.clock.elapsed())
    next.clock.step(this.clock.now() - next.clock.now())
    for (const id of this.apps.keys()) {
      const { state, history, memory } = this.facts(id)
      for (const [name, value] of Object.entries({ guard: state, history, guardMemory: memory }))
        if (value !== null) next.guard.learn(name, 'home', id, JSON.stringify(value))
    }
    next.guard.learn('hubGuardMemory', 'home', '', JSON.stringify(this.guard.goneAppsOf('home') ?? []))
    return next
  }

  /** Reports to the guardian whether the hub is online. */
  setOnline(online: boolean): this {
    this.guard.take('home', { kind: 'online', online: online })
    return this
  }

  control(id: string, control: GuardControl): this {
    this.guard.take('home', { kind: 'control', app: id, control })
    return this
  }

  say(id: string, patch: AppPatch): this {
    const before = this.apps.get(id)
    const after = patchApp(before, id, before === undefined ? { ...WELL, ...patch } : patch)
    this.apps.set(id, after)
    if (after !== before) this.guard.take('home', changed([{ id, before, after }]))
    return this
  }

  /** Removes the app because of an event from the hub or, if `silent`, because of the configuration. */
  remove(id: string, silent = false): this {
    const before = this.apps.get(id)
    this.apps.delete(id)
    this.guard.take('home', changed([{ id, before, after: undefined }], false, silent))
    return this
  }

  crash(id: string, message = 'Error: boom'): this {
    const count = (this.apps.get(id)?.crash_count ?? 0) + 1
    return this.say(id, { state: 'crashed', crashed: true, crash_message: message, crash_count: count })
  }

  run(id: string): this {
    return this.say(id, { state: 'running', crashed: false, crash_message: null })
  }

  /** Lets the guardian give up on an app after its only restart. */
  async giveUp(id: string): Promise<this> {
    this.crash(id)
    await this.clock.advance(10 * SECOND)
    this.run(id).crash(id)
    deepEqual(this.state(id).state, 'given_up')
    return this
  }

  /** Makes each restart succeed immediately. */
  startsApps(): this {
    this.answer = ({ app }) => {
      this.say(app, { state: 'starting' })
      this.run(app)
      return Promise.resolve(OK)
    }
    return this
  }

  /** Reports to the guardian that the list was read again, without changes. */
  read(times = 1): this {
    for (let i = 0; i < times; i += 1) this.guard.take('home', changed([], true))
    return this
  }

  /** Advances the clock, and expects that the guardian has made exactly these restarts so far. */
  async expectAfter(ms: number, restarts: readonly string[]): Promise<void> {
    await this.clock.advance(ms)
    deepEqual(this.restarted, restarts)
  }

  /** Expects that the guardian makes the last of these restarts after exactly this time, and the others earlier. */
  async restartsAfter(ms: number, restarts: readonly string[]): Promise<void> {
    await this.expectAfter(ms - 1, restarts.slice(0, -1))
    await this.expectAfter(1, restarts)
  }

  /** Advances the clock, with a read every hour. */
  async pass(hours: number): Promise<void> {
    for (let i = 0; i < hours; i += 1) {
      await this.clock.advance(3_600_000)
      this.read()
    }
  }

  command(
    id: string,
    command: CommandName<'app'> | HubCommand,
    phases: readonly GuardRun['phase'][] = ['begun', 'ended'],
    by: string | null = null,
    succeeds = true,
  ): this {
    const row = typeof command === 'string' ? commandOf(command) : command
    const starts = row.operation === 'restartApp' || row.operation === 'enableApp'
    const run = { about: id, command: row, setting: null, starts, by }
    for (const phase of phases) {
      const ok = succeeds && phase === 'ended'
      this.guard.take('home', { kind: 'command', run: { ...run, phase, ok } })
    }
    return this
  }

  facts(id: string): GuardFacts {
    const facts = this.guard.factsOf('home', id)
    if (facts === null || facts === undefined) throw new Error(`there is no data about ${id}`)
    return facts
  }

  state(id: string): GuardFacts['state'] {
    return this.facts(id).state
  }

  get restarted(): string[] {
    return this.orders.filter(({ command }) => command === 'restart').map(({ app }) => app)
  }

  get eventTypes(): string[] {
    return this.events.map(({ event_type }) => event_type)
  }
}
