/** Measures what one process needs for many hubs: `npm run bench -- --many`. */

import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { hubOptions } from '../../src/config/options.ts'
import { durationMs } from '../../src/contract/payload.ts'
import { burst } from './measures.ts'
import { World } from './world.ts'

export interface Many {
  readonly hubs: number
  /** The number of apps on each hub. */
  readonly apps: number
  /** The machine's one-minute load average before the start. */
  readonly load: number
  /** The time from the start until all states were retained. */
  readonly statesMs: number
  /** The time from the start until the discovery messages were retained as well. */
  readonly wholeMs: number
  readonly startCpuMs: number
  /** The resident memory at rest, when all messages are retained. */
  readonly rss: number
  readonly peakRss: number
  /** The CPU use as a share of one core: `idleShare` at rest, `busyShare` at 1,000 events a second. */
  readonly idleShare: number
  readonly busyShare: number
  readonly restartMs: number
  readonly restartSent: number
  /** Time until a broker restarted without its data retained all states; `brokerWholeMs`: also discovery. */
  readonly brokerStatesMs: number
  readonly brokerWholeMs: number
}

export interface ManyEffort {
  readonly restMs: number
  readonly idleMs: number
  readonly busySeconds: number
}

const POLL_INTERVAL_MS = durationMs('poll_interval', hubOptions.poll_interval.default)

export const MANY_EFFORT: ManyEffort = { restMs: 15_000, idleMs: 60_000, busySeconds: 30 }
export const QUICK_MANY: ManyEffort = { restMs: 3_000, idleMs: 10_000, busySeconds: 5 }
export const HUBS = [10, 100, 300, 1000]

const APPS = 50
const EVENTS_A_SECOND = 1000
/** A long limit, because other work on the machine may slow the bridge down. */
const TIMEOUT_MS = 5 * 60_000

/** Measures many hubs. The discovery rate is unlimited, so that everything is published before memory is measured. */
export async function measureMany(hubs: number, effort: ManyEffort): Promise<Many> {
  const { restMs, idleMs, busySeconds } = effort
  const [load = Number.NaN] = loadavg()
  const options = { subject: 'hub2mqtt', apps: APPS, hubs, discoveryRate: 0, timeoutMs: TIMEOUT_MS } as const
  await using world = await World.start(options)
  const startCpuMs = world.bridge.cpuMs
  await sleep(restMs)
  const { rss, peakRss } = world.bridge
  const before = world.bridge.cpuMs
  await sleep(idleMs)
  const idleShare = (world.bridge.cpuMs - before) / idleMs
  const events = busySeconds * EVENTS_A_SECOND
  const { cpuUs } = await burst(world, events, { perSecond: EVENTS_A_SECOND })
  // Wait until the bridge has read each list again, because these reads change the summaries of the hubs.
  await sleep(POLL_INTERVAL_MS + restMs)
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
