/** One fault, once: load before, during and after it, and then the questions. */

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
/** So long it has to stay right to count as right. */
const STEADY_MS = 150
const LEAD_MS = 250
/** What may still come when the broker is right already. */
const PATIENT = ['not answered', 'event lost'] as const

export interface Job {
  /** Name of a kind, or of what a script is made of. */
  readonly fault: string
  readonly seed: number
  /** Several faults at a time instead. */
  readonly script?: Script
}

export interface EpisodeOptions extends Job {
  /** Between two things that happen, on average. */
  readonly paceMs: number
  /** How long to wait for the right state; default: what the fault allows. */
  readonly patienceMs?: number
}

export interface EpisodeResult extends Job {
  readonly commands: number
  readonly answers: number
  readonly unknown: number
  readonly badInputs: number
  /** From the mending of the fault to a broker that holds what it has to; undefined: never. */
  readonly agreeMs: number | undefined
  readonly ghosts: number
  readonly missing: number
  readonly wrong: number
  readonly violations: readonly Violation[]
  /** What the verdict rests on. */
  readonly history: History
}

/** The bridge of `world` has to be started; it may have been through other episodes. */
export async function runEpisode(
  world: World,
  { fault: name, seed, script, paceMs, patienceMs }: EpisodeOptions,
): Promise<EpisodeResult> {
  const fault = script === undefined ? faultNamed(name) : composed(script)
  const random = new Random(seed).fork(name)
  await world.calm(CALM_MS)
  world.forget()
  const load = new Load(world, random.fork('load'))
  load.start(paceMs)
  await after(LEAD_MS)
  await fault.run({ world, load, random: random.fork('fault') })
  await world.mend()
  const mendedAt = performance.now()
  let loading = true
  void load.stop().then(() => {
    loading = false
  })
  const history = () => world.history(fault)
  const limit = patienceMs ?? fault.agreeMs ?? AGREE_MS
  let agreedAt: number | undefined
  let last = await world.disagreement()
  while (performance.now() - mendedAt < limit) {
    const now = performance.now()
    agreedAt = agrees(last) ? (agreedAt ?? now) : undefined
    const steady = agreedAt !== undefined && now - agreedAt >= STEADY_MS
    if (steady && !loading && PATIENT.every((checker) => CHECKERS[checker](history()).next().done)) break
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
    agreeMs: agreedAt === undefined ? undefined : agreedAt - mendedAt,
    ghosts: ghosts.length,
    missing: missing.length,
    wrong: wrong.length,
    violations,
    history: history(),
  }
}
