/**
 * Chooses credentials and protocol version for the next connection, depending on why the broker refused the last one.
 */
import type { Logger } from 'pino'
import type { Failure } from './failure.ts'
import type { Credentials, LinkOptions, Protocol } from './types.ts'

export class Login {
  readonly #given: Pick<LinkOptions, 'protocol' | 'credentials'>
  readonly #log: Logger | undefined
  /** Changed only by `retry`. */
  credentials: Credentials
  /** The version that worked last, or 5; changed only by `retry`. */
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

  /** Whether to try again at once, with another version or other credentials. True at most once until `reset`. */
  async retry(failure: Failure): Promise<boolean> {
    if (this.#retried) return false
    if (failure.code === 'protocol') this.#retried = this.#otherProtocol()
    else if (failure.code === 'unauthorized') this.#retried = await this.#otherCredentials()
    return this.#retried
  }

  /** Allows `retry` to return true again. */
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
