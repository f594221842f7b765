/** The answers to steps. */
import * as v from 'valibot'
import { readJson } from '../../base/read-json.ts'
import type { RolloutFailure } from '../../contract/rollout.ts'

/** Characters of a message that the record keeps. */
const MAX_MESSAGE = 120

const ANSWER = v.object({
  ok: v.boolean(),
  transaction: v.unknown(),
  error: v.optional(v.object({ code: v.string(), message: v.string() })),
})
export type Answer = v.InferOutput<typeof ANSWER>

export const readAnswer = (text: string): Answer | undefined => readJson(ANSWER, text)

export function failureOf(answer: Answer | undefined): RolloutFailure | undefined {
  if (answer === undefined) return { code: 'outcome_unknown', message: 'No answer came.' }
  if (answer.ok) return undefined
  const { code, message } = answer.error ?? { code: 'hub_failed', message: '' }
  return { code: code.slice(0, 64), message: cut(message) }
}

export function cut(text: string): string {
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE - 1)}…` : text
}
