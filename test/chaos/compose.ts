/** Several faults at a time, as chance has it: scripts, made and made smaller by fast-check. */
import { setTimeout as after } from 'node:timers/promises'
import * as fc from 'fast-check'
import { Random } from '../support/random.ts'
import { FAULTS, faultNamed } from './faults/all.ts'
import type { Fault, Hold, Scene } from './faults/fault.ts'

/** One fault of a script. */
export interface Step {
  /** Milliseconds after the beginning. */
  readonly at: number
  readonly fault: string
  /** Seed of what the fault leaves to chance. */
  readonly seed: number
}

export type Script = readonly Step[]

const SPREAD_MS = 3000

/** Kinds that come together with others. */
export const COMPOSED: readonly string[] = Object.keys(FAULTS).filter((name) => {
  const { slow, alone } = faultNamed(name)
  return slow !== true && alone !== true
})

/** Made smaller by leaving steps out and by letting them begin earlier; which faults they are does not change. */
const scripts: fc.Arbitrary<Script> = fc.array(
  fc.record({
    at: fc.integer({ min: 0, max: SPREAD_MS }),
    fault: fc.noShrink(fc.constantFrom(...COMPOSED)),
    seed: fc.noShrink(fc.integer({ min: 1, max: 99_999 })),
  }),
  { minLength: 1, maxLength: 3 },
)

export interface Numbered {
  readonly script: Script
  /** Among all that fast-check makes of the seed. */
  readonly index: number
}

/** The same seed gives the same scripts. One of a single fault is what a script may become, not what it begins as. */
export function scriptsOf(seed: number, count: number): Numbered[] {
  return fc
    .sample(scripts, { seed, numRuns: 2 * count + 20, unbiased: true })
    .map((script, index) => ({ script, index }))
    .filter(({ script }) => script.length > 1)
    .slice(0, count)
}

export interface Shrunk {
  readonly script: Script
  /** Of fast-check, beside the seed. */
  readonly path: string
}

/** Looks for the smallest script that still fails, for a while; `fails` runs one. */
export async function shrink(
  seed: number,
  index: number,
  fails: (script: Script) => Promise<boolean>,
  limitMs: number,
): Promise<Shrunk | undefined> {
  const property = fc.asyncProperty(scripts, async (script) => !(await fails(script)))
  const run = { seed, path: String(index), unbiased: true, numRuns: 1, interruptAfterTimeLimit: limitMs }
  const { counterexample, counterexamplePath } = await fc.check(property, run)
  return counterexample === null ? undefined : { script: counterexample[0], path: counterexamplePath ?? String(index) }
}

/** @throws Error if it is no script */
export function parseScript(text: string): Script {
  const steps: unknown = JSON.parse(text)
  if (!Array.isArray(steps) || steps.length === 0) throw new Error('a script is a list of {at, fault, seed}')
  return steps.map((step: unknown) => {
    const { at = 0, fault, seed = 1 }: { at?: unknown; fault?: unknown; seed?: unknown } = Object(step)
    if (typeof at !== 'number' || typeof seed !== 'number') throw new Error('at and seed are numbers')
    faultNamed(String(fault))
    return { at, fault: String(fault), seed }
  })
}

/** Short for a script: the faults in it. */
export const nameOf = (script: Script) => script.map(({ fault }) => fault).join(' + ')

/** One fault of the whole script: what each of its steps allows is allowed. */
export function composed(script: Script): Fault {
  const faults = script.map(({ fault }) => faultNamed(fault))
  const tells = faults.flatMap((fault) => fault.tells ?? []).map(({ source }) => source)
  return {
    run: (scene) => play(script, scene),
    hubWell: faults.every(({ hubWell }) => hubWell),
    stallMs: faults.reduce((sum, { stallMs = 0 }) => sum + stallMs, 0),
    agreeMs: Math.max(45_000, ...faults.map(({ agreeMs = 0 }) => agreeMs)),
    ...(tells.length > 0 && { tells: new RegExp(tells.join('|')) }),
    ...(faults.every(({ staysOnline }) => staysOnline) && { staysOnline: true }),
  }
}

/** All steps at their time; who needs what another one holds waits until it is free. */
async function play(script: Script, { world, load }: Scene): Promise<void> {
  const busy = new Map<Hold, Promise<void>>()
  const steps = script.toSorted((one, other) => one.at - other.at)
  const startedAt = performance.now()
  const running: Promise<void>[] = []
  for (const { at, fault: name, seed } of steps) {
    const fault = faultNamed(name)
    await after(Math.max(0, at - (performance.now() - startedAt)))
    const begin = async () => {
      await Promise.all((fault.holds ?? []).map((hold) => busy.get(hold)))
      // A bridge that another one has just started hears no signal yet.
      if (fault.holds?.includes('bridge')) await world.started()
      await fault.run({ world, load, random: new Random(seed).fork(name) })
    }
    const done = begin()
    for (const hold of fault.holds ?? [])
      busy.set(
        hold,
        done.catch(() => undefined),
      )
    running.push(done)
  }
  const ends = await Promise.allSettled(running)
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
