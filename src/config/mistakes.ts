/** Collects what is wrong with a configuration, so that all of it is told at once and none of it tells a secret. */

/** The configuration cannot be used. Ends the process before anything was opened. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  /** One readable line each: the key and where it stands, what was expected, how to mend it. */
  readonly mistakes: readonly string[]

  constructor(mistakes: readonly string[]) {
    super(mistakes.join('\n'))
    this.mistakes = mistakes
  }
}

/** A longer value is not repeated: it may be a key that was put in the wrong place. */
const LONGEST_QUOTE = 20
const PLAIN_NAME = /^[A-Za-z0-9_.-]{1,64}$/

export class Mistakes {
  /** Each once: of what may not be repeated, several lines may say the same. */
  readonly #lines = new Set<string>()
  readonly #failed = new Set<string>()
  readonly #secrets = new Set<string>()

  /** Values that no line may repeat, also where they stand by mistake under another key. */
  protect(secret: string): void {
    if (secret !== '') this.#secrets.add(secret)
  }

  /** `subject` is what the line begins with; `path` the option, if there is one, that has no good value now. */
  add(subject: string, problem: string, path?: string): void {
    this.#lines.add(`${subject}: ${problem}`)
    if (path !== undefined) this.#failed.add(path)
  }

  /** Has this option, or an option of this hub, already been complained about? */
  concerns(path: string): boolean {
    return this.#failed.has(path)
  }

  /** `, but it is "abc"` for a refused value that may be shown, else nothing. */
  quote(value: unknown): string {
    if (value !== null && !['string', 'number', 'boolean'].includes(typeof value)) return ''
    const text = JSON.stringify(value)
    return text.length > LONGEST_QUOTE + 2 || this.#tells(String(value)) ? '' : `, but it is ${text}`
  }

  /** A name that somebody wrote. Other than plain ones are not repeated: `api_key:abc` is one key to YAML. */
  name(written: string): string | undefined {
    return PLAIN_NAME.test(written) && !this.#tells(written) ? written : undefined
  }

  #tells(text: string): boolean {
    // A secret of few letters is part of many words: hiding those would tell more than it hides.
    return [...this.#secrets].some((secret) => (secret.length < 4 ? text === secret : text.includes(secret)))
  }

  /** A line that names its key itself. */
  addLine(line: string): void {
    this.#lines.add(line)
  }

  get lines(): readonly string[] {
    return [...this.#lines]
  }
}
