import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Bucket } from '../../base/bucket.ts'
import type { Clock } from '../../base/clock.ts'
import { isLoopback } from '../../base/hosts.ts'
import { isPassword, sameSecret } from '../../base/secrets.ts'
import type { Config } from '../../config/options.ts'
import type { Access, Session } from './api/protocol.ts'
import { hasBody, type Reply, refuse, retryAfter } from './reply.ts'
import { networkOf, originOf, type Sender, senderOf } from './sender.ts'

export interface Caller {
  /** `null` if the caller is unknown. */
  readonly access: Access | null
  readonly by: string
}

/** Each level of access includes the levels before it. */
const RANKS = ['open', 'local', 'read', 'full'] as const
export type Needed = (typeof RANKS)[number]

/** A login's result: the cookie to set, or the time to wait; `undefined` if the secret is wrong or not configured. */
export type Login = { readonly cookie: string } | { readonly waitMs: number } | undefined

export const ANOTHER_TOKEN =
  'The token is missing or wrong: open the address that hub2mqtt printed when it started, or that hub2mqtt open prints.'

export const NO_PASSWORD =
  'The page and its API are available only on this machine until the configuration sets http.password or a token in http.tokens.'

const OTHER_ORIGIN =
  'Requests from pages of another origin are refused. Behind a reverse proxy: list it in http.trusted_proxies; its X-Forwarded-Proto must be right.'

/** Maximum number of passwords that wait to be compared. A comparison is slow, and only one runs at a time. */
const MAX_WAITING = 8
const BUSY_MS = 2_000

export class AccessControl {
  readonly #config: () => Config['http']
  readonly #startToken: () => string
  readonly #sessions: Sessions
  readonly #tries: LoginLimit
  /** Counts attempts with tokens separately, so that a script with an outdated token does not block password logins. */
  readonly #tokenTries: LoginLimit
  #comparing: Promise<unknown> = Promise.resolve()
  #waiting = 0

  /** @param startToken returns the login token; called only while no password is set */
  constructor(config: () => Config['http'], startToken: () => string, clock: Clock, sessions = new Sessions(clock)) {
    this.#config = config
    this.#startToken = startToken
    this.#sessions = sessions
    this.#tries = new LoginLimit(clock)
    this.#tokenTries = new LoginLimit(clock)
  }

  readonly senderOf = (request: IncomingMessage): Sender => senderOf(request, this.#config())

  /** How callers can log in. The start-up token is valid only if no other machine can connect to the listener. */
  get loginBy(): Session['login'] {
    const { password, host } = this.#config()
    if (password !== null) return 'password'
    return isLoopback(host) ? 'token' : 'none'
  }

  get #key(): string | null {
    return this.loginBy === 'token' ? this.#startToken() : this.#config().password
  }

