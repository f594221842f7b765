/** Random combinations of faults. fast-check generates and shrinks them. */
import { setTimeout as after } from 'node:timers/promises'
import * as fc from 'fast-check'
import { Random } from '../support/random.ts'
import { FAULTS, faultNamed } from './faults/all.ts'
import type { Fault, Hold, Scene } from './faults/fault.ts'

export interface Step {
  /** The start of the fault, in milliseconds after the start of the script. */
  readonly at: number
  readonly fault: string
  /** The seed for the fault's random choices. */
  readonly seed: number
}

export type Script = readonly Step[]

const SPREAD_MS = 3000

export const COMPOSED: readonly string[] = Object.keys(FAULTS).filter((name) => {
  const { slow, alone } = faultNamed(name)
  return slow !== true && alone !== true
})

/** Shrinking removes steps and starts the remaining steps earlier, but does not replace faults. */
const scripts: fc.Arbitrary<Script> = fc.array(
  fc.record({
    at: fc.integer({ min: 0, max: SPREAD_MS }),
    fault: fc.noShrink(fc.constantFrom(...COMPOSED)),
    seed: fc.noShrink(fc.integer({ min: 1, max: 99_999 })),
  }),
  { minLength: 1, maxLength: 3 },
)

interface Numbered {
  readonly script: Script
  readonly index: number
}

/** Returns random scripts. Omits scripts with a single fault, which are allowed only as results of shrinking. */
export function scriptsOf(seed: number, count: number): Numbered[] {
  return fc
    .sample(scripts, { seed, numRuns: 2 * count + 20, unbiased: true })
    .map((script, index) => ({ script, index }))
    .filter(({ script }) => script.length > 1)
    .slice(0, count)
}

interface Shrunk {
  readonly script: Script
  /** The path from which fast-check reproduces the script, together with the seed. */
  readonly path: string
}

/** Searches for the smallest failing script for at most `limitMs`. @param fails runs a script; `true` if it failed */
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

export const nameOf = (script: Script) => script.map(({ fault }) => fault).join(' + ')

/** Combines the faults of a script into one fault, which permits everything that any of them permits. */
export function composed(script: Script): Fault {
  const faults = script.map(({ fault }) => faultNamed(fault))
  const expectedErrors = faults.flatMap((fault) => fault.expectedErrors ?? []).map(({ source }) => source)
  return {
    run: (scene) => play(script, scene),
    hubWell: faults.every(({ hubWell }) => hubWell),
    stallMs: faults.reduce((sum, { stallMs = 0 }) => sum + stallMs, 0),
    agreeMs: Math.max(45_000, ...faults.map(({ agreeMs = 0 }) => agreeMs)),
    ...(expectedErrors.length > 0 && { expectedErrors: new RegExp(expectedErrors.join('|')) }),
    ...(faults.every(({ staysOnline }) => staysOnline) && { staysOnline: true }),
  }
}

/** Runs the steps. Each step waits until earlier steps have released the resources that it needs. */
async function play(script: Script, { world, load }: Scene): Promise<void> {
  const busy = new Map<Hold, Promise<void>>()
  const steps = script.toSorted((one, other) => one.at - other.at)
  const startedAt = performance.now()
  const running: Promise<void>[] = []
  for (const { at, fault: name, seed } of steps) {
    const fault = faultNamed(name)
    await after(Math.max(0, at - (performance.now() - startedAt)))
    const start = async () => {
      await Promise.all((fault.holds ?? []).map((hold) => busy.get(hold)))
      // Wait, because a bridge that the previous step has just started does not handle signals yet.
      if (fault.holds?.includes('bridge')) await world.started()
      await fault.run({ world, load, random: new Random(seed).fork(name) })
    }
    const done = start()
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
