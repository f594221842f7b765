/** What an answer or a trial says about an expectation. */
import { errorOf, type Observation, outcomeOf } from './observation.ts'

export interface Verdict {
  readonly result: 'agrees' | 'differs' | 'unknown'
  /** What was found, without names and values. */
  readonly found: string
}

export const verdict = (agrees: boolean, found: string): Verdict => ({ result: agrees ? 'agrees' : 'differs', found })
export const unknown = (found: string): Verdict => ({ result: 'unknown', found })
export const notTried = (because = 'it was not reached'): Verdict => unknown(`not tried: ${because}`)

/** Of a gateway, or of a hub that starts. */
const AWAY: ReadonlySet<number | null> = new Set([502, 503, 504])

export function told({ status, failure, value }: Observation): string {
  const error = errorOf(value)
  return status === null
    ? `no answer (${failure})`
    : `${status}${error === null || error === 'prose' ? '' : ` ${error}`}`
}

/** The hub did not say anything about the operation: it was away or busy. */
export function isAway(seen: Observation): boolean {
  return AWAY.has(seen.status) || ['no_answer', 'limited'].includes(outcomeOf(seen))
}

/** An answer that is not a success. A hub that was away, or that refuses the key, says nothing about the operation. */
export function failed(seen: Observation): Verdict {
  if (isAway(seen)) return unknown(told(seen))
  return outcomeOf(seen) === 'refused' ? unknown(`the key may not: ${told(seen)}`) : verdict(false, told(seen))
}
