/** A campaign runs many episodes in a few parallel worlds. Each world is reused until one of its episodes fails. */
import { nameOf, scriptsOf } from './compose.ts'
import { type EpisodeResult, type Job, runEpisode } from './episode.ts'
import { World } from './world.ts'

interface CampaignOptions {
  readonly workers: number
  readonly onResult: (result: EpisodeResult) => void
}

/** The mean time between two actions of the load. */
const PACE_MS = 40
/** The number of episodes after which a new world replaces the old one, to limit the age of the processes. */
const EPISODES_PER_WORLD = 25

export async function runJobs(jobs: Iterable<Job>, options: CampaignOptions): Promise<void> {
  const iterator = jobs[Symbol.iterator]()
  const take = (): Job | undefined => {
    const { done, value } = iterator.next()
    return done ? undefined : value
  }
  await Promise.all(Array.from({ length: options.workers }, () => work(take, options)))
}

async function work(take: () => Job | undefined, options: CampaignOptions): Promise<void> {
  for (let first = take(); first !== undefined; first = take()) await inOneWorld(first, take, options)
}

async function inOneWorld(first: Job, take: () => Job | undefined, { onResult }: CampaignOptions): Promise<void> {
  await using world = await World.prepare({ seed: first.seed, flavour: flavourOf(first.seed) })
  world.startBridge()
  let job: Job | undefined = first
  for (let count = 0; job !== undefined; count += 1) {
    const result = await attempt(world, job)
    onResult(result)
    if (result.violations.length > 0 || count >= EPISODES_PER_WORLD) return
    job = take()
  }
}

/** Returns `older` for even seeds and `newer` for odd seeds, so that a campaign tests both kinds of hubs. */
const flavourOf = (seed: number) => (seed % 2 === 0 ? 'older' : 'newer')

export async function runAlone(job: Job): Promise<EpisodeResult> {
  await using world = await World.prepare({ seed: job.seed, flavour: flavourOf(job.seed) })
  world.startBridge()
  return await attempt(world, job)
}

/** Runs an episode. If the episode throws an error, reports the error as a violation. */
async function attempt(world: World, job: Job): Promise<EpisodeResult> {
  try {
    return await runEpisode(world, { ...job, paceMs: PACE_MS })
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error)
    return {
      ...NOTHING,
      ...job,
      violations: [{ checker: 'calm', what }],
      history: world.history({ stallMs: 0, hubWell: false }),
    }
  }
}

const NOTHING = {
  commands: 0,
  answers: 0,
  unknown: 0,
  badInputs: 0,
  agreeMs: undefined,
  ghosts: 0,
  missing: 0,
  wrong: 0,
}

/** Yields all faults with the first seed, then all faults with the next seed, and so on. */
export function* everyFault(faults: readonly string[], seed: number, seeds: number): Iterable<Job> {
  for (let index = 0; index < seeds; index += 1) for (const fault of faults) yield { fault, seed: seed + index }
}

export interface ComposedJob extends Job {
  /** The index of the script among all scripts that fast-check generates from `seed`. */
  readonly index: number
}

/** Returns jobs with several faults each. Every script has its own seed for its commands and hub changes. */
export function composedJobs(seed: number, count: number): ComposedJob[] {
  return scriptsOf(seed, count).map(({ script, index }) => ({
    fault: nameOf(script),
    script,
    index,
    seed: seed + index,
  }))
}

/** The number of single faults between two scripts. */
const KINDS_PER_SCRIPT = 5

/** Yields a job for each fault in turn, with scripts in between, until `isDone` returns `true`. */
export function* until(
  faults: readonly string[],
  scripts: readonly Job[],
  seed: number,
  isDone: (count: number) => boolean,
): Iterable<Job> {
  const remaining = [...scripts]
  for (let count = 0; !isDone(count); count += 1) {
    const fault = faults[count % faults.length]
    if (fault === undefined) return
    yield { fault, seed: seed + Math.floor(count / faults.length) }
    const next = count % KINDS_PER_SCRIPT === 0 ? remaining.shift() : undefined
    if (next !== undefined) yield next
  }
}
