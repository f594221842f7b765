/** Chooses which address of the broker to try next, and when. Each address has its own back-off and login. */
import type { Logger } from 'pino'
import { Backoff } from '../base/backoff.ts'
import type { Clock } from '../base/clock.ts'
import type { ConnectionLoopOptions } from './connection-loop.ts'
import type { Failure } from './failure.ts'
import type { Credentials, LinkOptions, Protocol } from './types.ts'

export interface Address {
  readonly url: string
  readonly login: Login
  readonly pacing: Pacing
  /** The earliest time of the next attempt, in `clock.elapsed()` milliseconds. */
  notBefore: number
}

export class Addresses {
  readonly #clock: Clock
  readonly #all: readonly Address[]
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

  /** The name for the log; `undefined` if there is only one address. */
  get name(): string | undefined {
    return this.#all.length > 1 ? shownUrl(this.current.url) : undefined
  }

  /** The first address; `undefined` if it is the current address. */
  get preferred(): Address | undefined {
    const [first] = this.#all
    return first === this.current ? undefined : first
  }

  prefer(): void {
    const { preferred } = this
    if (preferred === undefined) return
    preferred.login.reset()
    this.current = preferred
  }

  /** After a failure, chooses the address that may be tried soonest. Returns how long to wait, in milliseconds. */
  next(failure: Failure, ended: Ended | undefined): number {
    const now = this.#clock.elapsed()
    this.current.notBefore = now + this.current.pacing.after(failure, ended)
    // In a broker cluster, the other client with the same id would disconnect this client at every address.
    const candidates = failure.code === 'taken_over' ? [this.current] : this.#all
    const waitOf = ({ notBefore }: Address) => Math.max(0, notBefore - now)
    const next = candidates.reduce((best, one) => (waitOf(one) < waitOf(best) ? one : best))
    this.current = next
    next.login.reset()
    return waitOf(next)
  }
}

export function shownUrl(url: string): string {
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`
}

/** Chooses credentials and protocol version for the next connection, depending on why the previous one was refused. */
export class Login {
  readonly #given: Pick<LinkOptions, 'protocol' | 'credentials'>
  readonly #log: Logger | undefined
  credentials: Credentials
  protocol: Protocol
  #retried = false

  /** @param address the broker's URL; its user name and password are used if `link` has none */
  constructor(
    address: string,
    link: Pick<LinkOptions, 'username' | 'password' | 'protocol' | 'credentials'>,
    log?: Logger,
  ) {
    this.#given = link
    this.#log = log
    this.protocol = link.protocol === '3.1.1' ? '3.1.1' : '5'
    const url = new URL(address)
    this.credentials = {
      username: link.username ?? (decodeURIComponent(url.username) || undefined),
      password: link.password ?? (decodeURIComponent(url.password) || undefined),
    }
  }

  /** Returns whether to retry immediately with a different login; `true` at most once until `reset`. */
  async retry(failure: Failure): Promise<boolean> {
    if (this.#retried) return false
    if (failure.code === 'protocol') this.#retried = this.#otherProtocol()
    else if (failure.code === 'unauthorized') this.#retried = await this.#otherCredentials()
    return this.#retried
  }

  reset(): void {
    this.#retried = false
  }

  #otherProtocol(): boolean {
    const { protocol = 'auto' } = this.#given
    if (protocol !== 'auto') return false
    const refused = this.protocol
    this.protocol = refused === '5' ? '3.1.1' : '5'
    this.#log?.debug({ refused }, `the broker does not support MQTT ${refused}: trying ${this.protocol}`)
    return true
  }

  async #otherCredentials(): Promise<boolean> {
    const used = this.credentials
    try {
      this.credentials = (await this.#given.credentials?.()) ?? used
    } catch (error) {
      this.#log?.warn({ err: error }, 'the MQTT credentials cannot be read again')
    }
    const { username, password } = this.credentials
    return username !== used.username || password !== used.password
  }
}

/** The wait after a failure that needs manual intervention. Some brokers ban clients that retry often. */
const MANUAL_FIX_WAIT_MS = 60_000
/** The wait while no broker accepts a connection. */
const ABSENT_WAIT_MS = { min: 1_000, max: 30_000 }
/** The wait if the broker ends connections soon after accepting them. It is short, because the broker is running. */
const UNSTABLE_WAIT_MS = { min: 2_000, max: 10_000 }
const TAKEOVER_WAIT_MS = { min: 5_000, max: 60_000 }
/** A shorter connection is unstable. `noReason` applies if an MQTT 3.1.1 broker closes it: it cannot send a reason. */
const STABLE_MS = { noReason: 60_000, otherwise: 5_000 }
/** After this many consecutive unstable connections, `UNSTABLE_WAIT_MS` applies, and a warning is logged. */
const UNSTABLE_LIMIT = 5
/** A connection that lasts this long resets the back-off after takeovers. */
const TAKEOVER_RESET_MS = 5 * 60_000

export interface Ended {
  readonly livedMs: number
  readonly protocol: Protocol
  /** Whether the connection ended for a known reason that will not recur soon. */
  readonly explained: boolean
}

/** Decides how long to wait before the next connection, depending on how the last connection ended. */
export class Pacing {
  readonly #absent: Backoff
  readonly #flapping: Backoff
  readonly #random: () => number
  #unstable = 0
  #takeovers = 0

  constructor(random: () => number) {
    this.#random = random
    this.#absent = new Backoff({ ...ABSENT_WAIT_MS, random })
    this.#flapping = new Backoff({ ...UNSTABLE_WAIT_MS, random })
  }

  get suspicious(): boolean {
    return this.#unstable === UNSTABLE_LIMIT
  }

  /** Returns the time to wait, in milliseconds. `ended` is `undefined` if no connection was accepted. */
  after(failure: Failure, ended: Ended | undefined): number {
    if (ended !== undefined) {
      const { livedMs, protocol, explained } = ended
      const hasNoReason = failure.code === 'closed' && protocol !== '5'
      const isStable = explained || livedMs >= (hasNoReason ? STABLE_MS.noReason : STABLE_MS.otherwise)
      this.#unstable = isStable ? 0 : this.#unstable + 1
      this.#absent.reset()
      if (this.#unstable < UNSTABLE_LIMIT) this.#flapping.reset()
      if (livedMs >= TAKEOVER_RESET_MS) this.#takeovers = 0
    }
    if (failure.code === 'unauthorized' || failure.code === 'unsuitable') return MANUAL_FIX_WAIT_MS
    if (failure.code === 'taken_over') {
      // Two clients use the same id. If both reconnect immediately, they keep disconnecting each other.
      const ceiling = Math.min(TAKEOVER_WAIT_MS.max, TAKEOVER_WAIT_MS.min * 2 ** this.#takeovers)
      this.#takeovers += 1
      return Math.round(ceiling * (0.5 + 0.5 * this.#random()))
    }
    return (ended !== undefined && this.#unstable >= UNSTABLE_LIMIT ? this.#flapping : this.#absent).next()
  }
}
