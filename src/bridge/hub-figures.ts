/** Reads a hub's health, devices and flows in the background, one request at a time and only while the hub is idle. */
import { isDeepStrictEqual } from 'node:util'
import { readJson } from '../base/read-json.ts'
import { HUB_HEALTH, type HubHealth } from '../contract/crash.ts'
import { countsOf, type PublicationName } from '../contract/publications.ts'
import type { AppLinks } from '../contract/schemas.ts'
import { asHubError } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import type { HubStatus } from '../hub/status.ts'
import { type Boot, bootOf, type Figures, hasMoved, healthOf, isSameBoot } from './hub-health.ts'
import type { HubState, HubStateOptions } from './hub-state.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const HEALTH_EVERY = {
  getInfo: MINUTE_MS,
  getMemoryInfo: MINUTE_MS,
  getStorageInfo: HOUR_MS,
  getLastBackup: HOUR_MS,
  getUpdates: HOUR_MS,
} as const
const LINKS_EVERY = { getDevices: 5 * MINUTE_MS, getFlows: 5 * MINUTE_MS, getAdvancedFlows: 5 * MINUTE_MS } as const
const EVERY = { ...LINKS_EVERY, ...HEALTH_EVERY }
type Name = keyof typeof EVERY

const namesOf = <N extends Name>(table: Readonly<Record<N, number>>) =>
  Object.keys(table).filter((name): name is N => Object.hasOwn(table, name))
const [NAMES, LINKS, HEALTH] = [namesOf(EVERY), namesOf(LINKS_EVERY), namesOf(HEALTH_EVERY)]

/** Pause between requests, and while the hub is not idle. Some hubs refuse four requests in half a second. */
const APART_MS = 1_000
/** Health is published again after this time even without a significant change. */
const REPEAT_MS = 15 * MINUTE_MS
/** A figure becomes unknown after this many consecutive failures, because a single failure may be temporary. */
const MAX_FAILURES = 3

type FigureOptions = Pick<HubStateOptions, 'guardian' | 'upkeep' | 'evidence' | 'largeReads' | 'clock' | 'log'> & {
  readonly state: Pick<HubState, 'changed' | 'appChanged'>
}

export class HubFigures {
  readonly #name: string
  readonly #hub: Hub
  readonly #options: FigureOptions
  #figures: Figures = {}
  /** When to read each figure next, in `clock.elapsed()` milliseconds; without an entry, the figure is due now. */
  readonly #dueAt = new Map<Name, number>()
  readonly #failures = new Map<Name, number>()
  /** Figures that the hub refused although the API key seems to have the scope. */
  readonly #forbidden = new Set<Name>()
  /** Figures that the hub refused, or does not have. */
  readonly #refused = new Set<Name>()
  boot: Boot | undefined
  /** The hub's start time as published by an earlier run. */
  #formerBootAt: number | undefined
  #status: Pick<HubStatus, 'online' | 'id' | 'firmware' | 'scopes'> | undefined
  /** The hub's health; `null` if the API key may not read it, `undefined` until all figures have been read. */
  health: HubHealth | null | undefined
  #publishedAt = Number.NEGATIVE_INFINITY
  /** The links by app; `null` if the API key no longer permits reading them, missing if they have not been read yet. */
  readonly links = new Map<string, AppLinks | null>()
  /** The figures from which the links were computed; `undefined` until all permitted figures have been read. */
  #linksFrom: readonly unknown[] | undefined
  #cancel: (() => void) | undefined
  #stopped = false

  constructor(name: string, hub: Hub, options: FigureOptions) {
    this.#name = name
    this.#hub = hub
    this.#options = options
  }

