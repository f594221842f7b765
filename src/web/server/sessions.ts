/**
 * Sessions opened with the password or the startup token, in memory. Only hashes are stored, so that a dump reveals
 * none.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'

export const SESSION_MS = 7 * 24 * 3_600_000
const MAX_SESSIONS = 100

const digest = (token: string) => createHash('sha256').update(token).digest('base64')

export class Sessions {
  readonly #clock: Clock
  /** Hash → time of the last use, the longest unused first. */
  readonly #used = new Map<string, number>()
  /** The password or startup token that the sessions were opened with. */
  #key: string | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Opens a session; returns its secret. */
  open(key: string): string {
    this.#follow(key)
    const token = randomBytes(32).toString('base64url')
    this.#used.set(digest(token), this.#clock.elapsed())
    for (const oldest of this.#used.keys()) if (this.#used.size > MAX_SESSIONS) this.#used.delete(oldest)
    return token
  }

  /** Whether a session is open under the current key; renews it. */
  has(token: string, key: string | null): boolean {
    this.#follow(key)
    const mark = digest(token)
    const used = this.#used.get(mark)
    this.#used.delete(mark)
    if (used === undefined || this.#clock.elapsed() - used > SESSION_MS) return false
    this.#used.set(mark, this.#clock.elapsed())
    return true
  }

  close(token: string): void {
    this.#used.delete(digest(token))
  }

  /** A changed key ends all sessions. */
  #follow(key: string | null): void {
    if (key === this.#key) return
    this.#key = key
    this.#used.clear()
  }
}
