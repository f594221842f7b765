/** Who has logged in with the password, kept in memory: of each session only a hash, so that a dump opens none. */
import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.ts'

export const SESSION_MS = 7 * 24 * 3_600_000
const MAX_SESSIONS = 100

const digest = (token: string) => createHash('sha256').update(token).digest('base64')

export class Sessions {
  readonly #clock: Clock
  /** Hash → when it was used last, the longest unused first. */
  readonly #used = new Map<string, number>()
  /** The password that they were opened with. */
  #password: string | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Makes a session; returns its secret. */
  open(password: string): string {
    this.#follow(password)
    const token = randomBytes(32).toString('base64url')
    this.#used.set(digest(token), this.#clock.elapsed())
    for (const oldest of this.#used.keys()) if (this.#used.size > MAX_SESSIONS) this.#used.delete(oldest)
    return token
  }

  /** Whether a session is open under the password of now; it counts as used. */
  has(token: string, password: string | null): boolean {
    this.#follow(password)
    const key = digest(token)
    const used = this.#used.get(key)
    this.#used.delete(key)
    if (used === undefined || this.#clock.elapsed() - used > SESSION_MS) return false
    this.#used.set(key, this.#clock.elapsed())
    return true
  }

  close(token: string): void {
    this.#used.delete(digest(token))
  }

  /** With another password all of them end. */
  #follow(password: string | null): void {
    if (password === this.#password) return
    this.#password = password
    this.#used.clear()
  }
}
