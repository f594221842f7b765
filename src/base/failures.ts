/** What failed: in words for a person, and in the system's own. */

export interface Advice {
  /** What was found, in one sentence without a full stop. */
  readonly cause: string
  /** What a person can do; empty if only waiting helps. */
  readonly remedy: string
}

export const advice = (cause: string, remedy = ''): Advice => ({ cause, remedy })

/** The system's own code of an error, such as `ECONNREFUSED`; empty if it has none. */
export function systemCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}
