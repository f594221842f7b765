/** `npm run chaos` exits with 1 if a checker has found a violation. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { exitOnSignals } from '../support/process.ts'
import { type ComposedJob, composedJobs, everyFault, runAlone, runJobs, until } from './campaign.ts'
import { nameOf, parseScript, shrink } from './compose.ts'
import type { EpisodeResult, Job } from './episode.ts'
import { FAULTS, faultNamed } from './faults/all.ts'
import { ResultFile } from './kept.ts'
import { PLANTS } from './plants/all.ts'
import { type PlantResult, provePlants } from './prove.ts'
import { renderScorecard } from './scorecard.ts'

const HELP = `npm run chaos -- [options]

  --seed N        first seed (default 1); the same seed gives the same schedule
  --minutes M     all quick kinds of fault in turn, and some combinations, for M minutes (default 1); then, unless
                  --fault is given, a planted bug for each checker
  --fault NAME    only this kind; can be repeated
  --campaign      every kind, including the slow ones, with each of --seeds seeds, and the planted bugs
                  (--minutes limits the combinations)
  --plants        only the planted bugs, all of them, each with --seeds seeds (default 1)
  --seeds N       number of seeds in a campaign (default 25)
  --composed N    combinations of two or three faults (default: 2000 in a campaign, otherwise 50, or 0 with --fault)
  --composed-only only the combinations, all of them
  --script JSON   only this script, a list of {at, fault, seed}; --seed is the seed of the load
  --workers N     worlds in parallel (default 2)
  --kept FILE     writes the results of a campaign to FILE, and skips those that FILE contains
  --dump FOLDER   writes the history of each failed episode to FOLDER
  --write         writes docs/internals/reliability.md
  --list          lists the kinds of fault`

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string' },
    fault: { type: 'string', multiple: true },
    campaign: { type: 'boolean', default: false },
    composed: { type: 'string' },
    'composed-only': { type: 'boolean', default: false },
    plants: { type: 'boolean', default: false },
    script: { type: 'string' },
    seeds: { type: 'string' },
    workers: { type: 'string', default: '2' },
    kept: { type: 'string' },
    dump: { type: 'string' },
    write: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

/** @param number the number of the episode; missing if it repeats an earlier one */
function report(result: EpisodeResult, number = ''): void {
  const { fault, seed, commands, agreeMs, violations } = result
  const verdict = violations.length === 0 ? 'ok  ' : 'FAIL'
  const agreed = agreeMs === undefined ? 'never agreed' : `agreed after ${(agreeMs / 1000).toFixed(2)} s`
  console.log(`${verdict} ${number}${fault}, seed ${seed}: ${commands} commands, ${agreed}`)
  for (const { checker, what } of violations.slice(0, 12)) console.log(`       ${checker}: ${what.slice(0, 400)}`)
  if (violations.length > 0)
    console.log(`       again: npm run chaos -- ${howAgain(result)} --seed ${seed} --minutes 0`)
  if (values.dump !== undefined && violations.length > 0) dump(values.dump, result)
}

function reportPlant({ name, seed, caught, by, violations, ms }: PlantResult): void {
  const others = new Set(violations.map(({ checker }) => checker).filter((checker) => !by.includes(checker)))
  const beside = others.size === 0 ? '' : `; also found: ${[...others].join(', ')}`
  const what = caught ? `caught by ${by.join(', ')}` : 'not caught'
  console.log(`${caught ? 'ok  ' : 'FAIL'} ${name}, seed ${seed}, ${(ms / 1000).toFixed(1)} s: ${what}${beside}`)
  if (!caught) for (const one of violations) console.log(`       ${one.checker}: ${one.what.slice(0, 400)}`)
}

const howAgain = ({ fault, script }: Job) =>
  script === undefined ? `--fault '${fault}'` : `--script '${JSON.stringify(script)}'`

function dump(folder: string, { fault, seed, violations, history }: EpisodeResult): void {
  if (history === undefined) return
  const { sent, seen, hubRequests, lives, links, onlineAt } = history
  const processes = lives.map(({ startedAt, end, lines, errors }) => ({ startedAt, end, lines, errors }))
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `${fault.replaceAll(/[^\w-]+/g, '-').slice(0, 120)}-${seed}.json`)
  writeFileSync(
    path,
    JSON.stringify({ violations, sent, hubRequests, links, onlineAt, lives: processes, seen }, null, 1),
  )
}

interface Plan {
  readonly seed: number
  readonly minutes: number
  readonly seeds: number
  readonly workers: number
  readonly composed: number
}

/** The maximum number of failed scripts to shrink, and the time limit for each. */
const SHRUNK_SCRIPTS = 3
const SHRINKING_MS = 180_000

/** Shrinks the first few failed scripts, and prints the smallest scripts that still fail. */
async function shrinkFailed(jobs: readonly ComposedJob[], results: readonly EpisodeResult[], { seed }: Plan) {
  const failed = new Set(results.filter(({ violations }) => violations.length > 0).map(({ script }) => script))
  for (const job of jobs.filter(({ script }) => failed.has(script)).slice(0, SHRUNK_SCRIPTS)) {
    let last: EpisodeResult | undefined
    const fails = async (script: Job['script'] & object) => {
      const result = await runAlone({ fault: nameOf(script), script, seed: job.seed })
      if (result.violations.length > 0) last = result
      return result.violations.length > 0
    }
    const smallest = await shrink(seed, job.index, fails, SHRINKING_MS)
    if (smallest === undefined) console.log(`did not fail again: ${howAgain(job)} --seed ${job.seed}`)
    else
      console.log(
        `smallest: npm run chaos -- --script '${JSON.stringify(smallest.script)}' --seed ${job.seed} --minutes 0 (fast-check: seed ${seed}, path ${smallest.path})`,
      )
    if (last !== undefined) report(last)
  }
}

