/** Collects the mistakes of a configuration, to report all of them at once, without secrets. */
import { UsageError } from '../base/errors.ts'
import type { Keys } from './file.ts'

/** The mistakes of a configuration. At startup, the process exits before it opens any connection or listener. */
export class ConfigError extends UsageError {
  override readonly name = 'ConfigError'
  /** Each line contains the key and its place, what was expected, and how to fix the mistake. */
  readonly mistakes: readonly string[]

  constructor(mistakes: readonly string[]) {
    super(mistakes.join('\n'))
    this.mistakes = mistakes
  }
}

/** A longer value is not repeated, because it may be a secret in the wrong place. */
const LONGEST_QUOTE = 20
const PLAIN_NAME = /^[A-Za-z0-9_.-]{1,64}$/

export class Mistakes {
  /** The lines of the report. This is a set, because two lines may be equal if their values are omitted. */
  readonly #lines = new Set<string>()
  readonly #failed = new Set<string>()
  readonly #secrets = new Set<string>()

  /** Prevents any line from repeating this value, even under a different key. */
  protect(secret: string): void {
    if (secret !== '') this.#secrets.add(secret)
  }

  /**
   * Adds a mistake.
   * @param subject the beginning of the line
   * @param path the option, if any, that has no valid value because of the mistake
   */
  add(subject: string, problem: string, path?: string): void {
    this.#lines.add(`${subject}: ${problem}`)
    if (path !== undefined) this.#failed.add(path)
  }

  /** Returns whether a mistake was added with this `path`. */
  readonly concerns = (path: string): boolean => this.#failed.has(path)

  /** Returns `, but it is "abc"` for a rejected value that may be shown, otherwise an empty string. */
  quote(value: unknown): string {
    if (value !== null && !['string', 'number', 'boolean'].includes(typeof value)) return ''
    const text = JSON.stringify(value)
    return text.length > LONGEST_QUOTE + 2 || this.#hasSecret(String(value)) ? '' : `, but it is ${text}`
  }

  /** Returns a name from the file; `undefined` if it may contain a secret (YAML reads `api_key:abc` as one key). */
  name(written: string): string | undefined {
    return PLAIN_NAME.test(written) && !this.#hasSecret(written) ? written : undefined
  }

  /** Returns keys as `["com.athom.hue"].brightness item 2`; a name that must not be repeated is replaced with `[…]`. */
  describeKeys(keys: Keys): string {
    const described = keys.map((key) => {
      if (typeof key === 'number') return ` item ${key + 1}`
      const name = this.name(key)
      if (name === undefined) return '[…]'
      return /^\w+$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`
    })
    return described.join('')
  }

  #hasSecret(text: string): boolean {
    // Compare a short secret only with the whole text, because masking all words that contain it would reveal it.
    return [...this.#secrets].some((secret) => (secret.length < 4 ? text === secret : text.includes(secret)))
  }

  /** Adds a line that already names its key. */
  readonly addLine = (line: string): void => void this.#lines.add(line)

  get lines(): readonly string[] {
    return [...this.#lines]
  }
}
