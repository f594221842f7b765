/** Detects other bridges on the same base topic. The bridge that started first is active; the others are on standby. */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import * as v from 'valibot'
import { Bucket } from '../base/bucket.ts'
import type { Clock } from '../base/clock.ts'
import { readJson } from '../base/read-json.ts'
import { PRESENCE, type Role } from '../contract/schemas.ts'
import type { Message, SendOptions } from '../mqtt/types.ts'
import type { FormerHubs } from './former.ts'

const INTERVAL_MS = 60_000
/** A bridge that is silent for this long is considered stopped. */
const GONE_MS = 3 * INTERVAL_MS
const ANSWER_MS = 1_000
/** How long to wait for a broker that does not acknowledge the question. Commands that wait for longer are refused. */
const QUESTION_MS = 10_000
/** Time to reconnect: more than the pause, the time limit of a connection and an ordinary read-back together. */
const RETURN_MS = 60_000
/** The number of other bridges is limited, because any client can publish presence messages. */
const MAX_OTHERS = 8

/** The schema accepts unknown keys, because later versions may send more keys. */
const HELLO = v.object(PRESENCE.entries)
type Hello = v.InferOutput<typeof HELLO>

interface PresenceOptions {
  readonly topic: string
  readonly startedAt: string
  readonly instance?: string
  readonly link: { send(topic: string, payload: string, options: Pick<SendOptions, 'onAcknowledged'>): void }
  /** Called when the role has changed, or another bridge has started or stopped. */
  readonly onChange: (before: Role) => void
  readonly hubs: ReadonlyMap<string, unknown>
  /** Receives the names of the hubs that another active bridge publishes. */
  readonly upkeep: { readonly former: Pick<FormerHubs, 'add'> }
  /** Called if a bridge that started later was also active, because it had not detected this bridge. */
  readonly onOtherActive: () => void
  readonly clock: Clock
  readonly log: Logger
}

interface Other {
  readonly instance: string
  /** When the bridge started, in epoch milliseconds. */
  readonly startedAt: number
  /** Whether the bridge is active; `true` if its message has no role. */
  active: boolean
  /** When the bridge is considered stopped, in `clock.elapsed()` milliseconds. */
  until: number
}

export class Presence {
  readonly #options: PresenceOptions
  readonly #self: Pick<Other, 'instance' | 'startedAt'>
  readonly #others = new Map<string, Other>()
  /** Limits the log messages about older and younger bridges, because any client can invent bridges. */
  readonly #messages: { readonly older: Bucket; readonly younger: Bucket }
  #role: Role = 'undecided'
  #wasContested = false
  /** When to become active unless an older bridge answers, in `clock.elapsed()` milliseconds. */
  #decideAt = Number.POSITIVE_INFINITY
  /** An older bridge that has not sent a message since the last doubt is expected until then or earlier. */
  #doubtEndsAt = Number.NEGATIVE_INFINITY
  #cancelAnnouncement: () => void = () => {}
  #cancelCheck: () => void = () => {}

  constructor(options: PresenceOptions) {
    this.#options = options
    const { instance = randomUUID(), startedAt, clock } = options
    this.#self = { instance, startedAt: Date.parse(startedAt) }
    const rate = { max: MAX_OTHERS, everyMs: INTERVAL_MS }
    this.#messages = { older: new Bucket(clock, rate), younger: new Bucket(clock, rate) }
  }

  get role(): Role {
    return this.#role
  }

  get contested(): boolean {
    return this.#others.size > 0
  }