/** The number of seeds that are tried until a planted bug is detected. */
const TRIES = 3
/** The number of planted bugs tested in parallel. With more, the checkers allow for delays that hide some bugs. */
const PLANT_WORKERS = 3

async function runCampaign(
  { seed, seeds, workers, minutes }: Plan,
  scripts: readonly Job[],
  isDone: (job: Job) => boolean,
  onResult: (result: EpisodeResult) => void,
) {
  const pending = function* (jobs: Iterable<Job>) {
    for (const job of jobs) if (!isDone(job)) yield job
  }
  const endsAt = values.minutes === undefined ? Number.POSITIVE_INFINITY : performance.now() + minutes * 60_000
  const kinds = values.fault ?? Object.keys(FAULTS)
  const isSlow = (name: string) => faultNamed(name).slow === true
  // Run slow faults in parallel with the fast ones, because slow faults mostly wait.
  const groups = [kinds.filter((name) => !isSlow(name)), kinds.filter(isSlow)]
  await Promise.all(groups.map((some) => runJobs(pending(everyFault(some, seed, seeds)), { workers, onResult })))
  await runJobs(inTime(pending(scripts), endsAt), { workers, onResult })
  return await provePlants({ seed, tries: TRIES, workers: Math.min(workers, PLANT_WORKERS) })
}

function* inTime(jobs: Iterable<Job>, endsAt: number): Iterable<Job> {
  for (const job of jobs) {
    if (performance.now() > endsAt) return
    yield job
  }
}

async function runForAWhile(
  { seed, minutes, workers }: Plan,
  scripts: readonly Job[],
  onResult: (result: EpisodeResult) => void,
) {
  const faults = values.fault ?? Object.keys(FAULTS).filter((name) => !faultNamed(name).slow)
  const endsAt = performance.now() + minutes * 60_000
  // Run each fault that the user has named at least once.
  const due = values.fault !== undefined ? faults.length : 1
  const isDone = (count: number) => count >= due && performance.now() > endsAt
  await runJobs(until(faults, scripts, seed, isDone), { workers, onResult })
  if (values.fault !== undefined) return []
  const names = Object.keys(PLANTS).filter((name) => PLANTS[name]?.longRuns !== true)
  return await provePlants({ seed, tries: TRIES, workers: PLANT_WORKERS, names, onResult: reportPlant })
}

function planned(): Plan {
  const composed = values.campaign ? '2000' : values.fault === undefined ? '50' : '0'
  return {
    seed: number(values.seed),
    minutes: number(values.minutes ?? '1'),
    seeds: number(values.seeds ?? (values.plants ? '1' : '25')),
    workers: number(values.workers),
    composed: number(values.composed ?? composed),
  }
}

async function main(): Promise<number> {
  if (values.help) return print(HELP)
  if (values.list) return print(Object.keys(FAULTS).join('\n'))
  const plan = planned()
  const startedAt = performance.now()
  const resultFile = values.kept === undefined ? undefined : new ResultFile(values.kept)
  const results: EpisodeResult[] = [...(resultFile?.results ?? [])]
  const onResult = (result: EpisodeResult) => {
    resultFile?.add(result)
    const { history: _, ...passed } = result
    // Keep only the histories of failed episodes, because no other history is needed.
    results.push(result.violations.length > 0 ? result : passed)
    report(result, `${results.length}: `)
  }
  const plants: PlantResult[] = []
  const scripts = composedJobs(plan.seed, plan.composed)
  if (values.script !== undefined) {
    const script = parseScript(values.script)
    onResult(await runAlone({ fault: nameOf(script), script, seed: plan.seed }))
  } else if (values.plants) plants.push(...(await provePlants({ ...plan, onResult: reportPlant })))
  else if (values.campaign)
    plants.push(...(await runCampaign(plan, scripts, (job) => resultFile?.has(job) === true, onResult)))
  else if (values['composed-only']) await runJobs(scripts, { ...plan, onResult })
  else plants.push(...(await runForAWhile(plan, scripts, onResult)))
  await shrinkFailed(scripts, results, plan)
  for (const { name, seed, caught } of plants)
    if (!caught) console.log(`FAIL planted bug ${name}, seed ${seed}, was not caught`)
  const minutes = (resultFile?.minutes ?? 0) + (performance.now() - startedAt) / 60_000
  if (!values.plants) {
    const card = renderScorecard({ results, plants, seed: plan.seed, date: new Date(), minutes })
    if (values.write) writeFileSync('docs/internals/reliability.md', card)
    console.log(`\n${card}`)
  }
  const failed = results.some(({ violations }) => violations.length > 0) || plants.some(({ caught }) => !caught)
  return failed ? 1 : 0
}

function number(text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value) || value < 0) throw new Error(`expected a number, not ${text}`)
  return value
}

function print(text: string): number {
  console.log(text)
  return 0
}

exitOnSignals()
process.exit(await main())
