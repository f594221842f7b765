/** The findings of an examination, one per line. */

export type Outcome = 'ok' | 'note' | 'problem'

export interface Finding {
  /** What was examined: `configuration`, `broker`, `hub home`. */
  readonly subject: string
  /** `note`: worth knowing, but nothing is wrong. */
  readonly outcome: Outcome
  /** One sentence without a full stop. */
  readonly text: string
  /** What the user can do about it; empty if nothing. */
  readonly remedy: string
  /** Names and addresses in the text that are not from the configuration; a bug report omits these as well. */
  readonly names: readonly string[]
}

/** Creates the findings on one subject. */
export function about(subject: string) {
  const say =
    (outcome: Outcome) =>
    (text: string, remedy = '', names: readonly string[] = []): Finding => ({ subject, outcome, text, remedy, names })
  return { ok: say('ok'), note: say('note'), problem: say('problem') }
}

/** Returns a number of things: `one hub`, `2 hubs`. */
export const counted = (count: number, what: string) => (count === 1 ? `one ${what}` : `${count} ${what}s`)
