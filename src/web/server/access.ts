/** Who may do what: logged in by password, with a token, by a proxy that logs in; and what is open on this machine. */
import type { IncomingMessage } from 'node:http'
import type { Clock } from '../../base/clock.ts'
import { isLoopback } from '../../base/hosts.ts'
import { isPassword, sameSecret } from '../../base/secrets.ts'
import type { Config } from '../../config/options.ts'
import type { Access, Session } from './api/protocol.ts'
import type { Caller } from './api/reply.ts'
import { type Sender, senderOf } from './forwarded.ts'
import { LoginLimit } from './login-limit.ts'
import { SESSION_MS, Sessions } from './sessions.ts'

/** What came of a try to log in: the cookie to set, or for how long there is no other try. */
export type Login = { readonly cookie: string } | { readonly waitMs: number } | undefined

/** Passwords that wait to be compared: each takes a while, and one at a time is. */
const MAX_WAITING = 8
const BUSY_MS = 2_000

export class AccessControl {
  readonly #config: () => Config['http']
  readonly #startToken: () => string
  readonly #sessions: Sessions
  readonly #tries: LoginLimit
  /** Counted apart, so that a script with a former token does not use up the password's tries. */
  readonly #tokenTries: LoginLimit
  #comparing: Promise<unknown> = Promise.resolve()
  #waiting = 0
  /** Cookies know no ports: two daemons on one host must not overwrite each other's. */
  readonly #cookie: string

  /**
   * @param config the options that hold now
   * @param startToken what logs in while there is no password; asked only then
   * @param sessions who has logged in already
   */
  constructor(config: () => Config['http'], startToken: () => string, clock: Clock, sessions = new Sessions(clock)) {
    this.#config = config
    this.#startToken = startToken
    this.#sessions = sessions
    this.#tries = new LoginLimit(clock)
    this.#tokenTries = new LoginLimit(clock)
    this.#cookie = `hub2mqtt_${config().port}`
  }

  senderOf(request: IncomingMessage): Sender {
    return senderOf(request, this.#config())
  }

  /** What a login takes. Beyond this machine the start-up token does not count: letting others in takes a password. */
  get loginBy(): Session['login'] {
    const { password, host } = this.#config()
    if (password !== null) return 'password'
    return isLoopback(host) ? 'token' : 'none'
  }

  /** Whether others than programs on this machine are let in: by a login, or with a token. */
  get isOpen(): boolean {
    return this.loginBy === 'password' || this.#config().tokens.size > 0
  }

  /** What sessions are opened with. */
  get #key(): string | null {
    return this.loginBy === 'token' ? this.#startToken() : this.#config().password
  }

  /** Whether a request brings a session, good or not: what a browser sends by itself. */
  hasCookie(request: IncomingMessage): boolean {
    return this.#sessionOf(request) !== undefined
  }

  callerOf(request: IncomingMessage, sender: Sender): Caller {
    const caller = (access: Access | null, by = 'http'): Caller => ({ access, by })
    const given = bearerOf(request)
    if (given !== undefined) {
      // All are compared, so that the time tells nothing.
      const found = [...this.#config().tokens].filter(([, { token }]) => sameSecret(given, token))
      const [name, token] = found[0] ?? []
      if (token !== undefined) return caller(token.access, name)
      return caller(this.#isStartToken(given) ? 'full' : null)
    }
    if (sender.ingress) return caller('full')
    const [session, key] = [this.#sessionOf(request), this.#key]
    if (session !== undefined && this.#sessions.has(session, key)) return caller('full')
    return caller(this.loginBy === 'token' && sender.local ? 'local' : null)
  }

  #isStartToken(given: string): boolean {
    return this.loginBy === 'token' && sameSecret(given, this.#startToken())
  }

  /** Counts a wrong token. Returns 0, or for how many milliseconds others get no answer but this. */
  wrongToken(sender: Sender): number {
    return this.#tokenTries.take(sender.address)
  }

  /** A login with the start-up token, which is good whatever was tried before. `undefined`: it is another one. */
  enter(token: string, sender: Sender): Login {
    if (this.#isStartToken(token)) return this.#open(sender)
    const waitMs = this.wrongToken(sender)
    return waitMs > 0 ? { waitMs } : undefined
  }

  /** `undefined`: the password is wrong, or there is none. */
  async login(password: string, sender: Sender): Promise<Login> {
    const waitMs = this.#waiting >= MAX_WAITING ? BUSY_MS : this.#tries.take(sender.address)
    if (waitMs > 0) return { waitMs }
    const { password: expected } = this.#config()
    if (expected === null || !(await this.#compare(password, expected))) return undefined
    this.#tries.forgive(sender.address)
    return this.#open(sender)
  }

  #open(sender: Sender): Login {
    const key = this.#key
    return key === null ? undefined : { cookie: this.#setCookie(this.#sessions.open(key), SESSION_MS / 1000, sender) }
  }

  /** Ends the request's session; returns the cookie that makes the browser forget it. */
  logout(request: IncomingMessage, sender: Sender): string {
    const session = this.#sessionOf(request)
    if (session !== undefined) this.#sessions.close(session)
    return this.#setCookie('', 0, sender)
  }

  /** What keeps the request's session in the browser for as long as it is kept here. */
  renew(request: IncomingMessage, sender: Sender): Readonly<Record<string, string>> {
    const session = this.#sessionOf(request)
    if (session === undefined || !this.#sessions.has(session, this.#key)) return {}
    return { 'set-cookie': this.#setCookie(session, SESSION_MS / 1000, sender) }
  }

  #setCookie(value: string, seconds: number, { scheme }: Sender): string {
    return `${this.#cookie}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${scheme === 'https' ? '; Secure' : ''}`
  }

  #sessionOf({ headers }: IncomingMessage): string | undefined {
    const start = `${this.#cookie}=`
    const pair = headers.cookie?.split(/; */).find((one) => one.startsWith(start))
    return pair?.slice(start.length)
  }

  /** One at a time. */
  async #compare(given: string, expected: string): Promise<boolean> {
    this.#waiting += 1
    const comparing = this.#comparing.then(() => isPassword(given, expected))
    this.#comparing = comparing.catch(() => undefined)
    try {
      return await comparing
    } finally {
      this.#waiting -= 1
    }
  }
}

/** What a request brings as a token; other kinds of `Authorization` are for proxies before us. */
export function bearerOf({ headers: { authorization = '' } }: IncomingMessage): string | undefined {
  return /^bearer(?: |$)/i.test(authorization) ? authorization.slice('bearer'.length).trim() : undefined
}
