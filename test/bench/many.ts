/** What one process needs for many hubs: `npm run bench -- --many`. */

import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import * as v from 'valibot'
import { burst } from './measures.ts'
import { World } from './world.ts'

export const MANY = v.object({
  hubs: v.number(),
  /** Of each hub. */
  apps: v.number(),
  /** One-minute load average of the machine before it began. */
  load: v.number(),
  /** From the start until all states were retained. */
  statesMs: v.number(),
  /** The same until all of discovery was. */
  wholeMs: v.number(),
  startCpuMs: v.number(),
  /** At rest, with everything retained. */
  rss: v.number(),
  peakRss: v.number(),
  /** Shares of a core. */
  idleShare: v.number(),
  busyShare: v.number(),
  restartMs: v.number(),
  restartSent: v.number(),
  /** After a broker came back that had forgotten all, until it held all states, and discovery too. */
  brokerStatesMs: v.number(),
  brokerWholeMs: v.number(),
})
export type Many = v.InferOutput<typeof MANY>

export interface ManyEffort {
  readonly restMs: number
  readonly idleMs: number
  readonly busySeconds: number
}

export const MANY_EFFORT: ManyEffort = { restMs: 15_000, idleMs: 60_000, busySeconds: 30 }
export const QUICK_MANY: ManyEffort = { restMs: 3_000, idleMs: 10_000, busySeconds: 5 }
/** Sizes, as numbers of hubs. */
export const HUBS = [10, 100, 300, 1000]

const APPS = 50
const EVENTS_A_SECOND = 1000
/** Other work on the machine makes it long, too. */
const PATIENCE_MS = 5 * 60_000

/** With discovery as fast as it goes, so that everything there is to hold is held when memory is looked at. */
export async function measureMany(
  hubs: number,
  effort: ManyEffort,
  nodeOptions: readonly string[] = [],
): Promise<Many> {
  const { restMs, idleMs, busySeconds } = effort
  const [load = Number.NaN] = loadavg()
  const options = { subject: 'hub2mqtt', apps: APPS, hubs, discoveryRate: 0, patienceMs: PATIENCE_MS } as const
  await using world = await World.start({ ...options, nodeOptions })
  const startCpuMs = world.bridge.cpuMs
  await sleep(restMs)
  const { rss, peakRss } = world.bridge
  const before = world.bridge.cpuMs
  await sleep(idleMs)
  const idleShare = (world.bridge.cpuMs - before) / idleMs
  const events = busySeconds * EVENTS_A_SECOND
  const { cpuUs } = await burst(world, events, { perSecond: EVENTS_A_SECOND })
  // What is published at intervals only, such as the sums of a hub, is the newest then.
  await sleep(restMs)
  const restarted = await world.restart()
  const again = await world.restartBroker()
  return {
    hubs,
    apps: APPS,
    load,
    statesMs: world.startMs,
    wholeMs: world.wholeStartMs,
    startCpuMs,
    rss,
    peakRss,
    idleShare,
    busyShare: (cpuUs * EVENTS_A_SECOND) / 1_000_000,
    restartMs: restarted.ms,
    restartSent: restarted.state + restarted.discovery,
    brokerStatesMs: again.statesMs,
    brokerWholeMs: again.wholeMs,
  }
}