  /**
   * @param occupied whether another bridge may be active, because the retained state is `online` or unknown, or because
   * this bridge has detected another bridge before. The other bridges have `ANSWER_MS` to answer the question.
   * @param isOffline whether the retained state is `offline`. An older bridge may be about to connect again.
   */
  connected(occupied: boolean, isOffline = false): void {
    const waits = occupied ? QUESTION_MS : 0
    this.#decideAt = this.#options.clock.elapsed() + waits
    if (occupied && this.#role === 'active') this.#role = 'undecided'
    // Assume that the other bridges are inactive. The active bridges report their role again in their answers.
    if (occupied) for (const other of this.#others.values()) other.active = false
    if (isOffline) this.#expectWithin(RETURN_MS)
    this.#update()
    this.#announce(true)
  }

  /** Asks older bridges whether they are still online, after an `offline` on the state topic. */
  doubt(): void {
    this.#doubtEndsAt = this.#expectWithin(QUESTION_MS)
    this.#update()
    this.#announce(true)
  }

  receive({ payload, retain }: Pick<Message, 'payload' | 'retain'>): void {
    const hello = retain ? undefined : readJson(HELLO, payload.toString('utf8'))
    if (hello === undefined || hello.instance === this.#self.instance) return
    const wasActive = this.#role === 'active'
    if (hello.leaves) this.#others.delete(hello.instance)
    else this.#received(hello)
    this.#update()
    // When this bridge changes to standby, answer even if no answer was requested. The older bridge may have sent the
    // message over its previous connection, and must not execute commands that this bridge has already executed.
    const stepsBack = wasActive && this.#role === 'standby'
    if (hello.asks || stepsBack) this.#send({ role: wasActive ? 'active' : this.#role })
  }

  /** Announces the stop to other bridges. */
  stop(): void {
    this.#cancelAnnouncement()
    this.#cancelCheck()
    if (this.contested) this.#send({ role: this.#role, leaves: true })
  }

  /** Considers older bridges stopped unless they send a message within this time. Returns when it ends. */
  #expectWithin(ms: number): number {
    const latest = this.#options.clock.elapsed() + ms
    for (const other of this.#others.values()) if (this.#isOlder(other)) other.until = Math.min(other.until, latest)
    return latest
  }

  #received({ instance, started_at, role = 'active', hubs }: Hello): void {
    const { clock, log, topic, upkeep, onOtherActive } = this.#options
    const peer = this.#others.get(instance)
    this.#others.delete(instance)
    const active = role === 'active'
    const other = { instance, startedAt: Date.parse(started_at), active, until: clock.elapsed() + GONE_MS }
    this.#others.set(instance, other)
    for (const oldest of this.#others.keys()) if (this.#others.size > MAX_OTHERS) this.#others.delete(oldest)
    for (const name of hubs ?? []) upkeep.former.add(name)
    if (active && !peer?.active && !this.#stepsBack) onOtherActive()
    if (peer !== undefined) return
    const messages = this.#isOlder(other) ? this.#messages.older : this.#messages.younger
    if (messages.wait() > 0) return
    messages.take()
    const roles = this.#isOlder(other) ? 'it started first, this one stands by' : 'this one started first and is active'
    log.error(
      { topic, other_started_at: started_at },
      `another hub2mqtt uses the same base topic: ${roles}; stop one of them, or give each its own mqtt.base_topic`,
    )
  }

  /** Compares only published values, so that all bridges agree even if their clocks differ. */
  #isOlder({ startedAt, instance }: Other): boolean {
    const self = this.#self
    return startedAt < self.startedAt || (startedAt === self.startedAt && instance < self.instance)
  }

  /** Other bridges receive the question now. It may have waited behind many answers, while they executed commands. */
  #asked(): void {
    const now = this.#options.clock.elapsed()
    if (this.#decideAt !== Number.POSITIVE_INFINITY) this.#decideAt = Math.min(this.#decideAt, now + ANSWER_MS)
    for (const other of this.#others.values())
      if (other.until <= this.#doubtEndsAt) other.until = Math.min(other.until, now + ANSWER_MS)
    this.#checkLater(now)
  }

  get #stepsBack(): boolean {
    return this.#others.values().some((other) => this.#isOlder(other))
  }

  #update(): void {
    const { clock, log, onChange } = this.#options
    const now = clock.elapsed()
    for (const [instance, { until }] of this.#others) if (until <= now) this.#others.delete(instance)
    const before = this.#role
    if (this.#stepsBack) this.#role = 'standby'
    else if (before === 'standby') {
      log.warn('the other hub2mqtt is offline: this one takes over')
      this.#role = 'undecided'
      // The other bridge has changed the retained messages, so `onChange` reconnects, and `connected` sets the role.
      this.#decideAt = Number.POSITIVE_INFINITY
    } else if (before === 'undecided' && this.#decideAt <= now) this.#role = 'active'
    this.#checkLater(now)
    if (this.#role === before && this.contested === this.#wasContested) return
    this.#wasContested = this.contested
    onChange(before)
  }

  #checkLater(now: number): void {
    this.#cancelCheck()
    const times = [...this.#others.values()].map(({ until }) => until)
    if (this.#role === 'undecided') times.push(this.#decideAt)
    const next = Math.min(...times)
    if (next === Number.POSITIVE_INFINITY) this.#cancelCheck = () => {}
    else this.#cancelCheck = this.#options.clock.after(Math.max(1, next - now), () => this.#update())
  }

  #announce(requestsAnswer: boolean): void {
    this.#cancelAnnouncement()
    this.#send({ role: this.#role, ...(requestsAnswer && { asks: requestsAnswer }) })
    this.#cancelAnnouncement = this.#options.clock.after(INTERVAL_MS, () => this.#announce(false))
  }

  #send(rest: Pick<Hello, 'role' | 'asks' | 'leaves'>): void {
    const { topic, startedAt, hubs, link } = this.#options
    const own = rest.role === 'active' && { hubs: [...hubs.keys()] }
    const hello: Hello = { instance: this.#self.instance, started_at: startedAt, ...rest, ...own }
    link.send(topic, JSON.stringify(hello), { onAcknowledged: hello.asks ? () => this.#asked() : undefined })
  }
}
