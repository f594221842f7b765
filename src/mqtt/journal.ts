/** The link's log lines. Logs a recurring condition only once. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { adviceOn, type Failure } from './failure.ts'
import type { Block } from './retained.ts'
import type { Protocol } from './types.ts'

/** Maximum number of warnings per kind and connection. A broker that denies many topics must not fill the log. */
const NOT_PUBLISHED_LIMIT = 10

export class Journal {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #warned = new Set<string>()
  /** The topics named in warnings so far. Each kind has its own limit, because clients choose the topics of answers. */
  readonly #notPublished = { retained: new Set<string>(), message: new Set<string>() }
  #outage: { readonly since: number; readonly logged: Set<string> } | undefined

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock
    this.#log = log
  }

  /** @param at the address; `undefined` if there is only one address */
  connected(protocol: Protocol, at?: string): void {
    for (const kind of DROPPABLE) this.forget(`dropped ${kind}`)
    for (const named of Object.values(this.#notPublished)) named.clear()
    const outage = this.#outage
    this.#outage = undefined
    const outageSeconds = outage === undefined ? undefined : inSeconds(this.#clock.elapsed() - outage.since)
    const again = outageSeconds === undefined ? '' : ` again after ${outageSeconds} s`
    this.#log.info(
      { protocol, outage_seconds: outageSeconds, ...(at && { address: at }) },
      `connected to the MQTT broker${at ? ` at ${at}` : ''}${again} (MQTT ${protocol})`,
    )
  }

  /**
   * Warns once per outage, address and failure code.
   * @param livedMs `undefined` for a connection that was never accepted
   */
  failed(failure: Failure, livedMs: number | undefined, at?: string): void {
    const { code, detail } = failure
    const key = `${code} ${at ?? ''}`
    const isRepeated = this.#outage?.logged.has(key) ?? false
    this.#outage ??= { since: this.#clock.elapsed(), logged: new Set() }
    this.#outage.logged.add(key)
    const { cause, remedy } = adviceOn(failure)
    const fields = {
      reason: code,
      detail,
      ...(at && { address: at }),
      ...(remedy !== '' && { remedy }),
      ...(livedMs === undefined ? {} : { connected_seconds: inSeconds(livedMs) }),
    }
    const level = code === 'unsuitable' ? 'error' : 'warn'
    const broker = at === undefined ? 'MQTT broker' : `MQTT broker at ${at}`
    if (isRepeated) this.#log.debug(fields, `still no ${broker}: ${detail}`)
    else if (livedMs !== undefined) this.#log[level](fields, `connection to the ${broker} lost: ${detail}`)
    else {
      const next = code === 'unauthorized' ? ', next try in a minute' : ''
      this.#log[level](fields, `no connection to the ${broker}: ${cause}${next}`)
    }
  }

  /** Warns about a topic that cannot be published to, once per connection and reason, up to a limit. */
  notPublished(kind: 'retained' | 'message', topic: string, reason: Block, detail: string): void {
    const named = this.#notPublished[kind]
    const { size } = named
    if (size === NOT_PUBLISHED_LIMIT || named.add(`${reason} ${topic}`).size === size) return
    this.#log.warn({ topic, reason, detail }, `not published to ${JSON.stringify(topic)}: ${detail}`)
    if (named.size === NOT_PUBLISHED_LIMIT) {
      this.#log.warn(`other ${KINDS[kind]} that cannot be published on this connection will not be logged`)
    }
  }

  /** Warns once per connection or outage; metrics and the health report keep counting. */
  dropped(kind: (typeof DROPPABLE)[number]): void {
    this.warnOnce(`dropped ${kind}`, `dropping ${kind}: too many wait for the MQTT broker, or some waited too long`)
  }

  denied(filter: string): void {
    this.warnOnce(`filter ${filter}`, `the MQTT broker denies the subscription to ${filter}: no commands arrive there`)
  }

  granted(filter: string): void {
    if (!this.#warned.delete(`filter ${filter}`)) return
    this.#log.info(`the MQTT broker now grants the subscription to ${filter}`)
  }

  warnOnce(key: string, message: string): void {
    if (this.#warned.has(key)) return
    this.#warned.add(key)
    this.#log.warn(message)
  }

  forget(key: string): void {
    this.#warned.delete(key)
  }
}

const KINDS = { retained: 'retained topics', message: 'events and answers' } as const

const DROPPABLE = ['events', 'answers', 'commands'] as const

const inSeconds = (ms: number) => Math.round(ms / 100) / 10
