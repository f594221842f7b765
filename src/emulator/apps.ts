/** Simulated apps: their records, settings and life cycle. Each change to a record sends an event. */

import type { AppsHost, HubApps, InstallRequest } from './core/hub-apps.ts'
import { HubError } from './hub-error.ts'
import type { ResolvedOptions } from './options.ts'
import {
  type AppRecord,
  type AppSeed,
  type AppState,
  crashOf,
  GENERATIONS,
  NO_USAGE,
  type Patch,
  recordOf,
  type Usage,
} from './records.ts'
import type { Timers } from './timers.ts'

/** How to change an app. `silent` suppresses the event. */
export type How = { silent?: boolean }

interface AppsOptions extends Pick<ResolvedOptions, 'flavour' | 'settleMs' | 'store'> {
  timers: Timers
  sendEvent: AppsHost['sendEvent']
}

export class Apps implements HubApps {
  readonly #options: AppsOptions
  readonly records = new Map<string, AppRecord>()
  readonly #settings = new Map<string, Map<string, unknown>>()
  /** App id → newer version in the store. Records of newer hubs show that an update exists, but not its version. */
  readonly #offered = new Map<string, string>()
  readonly #store: ReadonlyMap<string, AppSeed>
  readonly #settling = new Map<string, () => void>()

  constructor(seeds: readonly AppSeed[], options: AppsOptions) {
    this.#options = options
    this.#store = new Map(options.store.map((seed) => [seed.id, seed]))
    for (const seed of seeds) this.add(seed, { silent: true })
  }

