/**
 * `node test/cluster/resources.ts` measures three members and their NATS servers, and one bridge with the same hubs.
 * Each hub is read every second. Linux only, because it reads /proc.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { cpuMs, rss } from '../bench/processes.ts'
import { table } from '../bench/table.ts'
import { type Nats, startNats } from '../support/nats.ts'
import { exitOnSignals } from '../support/process.ts'
import { until } from '../support/until.ts'
import { Members } from './members.ts'

const { values } = parseArgs({
  options: { hubs: { type: 'string', default: '60' }, seconds: { type: 'string', default: '60' } },
})

const NAMES = ['a', 'b', 'c']
const MB = 1024 * 1024
/** The time until all processes are at rest after the start. */
const REST_MS = 10_000

async function main(): Promise<void> {
  const rows = await measure()
  await using nats = await startNats({ nodes: 3 })
  rows.push(...(await measure(nats)))
  console.log(table(['', 'RSS', 'CPU of a core'], rows))
}

async function measure(nats?: Nats): Promise<string[][]> {
  const members = nats === undefined ? [{ fleet: {} }] : NAMES.map((member) => ({ fleet: { member, nats: nats.urls } }))
  await using world = await Members.start({
    hubs: Number(values.hubs),
    members,
    config: { discovery: { format: 'off' }, http: { enabled: false } },
  })
  const areOnline = () =>
    [...world.hubs.keys()].every((hub) => world.observer.last(`hub2mqtt/${hub}/state`) === 'online')
  await until('every hub', areOnline, 120_000)
  if (nats !== undefined) {
    const isWhole = () => world.payload('hub2mqtt/fleet').count === NAMES.length
    await until('every member', isWhole, 60_000)
    await world.served(NAMES)
  }
  const groups = {
    [nats === undefined ? 'one bridge' : 'three members']: members.map((_, i) => world.process(i).pid),
    ...(nats !== undefined && { 'three NATS servers': nats.nodes.map(({ pid }) => pid) }),
  }
  await sleep(REST_MS)
  const before = Object.values(groups).map((pids) => pids.map(cpuMs))
  const ms = Number(values.seconds) * 1000
  await sleep(ms)
  return Object.entries(groups).map(([title, pids], group) => {
    const memory = pids.map((pid) => `${Math.round(rss(pid) / MB)} MB`)
    const shares = pids.map((pid, i) => `${((100 * (cpuMs(pid) - (before[group]?.[i] ?? 0))) / ms).toFixed(1)} %`)
    return [`${title}, ${values.hubs} hubs`, memory.join(' + '), shares.join(' + ')]
  })
}

exitOnSignals()
await main()
