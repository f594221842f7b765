/** Measures what one process needs for many hubs: `npm run bench -- --many`. */

import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { hubOptions } from '../../src/config/options.ts'
import { durationMs } from '../../src/contract/payload.ts'
import { restart, restartBroker, startBench } from './bench.ts'
import { burst } from './measures.ts'

export type Many = Awaited<ReturnType<typeof measureMany>>

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
export async function measureMany(hubs: number, effort: ManyEffort) {
  const { restMs, idleMs, busySeconds } = effort
  const [load = Number.NaN] = loadavg()
  const options = { subject: 'hub2mqtt', apps: APPS, hubs, discoveryRate: 0, timeoutMs: TIMEOUT_MS } as const
  await using bench = await startBench(options)
  const startCpuMs = bench.bridge.cpuMs
  await sleep(restMs)
  const { rss, peakRss } = bench.bridge
  const before = bench.bridge.cpuMs
  await sleep(idleMs)
  const idleShare = (bench.bridge.cpuMs - before) / idleMs
  const events = busySeconds * EVENTS_A_SECOND
  const { cpuUs } = await burst(bench, events, { perSecond: EVENTS_A_SECOND })
  // Wait until the bridge has read each list again, because these reads change the summaries of the hubs.
  await sleep(POLL_INTERVAL_MS + restMs)
  const restarted = await restart(bench)
  const again = await restartBroker(bench)
  return {
    hubs,
    /** The number of apps on each hub. */
    apps: APPS,
    /** The machine's one-minute load average before the start. */
    load,
    statesMs: bench.startMs,
    wholeMs: bench.wholeStartMs,
    startCpuMs,
    rss,
    peakRss,
    /** The CPU use as a share of one core: `idleShare` at rest, `busyShare` at 1,000 events a second. */
    idleShare,
    busyShare: (cpuUs * EVENTS_A_SECOND) / 1_000_000,
    restartMs: restarted.ms,
    restartSent: restarted.state + restarted.discovery,
    /** Time until a broker restarted without its data retained all states; `brokerWholeMs`: also discovery. */
    brokerStatesMs: again.statesMs,
    brokerWholeMs: again.wholeMs,
  }
}
