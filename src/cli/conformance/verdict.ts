/** What an answer or a trial says about an expectation, and the ways in which expectations are judged. */
import { type Evidence, type Kind, kindOfHub } from './evidence.ts'
import { isAway, kindOf, type Observation, type Outcome, outcomeOf, summary } from './observation.ts'
import { type ProbeName, type Question, whyNot } from './probes.ts'
import type { Trial } from './writes.ts'

export interface Verdict {
  readonly result: 'agrees' | 'differs' | 'unknown'
  /** What was found, without names and values. */
  readonly found: string
}

export type Judge = (evidence: Evidence) => Verdict

export const verdict = (agrees: boolean, found: string): Verdict => ({ result: agrees ? 'agrees' : 'differs', found })
export const unknown = (found: string): Verdict => ({ result: 'unknown', found })
export const notTried = (because: string): Verdict => unknown(`not tried: ${because}`)

/** An answer that is not a success. A hub that was away, or that refuses the key, says nothing about the operation. */
export function failed(seen: Observation): Verdict {
  if (isAway(seen)) return unknown(summary(seen))
  return outcomeOf(seen) === 'refused' ? unknown(`the key may not: ${summary(seen)}`) : verdict(false, summary(seen))
}

type Name = ProbeName | Question

/** Looks at a success; what the key may not, and what a hub that was away did not say, is not known. */
export function answer(name: Name, agrees: (value: unknown) => boolean = () => true): Judge {
  return ({ reading }) => {
    const seen = reading.answers.get(name)
    if (seen === undefined) return notTried(whyNot(reading, name))
    if (outcomeOf(seen) !== 'ok') return failed(seen)
    return verdict(agrees(seen.value), `${summary(seen)}, ${kindOf(seen.value)}`)
  }
}

/** Looks at how something is refused. */
export function refusal(name: Name, outcomes: readonly Outcome[], agrees: (seen: Observation) => boolean): Judge {
  return ({ reading }) => {
    const seen = reading.answers.get(name)
    if (seen === undefined) return notTried(whyNot(reading, name))
    return isAway(seen) || !['ok', ...outcomes].includes(outcomeOf(seen))
      ? failed(seen)
      : verdict(agrees(seen), summary(seen))
  }
}

/** Looks at what a trial has shown. */
export const shown =
  (trial: Trial): Judge =>
  ({ writes, reading }) =>
    writes?.trials.get(trial) ?? notTried(whyNot(reading, 'updateApp'))

/** Looks at a field of the records. Any may be missing, which some hubs say by `null`. */
export function field(name: string, agrees: (value: unknown, kind: Kind) => boolean = () => true): Judge {
  return (evidence) => {
    const values = evidence.reading.records.map((record) => record[name]).filter((value) => value !== undefined)
    const { kind } = kindOfHub(evidence)
    if (values.length === 0) return unknown('no record has it')
    if (values.every((value) => value === null) && !agrees(null, kind)) return unknown('null')
    const found = [...new Set(values.map(kindOf))].sort().join(' | ')
    return verdict(
      values.every((value) => value === null || agrees(value, kind)),
      found,
    )
  }
}

export const ANY: readonly Outcome[] = ['absent', 'refused', 'rejected', 'failed']
/** Of a key that the hub knows. */
export const KNOWN: readonly Outcome[] = ['absent', 'rejected', 'failed']
