/** What an examination of an installation says, line by line. */

export type Outcome = 'ok' | 'note' | 'problem'

export interface Finding {
  /** What was looked at: `configuration`, `broker`, `hub home`. */
  readonly subject: string
  /** `note`: worth knowing, and nothing is wrong. */
  readonly outcome: Outcome
  /** One sentence without a full stop. */
  readonly text: string
  /** What a person can do about it. */
  readonly remedy?: string
  /** Names and addresses in it that are not of the configuration: a report leaves them out too. */
  readonly names?: readonly string[]
}

/** Makes the findings on one subject. */
export function about(subject: string) {
  const say =
    (outcome: Outcome) =>
    (text: string, remedy = '', names: readonly string[] = []): Finding => ({
      subject,
      outcome,
      text,
      ...(remedy !== '' && { remedy }),
      ...(names.length > 0 && { names }),
    })
  return { ok: say('ok'), note: say('note'), problem: say('problem') }
}

/** `one hub`, `2 hubs` */
export const counted = (count: number, what: string) => (count === 1 ? `one ${what}` : `${count} ${what}s`)
