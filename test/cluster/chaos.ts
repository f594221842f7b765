/**
 * `node test/cluster/chaos.ts --episodes 500` injects one fault after another into a fleet of three members, their hubs
 * and a NATS cluster of three. Exits with 1 after a violation. NATS_SERVER names the NATS program.
 */
import { parseArgs } from 'node:util'
import { Fleet, numbered } from '../support/fleet.ts'
import { startNats } from '../support/nats.ts'
import { exitOnSignals } from '../support/process.ts'
import { Random } from '../support/random.ts'
import { type FleetEpisode, runEpisode } from './episode.ts'
import { FLEET_FAULTS, type Scene } from './faults.ts'
import { forget, startMembers } from './members.ts'
import { RosterLog } from './roster-log.ts'

const { values } = parseArgs({
  options: {
    episodes: { type: 'string', default: '22' },
    seed: { type: 'string', default: '1' },
    hubs: { type: 'string', default: '60' },
    lease: { type: 'string', default: '5s' },
    /** The number of fleets that run in parallel. */
    workers: { type: 'string', default: '1' },
    fault: { type: 'string', multiple: true },
  },
})

const EPISODES_PER_WORLD = 20

async function main(): Promise<number> {
  const faults = values.fault ?? Object.keys(FLEET_FAULTS)
  const total = Number(values.episodes)
  const results: FleetEpisode[] = []
  let next = 0
  const take = () => (next < total ? next++ : undefined)
  const work = async () => {
    for (let episode = take(); episode !== undefined; ) {
      await using nats = await startNats({ nodes: 3 })
      await using fleet = await Fleet.build({ hubs: numbered(Number(values.hubs), {}) })
      const names = ['a', 'b', 'c']
      const members = await startMembers(fleet, {
        members: Object.fromEntries(names.map((member) => [member, { member, lease: values.lease }])),
        natsPorts: nats.nodes.map(({ port }) => port),
        hasClocks: true,
        config: { discovery: { format: 'off' }, http: { enabled: false } },
      })
      await fleet.served(names, 120_000)
      await using roster = await RosterLog.on(nats.urls)
      for (let done = 0; episode !== undefined && done < EPISODES_PER_WORLD; done += 1, episode = take()) {
        const fault = faults[episode % faults.length] ?? ''
        const scene: Scene = { fleet, members, nats, roster, random: new Random(Number(values.seed) + episode) }
        const result = await runEpisode(scene, fault).catch(
          (error: unknown): FleetEpisode => ({
            fault,
            gapMs: Number.NaN,
            commands: 0,
            confirmed: 0,
            violations: [error instanceof Error ? error.message : String(error)],
          }),
        )
        results.push(result)
        printEpisode(result, results.length)
        forget(fleet)
        if (result.violations.length > 0) {
          episode = take()
          break
        }
      }
    }
  }
  await Promise.all(Array.from({ length: Number(values.workers) }, work))
  table(results)
  return results.some(({ violations }) => violations.length > 0) ? 1 : 0
}

function printEpisode({ fault, gapMs, commands, confirmed, violations }: FleetEpisode, count: number): void {
  const how = violations.length === 0 ? 'ok  ' : 'FAIL'
  console.log(
    `${how} ${count} ${fault}: ${commands} commands, ${confirmed} confirmed, gap ${(gapMs / 1000).toFixed(1)} s`,
  )
  for (const one of violations) console.log(`       ${one.slice(0, 10_000)}`)
}

function table(results: readonly FleetEpisode[]): void {
  console.log('| Fault | Episodes | Gap p50 | p95 | max | Commands | Confirmed | Violations |')
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- |')
  for (const [fault, some] of Map.groupBy(results, (one) => one.fault)) {
    const gaps = some.map(({ gapMs }) => gapMs / 1000).sort((one, other) => one - other)
    const at = (part: number) => gaps[Math.min(gaps.length - 1, Math.floor(part * gaps.length))]?.toFixed(1)
    const sum = (of: (one: FleetEpisode) => number) => some.reduce((all, one) => all + of(one), 0)
    const figures = [some.length, at(0.5), at(0.95), at(1), sum((one) => one.commands), sum((one) => one.confirmed)]
    console.log(`| ${[fault, ...figures, sum((one) => one.violations.length)].join(' | ')} |`)
  }
}

exitOnSignals()
// Exit even if a fleet leaves handles open.
process.exit(await main())