  /** Returns whether a row's payload is still unknown, so that the broker must keep its message. */
  isPending(row: PublicationName): boolean {
    return (row === 'hubHealth' && this.health === undefined) || (row === 'appLinks' && this.#linksFrom === undefined)
  }

  /** Call this when the hub's status has changed or its list of apps was read. */
  changed(): void {
    const { online, id, firmware, scopes } = this.#hub.status
    const before = this.#status
    const after = { online, id, firmware, scopes }
    this.#status = after
    if (before !== undefined && before.id !== null && id !== before.id) this.#forget()
    // Read the uptime now, because the hub may have restarted.
    if (online && before?.online === false) this.#dueAt.delete('getInfo')
    if (!isDeepStrictEqual({ ...before, online }, after)) this.#permissionsChanged()
    if (online && this.#hub.apps.complete) {
      this.#settleHealth()
      this.#settleLinks()
      this.#schedule(APART_MS)
    }
  }

  #permissionsChanged(): void {
    this.#dueAt.clear()
    this.#forbidden.clear()
    this.#refused.clear()
    for (const name of NAMES) if (!this.#permits(name)) this.#figures = { ...this.#figures, [name]: undefined }
  }

  /** Adopts the hub's start time that an earlier run published, because a newly computed time would differ slightly. */
  learn(payload: string): void {
    const booted_at = readJson(HUB_HEALTH, payload)?.booted_at ?? null
    if (booted_at === null) return
    const at = Date.parse(booted_at)
    this.#formerBootAt = at
    if (this.boot === undefined || !isSameBoot(this.boot.at, at)) return
    this.boot = { ...this.boot, at }
    if (this.health) this.health = { ...this.health, booted_at }
  }

  stop(): void {
    this.#stopped = true
    this.#cancel?.()
  }

  /** Called when a different hub responds at this address. */
  #forget(): void {
    this.#figures = {}
    this.boot = undefined
    this.#formerBootAt = undefined
    this.links.clear()
    this.#failures.clear()
    this.#linksFrom = undefined
    this.health = undefined
  }

  #permits(name: Name): boolean {
    if (this.#hub.permits(name) !== 'yes') return false
    if (!Object.hasOwn(HEALTH_EVERY, name)) return true
    return this.#hub.permits('getInfo') === 'yes' && !this.#forbidden.has('getInfo')
  }

  #areRead(names: readonly Name[]): boolean {
    return names.every((name) => this.#figures[name] !== undefined || !this.#permits(name))
  }

  #schedule(ms: number): void {
    if (this.#stopped || this.#cancel !== undefined) return
    this.#cancel = this.#options.clock.after(ms, () => void this.#readNext())
  }

