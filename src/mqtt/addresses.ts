/** Chooses which address of the broker to try next, and when. Each address has its own back-off and login. */
import type { Clock } from '../base/clock.ts'
import type { ConnectionLoopOptions } from './connection-loop.ts'
import type { Failure } from './failure.ts'
import { Login } from './login.ts'
import { type Ended, Pacing } from './pacing.ts'
import type { LinkOptions } from './types.ts'

export interface Address {
  readonly url: string
  readonly login: Login
  readonly pacing: Pacing
  /** When the address may be tried again, in `clock.elapsed()` milliseconds. */
  notBefore: number
}

export class Addresses {
  readonly #clock: Clock
  readonly #all: readonly Address[]
  /** Changed only by `prefer` and `next`. */
  current: Address

  /** @throws TypeError if `link` has no address */
  constructor(link: LinkOptions, { clock, log, random }: Pick<ConnectionLoopOptions, 'clock' | 'log' | 'random'>) {
    this.#clock = clock
    this.#all = link.urls.map((url) => ({
      url,
      login: new Login(url, link, log),
      pacing: new Pacing(random),
      notBefore: Number.NEGATIVE_INFINITY,
    }))
    const [first] = this.#all
    if (first === undefined) throw new TypeError('a link needs the address of a broker')
    this.current = first
  }

  /** The name of the current address in the log; undefined if there is only one. */
  get name(): string | undefined {
    return this.#all.length > 1 ? shownUrl(this.current.url) : undefined
  }

  /** The first address; undefined if it is the current one. */
  get preferred(): Address | undefined {
    const [first] = this.#all
    return first === this.current ? undefined : first
  }

  /** Makes the preferred address the next one, without waiting. */
  prefer(): void {
    const { preferred } = this
    if (preferred === undefined) return
    preferred.login.reset()
    this.current = preferred
  }

  /**
   * Chooses the next address after a failure of the current one: the first that may be tried now, otherwise the one
   * that may be tried soonest. Returns how long to wait, in milliseconds.
   */
  next(failure: Failure, ended: Ended | undefined): number {
    const now = this.#clock.elapsed()
    this.current.notBefore = now + this.current.pacing.after(failure, ended)
    // In a cluster, the other client with this id would also disconnect this one at other nodes.
    const candidates = failure.code === 'taken_over' ? [this.current] : this.#all
    const waitOf = ({ notBefore }: Address) => Math.max(0, notBefore - now)
    const next = candidates.reduce((best, one) => (waitOf(one) < waitOf(best) ? one : best))
    this.current = next
    next.login.reset()
    return waitOf(next)
  }
}

/** The address without a login. */
export function shownUrl(url: string): string {
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`
}