  /** @param writes whether the request changes something or opens a WebSocket */
  refusal(request: IncomingMessage, sender: Sender, needed: Needed, writes: boolean): Reply | undefined {
    const origin = originOf(request.headers, sender)
    if (origin === 'other') return refuse(403, 'origin', OTHER_ORIGIN)
    // Refuse a session without an origin: browsers send cookies automatically, so a cookie does not prove the origin.
    if (writes && origin === 'absent' && this.#sessionsOf(request, sender).length > 0)
      return refuse(403, 'origin', 'A browser must send the Origin header.')
    if (writes && !isPlain(request))
      return refuse(403, 'content_type', 'Expected content-type: application/json, or no body.')
    const { access } = this.callerOf(request, sender)
    const isWrong = access === null && bearerOf(request) !== undefined
    const waitMs = isWrong ? this.#tokenTries.take(sender.address) : 0
    if (waitMs > 0) return tooMany(waitMs)
    // With a password or a configured token, programs on other machines can get access.
    const isOpen = this.loginBy === 'password' || this.#config().tokens.size > 0
    const isClosed = access === null && !isOpen
    if (isClosed && !(isWrong && this.loginBy === 'token')) return refuse(403, 'no_password', NO_PASSWORD)
    if (!isClosed && RANKS.indexOf(access ?? 'open') >= RANKS.indexOf(needed)) return undefined
    if (access === 'read') return refuse(403, 'read_only', 'This token has read-only access.')
    const expected = this.loginBy === 'token' ? ANOTHER_TOKEN : 'Expected a login or a token.'
    return refuse(401, 'login', expected, { 'www-authenticate': 'Bearer realm="hub2mqtt"' })
  }

  callerOf(request: IncomingMessage, sender: Sender): Caller {
    const caller = (access: Access | null, by = 'http'): Caller => ({ access, by })
    const given = bearerOf(request)
    if (given !== undefined) {
      // Compare with all tokens, so that the duration reveals nothing.
      const found = [...this.#config().tokens].filter(([, { token }]) => sameSecret(given, token))
      const [name, token] = found[0] ?? []
      if (token !== undefined) return caller(token.access, name)
      return caller(this.#isStartToken(given) ? 'full' : null)
    }
    if (sender.ingress) return caller('full')
    const key = this.#key
    // A browser may also send an older cookie, set under the path of the printed address.
    if (this.#sessionsOf(request, sender).some((session) => this.#sessions.has(session, key))) return caller('full')
    return caller(this.loginBy === 'token' && sender.local ? 'local' : null)
  }

  #isStartToken(given: string): boolean {
    return this.loginBy === 'token' && sameSecret(given, this.#startToken())
  }

  /** Logs in with the start-up token. Failed attempts never block the correct token. */
  enter(token: string, sender: Sender): Login {
    if (this.#isStartToken(token)) return this.#open(sender)
    const waitMs = this.#tokenTries.take(sender.address)
    return waitMs > 0 ? { waitMs } : undefined
  }

  async login(password: string, sender: Sender): Promise<Login> {
    const waitMs = this.#waiting >= MAX_WAITING ? BUSY_MS : this.#tries.take(sender.address)
    if (waitMs > 0) return { waitMs }
    const { password: expected } = this.#config()
    if (expected === null || !(await this.#compare(password, expected))) return undefined
    // A reload may have changed the password in the meantime, and the session must not be valid for the new one.
    if (this.#config().password !== expected) return undefined
    this.#tries.forgive(sender.address)
    return this.#open(sender)
  }

  #open(sender: Sender): Login {
    const key = this.#key
    return key === null ? undefined : { cookie: this.#setCookie(this.#sessions.open(key), COOKIE_SECONDS, sender) }
  }

  /** Ends a session. Returns the cookie that makes the browser forget it. */
  logout(request: IncomingMessage, sender: Sender): string {
    for (const session of this.#sessionsOf(request, sender)) this.#sessions.close(session)
    return this.#setCookie('', 0, sender)
  }

  /** Sets no path, so that the browser limits the cookie to the daemon's path behind a reverse proxy. */
  #setCookie(value: string, seconds: number, sender: Sender): string {
    return `${this.#cookieFor(sender)}=${value}; Max-Age=${seconds}; HttpOnly; SameSite=Strict${sender.scheme === 'https' ? '; Secure' : ''}`
  }

  /** The cookie's name. It contains the port that the browser uses, because browsers send cookies to all ports of a host. */
  #cookieFor({ host }: Sender): string {
    return `hub2mqtt_${URL.parse(`http://${host}`)?.port || this.#config().port}`
  }

  #sessionsOf({ headers }: IncomingMessage, sender: Sender): readonly string[] {
    const start = `${this.#cookieFor(sender)}=`
    const pairs = headers.cookie?.split(/; */).filter((one) => one.startsWith(start)) ?? []
    return pairs.map((pair) => pair.slice(start.length))
  }

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

export const tooMany = (waitMs: number): Reply =>
  refuse(429, 'tries', `Too many attempts; wait ${Math.ceil(waitMs / 1000)} s.`, retryAfter(waitMs))

export const isJson = ({ headers }: IncomingMessage): boolean =>
  /^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')

/** Returns `false` if an HTML form may have sent the request. Browsers send forms to any origin without a preflight. */
const isPlain = (request: IncomingMessage): boolean =>
  request.headers['content-type'] === undefined ? !hasBody(request) : isJson(request)

/** Returns the bearer token. Ignores other `Authorization` schemes, which proxies in front of hub2mqtt may use. */
function bearerOf({ headers: { authorization = '' } }: IncomingMessage): string | undefined {
  return /^bearer(?: |$)/i.test(authorization) ? authorization.slice('bearer'.length).trim() : undefined
}

const PER_NETWORK = { max: 5, everyMs: 30_000 }
const IN_TOTAL = { max: 30, everyMs: 2_000 }
/** Attempts reserved for networks without failed attempts, so that one network cannot lock out all others. */
const FOR_OTHERS = 10
const MAX_ADDRESSES = 1000

export class LoginLimit {
  readonly #clock: Clock
  /** Networks with failed attempts since their last login, least recently used first. */
  readonly #buckets = new Map<string, Bucket>()
  readonly #all: Bucket

  constructor(clock: Clock) {
    this.#clock = clock
    this.#all = new Bucket(clock, IN_TOTAL)
  }

  /** Counts the attempt and returns 0, or returns the milliseconds until the next attempt is allowed. */
  take(address: string): number {
    const key = networkOf(address)
    const existing = this.#buckets.get(key)
    const own = existing ?? new Bucket(this.#clock, PER_NETWORK)
    const wait = Math.max(own.wait(), this.#all.wait(existing && FOR_OTHERS))
    if (wait > 0) return wait
    this.#buckets.delete(key)
    this.#buckets.set(key, own)
    for (const oldest of this.#buckets.keys()) if (this.#buckets.size > MAX_ADDRESSES) this.#buckets.delete(oldest)
    own.take()
    this.#all.take()
    return 0
  }

  /** Resets the count of failed attempts. Must be called after a successful login. */
  forgive(address: string): void {
    this.#buckets.delete(networkOf(address))
    this.#all.putBack()
  }
}

const SESSION_MS = 7 * 24 * 3_600_000
/** As long as browsers allow, because a page that stays open uses the session without receiving the cookie again. */
const COOKIE_SECONDS = 400 * 24 * 3_600
const MAX_SESSIONS = 100

const digest = (token: string) => createHash('sha256').update(token).digest('base64')

/** Stores only hashes of the session secrets, so that a memory dump reveals no session. */
export class Sessions {
  readonly #clock: Clock
  /** Hash of a session's secret → time of the last use. The least recently used session is first. */
  readonly #used = new Map<string, number>()
  /** The password or start-up token that opened the sessions. */
  #key: string | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  open(key: string): string {
    this.#follow(key)
    const token = randomBytes(32).toString('base64url')
    this.#used.set(digest(token), this.#clock.elapsed())
    for (const oldest of this.#used.keys()) if (this.#used.size > MAX_SESSIONS) this.#used.delete(oldest)
    return token
  }

  /** Renews the session. Returns `false` if the session is not open under this key. */
  has(token: string, key: string | null): boolean {
    this.#follow(key)
    const hash = digest(token)
    const used = this.#used.get(hash)
    this.#used.delete(hash)
    if (used === undefined || this.#clock.elapsed() - used > SESSION_MS) return false
    this.#used.set(hash, this.#clock.elapsed())
    return true
  }

  close(token: string): void {
    this.#used.delete(digest(token))
  }

  #follow(key: string | null): void {
    if (key === this.#key) return
    this.#key = key
    this.#used.clear()
  }
}