  settings(id: string): ReadonlyMap<string, unknown> {
    return new Map(this.records.has(id) ? this.#settings.get(id) : [])
  }

  readonly setSetting = (id: string, name: string, value: unknown): void =>
    void this.#settings.get(id)?.set(name, value)
  readonly unsetSetting = (id: string, name: string): void => void this.#settings.get(id)?.delete(name)

  readonly output = () => undefined
  readonly locales = (id: string) => ({ en: { title: this.#must(id).name } })

  /** Rejects every request to the app's web API, because a simulated app has no process that could answer. */
  readonly request = (): Promise<never> => Promise.reject(new HubError(404, 'not_found', 'Not Found'))

  /** Installs an app as declared. Settings that remain from an earlier installation are kept. */
  add(seed: AppSeed, how: How = {}): void {
    this.#stopSettling(seed.id)
    const record = recordOf(seed, this.#options.flavour)
    const event = this.records.has(seed.id) ? 'app.update' : 'app.create'
    this.records.set(seed.id, record)
    if (!this.#settings.has(seed.id)) this.#settings.set(seed.id, new Map(Object.entries(seed.settings ?? {})))
    if (seed.update !== undefined) this.#offered.set(seed.id, seed.update)
    if (!how.silent) this.#options.sendEvent(event, record)
  }

  /** Installs an app from the store, which has one version of each app. */
  install({ id, channel }: InstallRequest, how: How = {}): void {
    const offer = this.#store.get(id)
    const present = this.records.get(id)
    if (present !== undefined) this.#update(present, offer?.version ?? this.#offered.get(id), channel, how)
    else if (offer !== undefined) {
      const record = { ...GENERATIONS[this.#options.flavour].stateFields('stopped'), usage: NO_USAGE, ...offer.record }
      this.add({ ...offer, channel: channel ?? offer.channel, record }, how)
      this.#walk(id, ['starting', 'running'], {}, how)
    } else throw new HubError(404, 'not_found', `no app "${id}" in the store of this hub`)
  }

  uninstall(id: string, { purgeSettings = true, silent = false }: How & { purgeSettings?: boolean } = {}): void {
    if (!this.records.delete(id)) return
    this.#stopSettling(id)
    this.#offered.delete(id)
    if (purgeSettings) this.#settings.delete(id)
    if (!silent) this.#options.sendEvent('app.delete', { id })
  }

  enable(id: string, how: How = {}): void {
    if (this.#must(id).enabled !== true) this.#walk(id, ['starting', 'running'], { enabled: true }, how)
  }

  disable(id: string, how: How = {}): void {
    const { enabled, state } = this.#must(id)
    if (enabled === true) this.#walk(id, isUp(state) ? ['stopping', 'stopped'] : ['stopped'], { enabled: false }, how)
  }

  restart(id: string, how: How = {}): void {
    const { enabled, state } = this.#must(id)
    if (enabled === true) this.#walk(id, isUp(state) ? RESTART : ['starting', 'running'], {}, how)
  }

  crash(id: string, message = 'Error: it fell over', how: How = {}): void {
    this.#stopSettling(id)
    this.change(id, crashOf(this.#must(id), message, this.#options.flavour), how)
  }

  change(id: string, patch: Patch, how: How = {}): void {
    const record = { ...this.#must(id), ...patch }
    this.records.set(id, record)
    if (!how.silent) this.#options.sendEvent('app.update', record)
  }

  collectGarbage(id: string): void {
    const { usage } = this.#must(id)
    this.change(id, { usage: { ...usage, mem: Math.round(number(usage?.mem) * 0.7) } })
  }

  #must(id: string): AppRecord {
    const record = this.records.get(id)
    if (record === undefined) throw new Error(`no app "${id}" on this hub`)
    return record
  }

  #update(app: AppRecord, version: string | undefined, channel: string | undefined, how: How): void {
    this.#offered.delete(app.id)
    const patch = {
      version: version ?? app.version,
      channel: channel ?? app.channel,
      updateAvailable: GENERATIONS[this.#options.flavour].offer(undefined),
    }
    if (isUp(app.state)) this.#walk(app.id, RESTART, patch, how)
    else this.change(app.id, patch, how)
  }

  /** Puts an app into the given states one after another. Applies `patch` together with the first state. */
  #walk(id: string, [state, ...rest]: readonly AppState[], patch: Patch, how: How): void {
    this.#stopSettling(id)
    if (state === undefined) return
    const { stateFields, recovered } = GENERATIONS[this.#options.flavour]
    const cleared = state === 'starting' ? recovered : {}
    const usage = state === 'stopped' ? { usage: NO_USAGE } : {}
    this.change(id, { ...patch, ...cleared, ...usage, ...stateFields(state) }, how)
    if (rest.length === 0) return
    const { settleMs, timers } = this.#options
    const next = () => this.#walk(id, rest, {}, how)
    if (settleMs <= 0) next()
    else this.#settling.set(id, timers.after(settleMs, next))
  }

  #stopSettling(id: string): void {
    this.#settling.get(id)?.()
    this.#settling.delete(id)
  }
}

const RESTART: readonly AppState[] = ['stopping', 'stopped', 'starting', 'running']
export const isUp = (state: AppState) => state !== 'stopped' && state !== 'crashed'
const number = (value: unknown) => (typeof value === 'number' ? value : 0)

/** Changes the usage of running apps regularly, and makes an app crash and restart from time to time. */
export function simulateActivity(
  apps: Apps,
  timers: Timers,
  { usageMs, crashMs, random }: Pick<ResolvedOptions, 'usageMs' | 'crashMs' | 'random'>,
): void {
  timers.every(usageMs, () => {
    for (const [id, { state, usage }] of apps.records) {
      if (state === 'running') apps.change(id, { usage: wander(usage, random) })
    }
  })
  timers.every(crashMs, () => {
    const running = [...apps.records].filter(([, { state }]) => state === 'running')
    const [victim] = running[Math.floor(random() * running.length)] ?? []
    if (victim === undefined) return
    apps.crash(victim, 'Error: out of luck')
    timers.after(crashMs / 2, () => {
      if (apps.records.get(victim)?.crashed === true) apps.restart(victim)
    })
  })
}

/** Returns the next usage in a random sequence: at most one CPU core, and at least the memory of a small process. */
export function wander(usage: Usage | undefined, random: () => number): Usage {
  const cpu = number(usage?.cpu) + (random() - 0.5) * 0.02
  const mem = number(usage?.mem) + (random() - 0.5) * 2_000_000
  return { cpu: Math.min(1, Math.max(0, Number(cpu.toFixed(4)))), mem: Math.max(10_000_000, Math.round(mem)) }
}
