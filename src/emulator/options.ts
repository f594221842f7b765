/** Options of an emulated hub, and their defaults. */
import { type Clock, systemClock } from '../base/clock.ts'
import type { AppsHost, HubApps } from './core/hub-apps.ts'
import { type HubStore, hubStoreInMemory } from './core/hub-store.ts'
import { DEFAULT_APPS, DEFAULT_STORE } from './population.ts'
import type { AppSeed, Flavour } from './records.ts'
import type { Nothing } from './rest.ts'
import type { Prefix } from './routes.ts'
import type { Keys } from './scopes.ts'

export interface EmulatedHubOptions {
  /** Default `127.0.0.1`. */
  host?: string | undefined
  /** Default 0: any free port. */
  port?: number | undefined
  /** Default `newer`. */
  flavour?: Flavour | undefined
  /** API keys and their scopes, `hub.app` or `homey.app`. Default: none, so every call is a 401. */
  keys?: Readonly<Record<string, readonly string[]>> | undefined
  /** More keys, which others may change while the hub runs. */
  storedKeys?: Keys | undefined
  /** Simulated apps. */
  apps?: readonly AppSeed[] | undefined
  /** Creates other apps instead, such as processes. The methods that change simulated apps then throw. */
  backend?: ((host: AppsHost) => HubApps) | undefined
  /** Storage for the hub's own data. Default: in memory. */
  kept?: HubStore | undefined
  store?: readonly AppSeed[] | undefined
  /** Called with each text that the hub speaks. */
  onSpeak?: ((text: string) => void) | undefined
  id?: string | undefined
  version?: string | undefined
  /** The spelling of the base path that is served. Default `both`, or `managers` for the reference. */
  prefix?: Prefix | undefined
  /** Whether more than four requests in 400 ms are refused with 429. Default: no. */
  rateLimit?: boolean | undefined
  /** The answer of an operation that returns nothing. Default `null`. */
  nothing?: Nothing | undefined
  /** How long an app stays in each intermediate state; 0 makes all the steps at once. Default 200. */
  settleMs?: number | undefined
  /** How often the usage of running apps changes; 0, the default, means never. */
  usageMs?: number | undefined
  /** How often an app crashes; it starts again after half that time. 0, the default, means never. */
  crashMs?: number | undefined
  /** How long an idle connection is kept. Default 5000. */
  keepAliveMs?: number | undefined
  /** Default 25000. */
  pingIntervalMs?: number | undefined
  /** Default 20000. */
  pingTimeoutMs?: number | undefined
  /** How many requests are remembered. Default 10000. */
  memory?: number | undefined
  clock?: Clock | undefined
  /** Returns numbers from 0 to under 1. */
  random?: (() => number) | undefined
}

/** Defaults of each flavour. */
const USUAL: Readonly<Record<Flavour, { version: string; prefix: Prefix }>> = {
  older: { version: '8.1.6', prefix: 'both' },
  newer: { version: '12.4.0', prefix: 'both' },
  'self-hosted': { version: '12.4.0', prefix: 'both' },
  reference: { version: '8.1.6', prefix: 'managers' },
}

/** The options with all defaults filled in. */
export type Settled = ReturnType<typeof settle>

export function settle({
  host = '127.0.0.1',
  port = 0,
  flavour = 'newer',
  keys = {},
  apps = DEFAULT_APPS,
  store = DEFAULT_STORE,
  clock = systemClock,
  kept = hubStoreInMemory(() => clock.now()),
  id = '5f0c8a1b2d3e4f5061728394',
  version = USUAL[flavour].version,
  prefix = USUAL[flavour].prefix,
  rateLimit = false,
  nothing = 'null',
  settleMs = 200,
  usageMs = 0,
  crashMs = 0,
  keepAliveMs = 5000,
  pingIntervalMs = 25_000,
  pingTimeoutMs = 20_000,
  memory = 10_000,
  random = Math.random,
  ...optional
}: EmulatedHubOptions) {
  const who = { host, port, flavour, keys, id, version }
  const what = { apps, store, kept, prefix, rateLimit, nothing, memory }
  const times = { clock, random, settleMs, usageMs, crashMs, keepAliveMs, pingIntervalMs, pingTimeoutMs }
  return { ...optional, ...who, ...what, ...times }
}

/** The address for a client on this machine. */
export function urlOf(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}