  async #readNext(): Promise<void> {
    const hub = this.#hub
    const { clock } = this.#options
    const now = clock.elapsed()
    const wanted = NAMES.filter((name) => this.#permits(name) || this.#forbidden.has(name))
    const dueAt = (name: Name) => this.#dueAt.get(name) ?? 0
    const due = wanted.find((name) => dueAt(name) <= now)
    if (due !== undefined && hub.isIdle) {
      this.#dueAt.set(due, now + EVERY[due])
      await this.#read(due)
      if (this.#stopped) return
      this.#settleLinks()
      if (wanted.every((name) => dueAt(name) > clock.elapsed())) this.#settleHealth()
    }
    this.#cancel = undefined
    // `changed` schedules the next read when the hub is online again or the API key has changed.
    if (!hub.status.online || wanted.length === 0) return
    const next = Math.min(...wanted.map(dueAt)) - clock.elapsed()
    this.#schedule(Math.max(APART_MS, next))
  }

  async #read(name: Name): Promise<void> {
    const { generation } = this.#hub.apps
    const read = () => this.#hub.client.call(name, {})
    try {
      const found = await (Object.hasOwn(LINKS_EVERY, name) ? this.#options.largeReads.run({}, read) : read())
      if (generation !== this.#hub.apps.generation) return
      this.#figures = { ...this.#figures, [name]: found }
      this.#failures.delete(name)
      this.#forbidden.delete(name)
      this.#refused.delete(name)
    } catch (error) {
      this.#failed(name, asHubError(error).code)
    }
    const uptimeSeconds = name === 'getInfo' ? this.#figures.getInfo?.uptimeSeconds : undefined
    if (typeof uptimeSeconds !== 'number') return
    const { guardian, evidence, clock, log } = this.#options
    const before = this.boot
    this.boot = bootOf(before, uptimeSeconds, clock, this.#formerBootAt)
    const { at } = this.boot
    if (at === before?.at) return
    guardian.take(this.#name, { kind: 'booted', at })
    if (before === undefined) return
    evidence.of(this.#name).restarted()
    log.info({ hub: this.#name, booted_at: new Date(at).toISOString() }, 'the hub has restarted')
  }

  #failed(name: Name, code: string): void {
    const { clock } = this.#options
    // The hub did not execute the request, so try again after the usual pause.
    if (code === 'rate_limited') return void this.#dueAt.delete(name)
    const isRefused = code === 'forbidden' || code === 'unsupported'
    if (code === 'forbidden') this.#forbidden.add(name)
    if (isRefused) {
      this.#refused.add(name)
      this.#dueAt.set(name, clock.elapsed() + HOUR_MS)
    }
    const failures = isRefused ? MAX_FAILURES : (this.#failures.get(name) ?? 0) + 1
    this.#failures.set(name, failures)
    if (failures >= MAX_FAILURES || this.#figures[name] === undefined)
      this.#figures = { ...this.#figures, [name]: null }
  }

  #settleHealth(): void {
    const before = this.health
    const health = this.#permits('getInfo') ? this.#newHealth(before) : null
    if (health === undefined || health === before) return
    this.health = health
    this.#options.state.changed()
    // Obsolete messages can be recognised from now on.
    if (before === undefined) this.#options.upkeep.request()
  }

  #newHealth(before: HubHealth | null | undefined): HubHealth | undefined {
    const now = this.#options.clock.elapsed()
    const age = now - this.#publishedAt
    if (!this.#areRead(HEALTH) || (before && age < MINUTE_MS)) return undefined
    const health = healthOf(this.#figures, countsOf(this.#hub.apps.all).memory_bytes, this.boot)
    if (before && age < REPEAT_MS && !hasMoved(before, health)) return undefined
    this.#publishedAt = now
    return health
  }

  #settleLinks(): void {
    if (!this.#areRead(LINKS)) return
    const from = LINKS.map((name) => this.#figures[name])
    if (this.#linksFrom !== undefined && from.every((one, at) => one === this.#linksFrom?.[at])) return
    const areDevicesNew = this.#figures.getDevices !== this.#linksFrom?.[LINKS.indexOf('getDevices')]
    const isFirst = this.#linksFrom === undefined
    this.#linksFrom = from
    // Figures that could not be read are unknown; only those that the hub refuses are cleared.
    const isPermitted = LINKS.some((name) => this.#permits(name) && !this.#refused.has(name))
    const apps = [...(isPermitted ? this.#hub.apps.all.keys() : this.links.keys())]
    const changed = new Set<string>()
    for (const app of apps) {
      const links = isPermitted ? linksIn(this.#figures, app) : null
      if (isDeepStrictEqual(this.links.get(app), links)) continue
      this.links.set(app, links)
      changed.add(app)
    }
    const { guardian, state, upkeep } = this.#options
    const read = areDevicesNew ? apps : [...changed]
    const links = new Map(read.map((app) => [app, this.links.get(app) ?? null]))
    guardian.take(this.#name, { kind: 'links', links })
    for (const app of changed) state.appChanged(app)
    if (isFirst) upkeep.request()
  }
}

function linksIn({ getDevices, getFlows, getAdvancedFlows }: Figures, app: string): AppLinks {
  const flows = [getFlows, getAdvancedFlows].filter((one) => !!one).map((one) => one.get(app) ?? NONE)
  const devices = getDevices ? (getDevices.get(app) ?? NONE) : UNKNOWN
  return {
    devices: devices.count,
    devices_unavailable: devices.bad,
    flows: flows.length === 0 ? null : flows.reduce((sum, { count }) => sum + count, 0),
    flows_broken: flows.length === 0 ? null : flows.reduce<number | null>((sum, { bad }) => add(sum, bad), 0),
  }
}

const NONE = { count: 0, bad: 0 }
const UNKNOWN = { count: null, bad: null }
const add = (one: number | null, other: number | null) => (one === null || other === null ? null : one + other)
