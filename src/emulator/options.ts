import { type Clock, systemClock } from '../base/clock.ts'
import { inUrl, reachable } from '../base/hosts.ts'
import type { AppsHost, HubApps } from './core/hub-apps.ts'
import { type HubStore, hubStoreInMemory } from './core/hub-store.ts'
import { DEFAULT_APPS, DEFAULT_STORE } from './population.ts'
import { type AppSeed, type Flavour, GENERATIONS } from './records.ts'
import type { Nothing, Prefix } from './rest.ts'
import type { Keys } from './scopes.ts'

export interface EmulatedHubOptions {
  /** The address to listen on. Default: `127.0.0.1`. */
  host?: string | undefined
  /** The port to listen on. Default: 0, which selects any free port. */
  port?: number | undefined
  /** The kind of hub to emulate. Default: `newer`. */
  flavour?: Flavour | undefined
  /** API keys and their scopes, `hub.app` or `homey.app`. Default: none, so every call returns 401. */
  keys?: Readonly<Record<string, readonly string[]>> | undefined
  /** Additional keys, which other processes may change while the hub is running. */
  storedKeys?: Keys | undefined
  apps?: readonly AppSeed[] | undefined
  /** Creates the apps if they are not simulated, but processes. The methods for simulated apps then throw. */
  backend?: ((host: AppsHost) => HubApps) | undefined
  /** Storage for the hub's own data. Default: in memory. */
  hubStore?: HubStore | undefined
  store?: readonly AppSeed[] | undefined
  onSpeak?: ((text: string) => void) | undefined
  id?: string | undefined
  version?: string | undefined
  /** The accepted spelling of the base path. Default: `both`; for the flavour `reference`, `managers`. */
  prefix?: Prefix | undefined
  /** Whether more than four requests in 400 ms are refused with 429. Default: no. */
  rateLimit?: boolean | undefined
  /** The answer to an operation that returns nothing. Default: `null`. */
  nothing?: Nothing | undefined
  /** Milliseconds that a simulated app stays in each intermediate state. Default: 200. */
  settleMs?: number | undefined
  /** Milliseconds between changes of the running apps' usage; 0, the default, means no changes. */
  usageMs?: number | undefined
  /** Milliseconds between crashes of apps; an app restarts after half this time. 0, the default, means no crashes. */
  crashMs?: number | undefined
  /** Milliseconds after which an idle connection is closed. Default: 5000. */
  keepAliveMs?: number | undefined
  /** Milliseconds between pings on the realtime channel. Default: 25000. */
  pingIntervalMs?: number | undefined
  /** Milliseconds to wait for a pong on the realtime channel. Default: 20000. */
  pingTimeoutMs?: number | undefined
  /** Maximum number of recorded requests. Default: 10000. */
  memory?: number | undefined
  clock?: Clock | undefined
  /** Returns numbers from 0 (inclusive) to 1 (exclusive). */
  random?: (() => number) | undefined
}

export type ResolvedOptions = ReturnType<typeof withDefaults>

export function withDefaults(given: EmulatedHubOptions) {
  const { flavour = 'newer', clock = systemClock } = given
  return {
    ...given,
    flavour,
    clock,
    host: given.host ?? '127.0.0.1',
    port: given.port ?? 0,
    keys: given.keys ?? {},
    apps: given.apps ?? DEFAULT_APPS,
    store: given.store ?? DEFAULT_STORE,
    hubStore: given.hubStore ?? hubStoreInMemory(() => clock.now()),
    id: given.id ?? '5f0c8a1b2d3e4f5061728394',
    version: given.version ?? (GENERATIONS[flavour].isNewer ? '12.4.0' : '8.1.6'),
    prefix: given.prefix ?? (flavour === 'reference' ? 'managers' : 'both'),
    nothing: given.nothing ?? 'null',
    settleMs: given.settleMs ?? 200,
    usageMs: given.usageMs ?? 0,
    crashMs: given.crashMs ?? 0,
    keepAliveMs: given.keepAliveMs ?? 5000,
    pingIntervalMs: given.pingIntervalMs ?? 25_000,
    pingTimeoutMs: given.pingTimeoutMs ?? 20_000,
    memory: given.memory ?? 10_000,
    random: given.random ?? Math.random,
  }
}

/** Returns the address for a client on this machine. */
export const urlOf = (host: string, port: number): string => `http://${inUrl(reachable(host))}:${port}`
