/** An episode runs one fault, with load before, during and after it, and then the checkers. */

import { setTimeout as after } from 'node:timers/promises'
import { Random } from '../support/random.ts'
import { answersOf } from './answers.ts'
import { CHECKERS, check } from './check.ts'
import { composed, type Script } from './compose.ts'
import { faultNamed } from './faults/all.ts'
import type { History, Violation } from './history.ts'
import { Load } from './load.ts'
import { agrees } from './model.ts'
import type { World } from './world.ts'

const CALM_MS = 60_000
const AGREE_MS = 30_000
/** The retained messages must match the hub's state for this long. */
const STEADY_MS = 150
const LEAD_MS = 250
/** Checkers whose violations may disappear, because answers and events may still arrive. */
const TEMPORARY = ['not answered', 'event lost'] as const

export interface Job {
  /** The name of a fault or of a script. */
  readonly fault: string
  readonly seed: number
  /** The faults of a script, which are run in place of `fault`. */
  readonly script?: Script
}

interface EpisodeOptions extends Job {
  /** The mean time between two actions. */
  readonly paceMs: number
  /** Time limit until the retained messages match the hub's state; default: the limit of the fault. */
  readonly timeoutMs?: number
}

export interface EpisodeResult extends Job {
  readonly commands: number
  readonly answers: number
  readonly unknown: number
  readonly badInputs: number
  /** The time from the end of the fault until the retained messages match the hub's state; `undefined` if never. */
  readonly agreeMs: number | undefined
  readonly ghosts: number
  readonly missing: number
  readonly wrong: number
  readonly violations: readonly Violation[]
  /** Missing if the episode passed, or if an earlier process ran it. */
  readonly history?: History
}

/** Runs an episode in a world whose bridge has been started. The world may have run other episodes before. */
export async function runEpisode(
  world: World,
  { fault: name, seed, script, paceMs, timeoutMs }: EpisodeOptions,
): Promise<EpisodeResult> {
  const fault = script === undefined ? faultNamed(name) : composed(script)
  const random = new Random(seed).fork(name)
  await world.calm(CALM_MS)
  world.forget()
  const load = new Load(world, random.fork('load'))
  load.start(paceMs)
  await after(LEAD_MS)
  await fault.run({ world, load, random: random.fork('fault') })
  await world.repair()
  const repairedAt = performance.now()
  let loading = true
  void load.stop().then(() => {
    loading = false
  })
  const history = () => world.history(fault)
  const limit = timeoutMs ?? fault.agreeMs ?? AGREE_MS
  let agreedAt: number | undefined
  let last = await world.disagreement()
  while (performance.now() - repairedAt < limit) {
    const now = performance.now()
    agreedAt = agrees(last) ? (agreedAt ?? now) : undefined
    const steady = agreedAt !== undefined && now - agreedAt >= STEADY_MS
    if (steady && !loading && TEMPORARY.every((checker) => CHECKERS[checker](history()).next().done)) break
    if (!world.bridge.alive) break
    await after(50)
    last = await world.disagreement()
  }
  const { ghosts, missing, wrong } = last
  const violations = check(history())
  for (const [checker, topics] of Object.entries({ ghosts, missing, wrong })) {
    for (const what of topics) violations.push({ checker, what })
  }
  const answers = [...answersOf(history()).values()].flat()
  return {
    fault: name,
    seed,
    ...(script !== undefined && { script }),
    commands: world.sent.length,
    answers: answers.length,
    unknown: answers.filter(({ code }) => code === 'outcome_unknown').length,
    badInputs: world.sent.filter(({ kind }) => kind !== 'good').length,
    agreeMs: agreedAt === undefined ? undefined : agreedAt - repairedAt,
    ghosts: ghosts.length,
    missing: missing.length,
    wrong: wrong.length,
    violations,
    history: history(),
  }
}
