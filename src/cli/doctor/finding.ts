export type Outcome = 'ok' | 'note' | 'problem'

export interface Finding {
  /** What the finding is about: `configuration`, `broker` or, for example, `hub home`. */
  readonly subject: string
  /** The kind of finding. A `note` is useful to know, but not a problem. */
  readonly outcome: Outcome
  /** The finding as a sentence without a full stop. */
  readonly text: string
  /** What the user can do about it; an empty string if there is nothing to do. */
  readonly remedy: string
  /** Names and addresses in the text that the configuration does not contain. A bug report omits them as well. */
  readonly names: readonly string[]
}

export function about(subject: string) {
  const finding =
    (outcome: Outcome) =>
    (text: string, remedy = '', names: readonly string[] = []): Finding => ({ subject, outcome, text, remedy, names })
  return { ok: finding('ok'), note: finding('note'), problem: finding('problem') }
}

/** Returns a number with its noun, such as `one hub` or `2 hubs`. */
export const counted = (count: number, what: string) => (count === 1 ? `one ${what}` : `${count} ${what}s`)
