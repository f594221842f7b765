/** `npm run soak` repeatedly cuts both connections, and measures whether the bridge's memory grows. */
import { setTimeout as after } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { exitOnSignals } from '../support/process.ts'
import { Random } from '../support/random.ts'
import { Load } from './load.ts'
import { type Slope, slopeOf } from './slope.ts'
import { World } from './world.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '30' },
    /** The number of times that each of the two connections is cut, spread over the time. */
    cuts: { type: 'string', default: '1000' },
  },
})

interface Sample {
  readonly minute: number
  readonly rss: number
  readonly heapUsed: number
  readonly external: number
  readonly resources: number
}

const SAMPLE_MS = 10_000
/** The first part of the run, as a fraction. It does not count, because caches fill and code is compiled. */
const WARM_UP = 0.2
/** The shortest session, because after a shorter one, the bridge would reconnect more slowly. */
const SETTLE_MS = 700
const MIB = 1024 * 1024

exitOnSignals()

const minutes = Number(values.minutes)
const cuts = Number(values.cuts)
const random = new Random(Number(values.seed))

await using world = await World.prepare({
  seed: Number(values.seed),
  preload: ['./preload/memory.ts', './preload/impatient.ts'],
  nodeOptions: ['--expose-gc'],
  env: { LOG_LEVEL: 'warn' },
})
world.startBridge()
await world.calm(60_000)

const startedAt = performance.now()
const endsAt = startedAt + minutes * 60_000
const samples: Sample[] = []
let load = new Load(world, random.fork('load'))
load.start(60)

async function sample(): Promise<void> {
  while (performance.now() < endsAt && world.bridge.alive) {
    const message = await world.bridge.request({ memory: true })
    const minute = (performance.now() - startedAt) / 60_000
    samples.push({ minute, rss: 0, heapUsed: 0, external: 0, resources: 0, ...Object(message) })
    const last = samples.at(-1)
    if (samples.length % 6 === 1 && last !== undefined) console.log(line(last))
    // Start a new history for each sample, because a long history would slow down the harness.
    await load.stop()
    world.forget()
    load = new Load(world, random.fork(String(samples.length)))
    load.start(60)
    await after(SAMPLE_MS)
  }
}

const cutCount = { broker: 0, hub: 0 }

/** Cuts one of the two connections, but only while it is up, so that each cut causes a reconnect. */
async function cut(side: 'broker' | 'hub', restMs: number, isUp: () => boolean, act: () => void): Promise<void> {
  const everyMs = (minutes * 60_000) / cuts
  for (let next = startedAt; performance.now() < endsAt && world.bridge.alive; next += everyMs) {
    while (!isUp() && performance.now() < endsAt) await after(20)
    await after(restMs)
    if (performance.now() >= endsAt) return
    act()
    cutCount[side] += 1
    await after(Math.max(50, next + everyMs - performance.now()))
  }
}

const line = ({ minute, rss, heapUsed, external, resources }: Sample) =>
  `${minute.toFixed(1)} min: heap ${(heapUsed / MIB).toFixed(2)} MiB, external ${(external / MIB).toFixed(2)}, RSS ${(rss / MIB).toFixed(1)}, ${resources} resources; cuts: broker ${cutCount.broker}, hub ${cutCount.hub}`

const isOnline = () => {
  const link = world.brokerProxy.links.at(-1)
  return link !== undefined && link.closedAt === undefined && (world.watch.onlineAt.at(-1) ?? 0) >= link.openedAt
}

await Promise.all([
  sample(),
  cut('broker', 0, isOnline, () => world.brokerProxy.reset()),
  cut(
    'hub',
    SETTLE_MS,
    () => world.hub.connections.subscribers > 0,
    () => world.hub.dropRealtime(random.pick(['cut', 'goodbye'] as const)),
  ),
])
await load.stop()

const settled = samples.filter(({ minute }) => minute >= minutes * WARM_UP)
const kib = ({ perMinute, plusMinus }: Slope) =>
  `${(perMinute / 1024).toFixed(2)} ± ${(plusMinus / 1024).toFixed(2)} KiB per minute`
const of = (key: 'heapUsed' | 'rss' | 'external') =>
  slopeOf(settled.map((one) => ({ minute: one.minute, value: one[key] })))
console.log(
  `${samples.length} samples in ${minutes} minutes; forced reconnects: broker ${cutCount.broker}, hub ${cutCount.hub}`,
)
console.log(`heap after gc: ${kib(of('heapUsed'))}`)
console.log(`external:      ${kib(of('external'))}`)
console.log(`RSS:           ${kib(of('rss'))}`)
await world.calm(60_000)
console.log(`alive: ${world.bridge.alive}; broker and hub agree at the end`)
const errors = world.bridge.errors.join('\n')
if (errors !== '') console.log(`standard error: ${errors}`)
process.exitCode = world.bridge.alive && errors === '' ? 0 : 1
