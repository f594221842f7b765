/** What an asker gets back. */
import type { CommandError } from './errors.ts'

/** What became of a command. */
export type Outcome =
  | { readonly ok: true; readonly data: unknown }
  | { readonly ok: false; readonly error: CommandError }

export interface AnswerHead {
  readonly command: string
  readonly hub: string | null
  readonly app: string | null
  readonly transaction: string | number | null
  readonly duration_ms: number
  /** Only on an answer from memory. */
  readonly replayed?: true
}

/** The answer's payload; every key is always there. */
export function renderAnswer(
  { command, hub, app, transaction, duration_ms, replayed }: AnswerHead,
  outcome: Outcome,
): string {
  const result = outcome.ok
    ? { data: outcome.data ?? null }
    : { error: { code: outcome.error.code, message: outcome.error.message, status: outcome.error.status } }
  return JSON.stringify({
    ok: outcome.ok,
    command,
    hub,
    app,
    transaction,
    ...result,
    duration_ms,
    ...(replayed && { replayed }),
  })
}
