import type * as v from 'valibot'
import type { CommandError } from './errors.ts'
import type { ANSWER_HEAD } from './schemas.ts'

export type Outcome =
  | {
      readonly ok: true
      /** The result as JSON text, serialised only once, because its size must be known. */
      readonly json: string
    }
  | { readonly ok: false; readonly error: CommandError }

export type AnswerHead = Readonly<v.InferOutput<typeof ANSWER_HEAD>>

/** Renders the payload, which has `data`, `error`, or both. Apart from these and `replayed`, it always has all keys. */
export function renderAnswer(
  { command, hub, app, transaction, duration_ms, replayed }: AnswerHead,
  outcome: Outcome,
): string {
  const head = JSON.stringify({ ok: outcome.ok, command, hub, app, transaction }).slice(0, -1)
  const tail = JSON.stringify({ duration_ms, ...(replayed && { replayed }) }).slice(1)
  if (outcome.ok) return `${head},"data":${outcome.json},${tail}`
  const { code, message, status, data } = outcome.error
  const failure = JSON.stringify({ error: { code, message, status }, ...(data !== undefined && { data }) }).slice(1, -1)
  return `${head},${failure},${tail}`
}
