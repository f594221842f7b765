/** Notices another bridge on the same base topic: both would answer each command, and take back each other's state. */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import * as v from 'valibot'
import type { Clock } from '../base/clock.ts'
import type { Message } from '../mqtt/types.ts'

/** How often a bridge says that it is there, so that one that came first hears of one that came later, and the reverse. */
const INTERVAL_MS = 60_000
/** A rival not heard of for so long is gone, and is news again when it comes back. */
const GONE_MS = 3 * INTERVAL_MS

const HELLO = v.object({ instance: v.string(), started_at: v.string() })

export interface PresenceOptions {
  readonly topic: string
  /** ISO 8601. */
  readonly startedAt: string
  readonly send: (topic: string, payload: string) => void
  readonly clock: Clock
  readonly log: Logger
}

export class Presence {
  readonly #options: PresenceOptions
  readonly #instance: string = randomUUID()
  /** Rival → when it was last heard of, in `clock.elapsed()` milliseconds. Few are kept: anybody can make them up. */
  readonly #rivals = new Map<string, number>()
  #cancel: () => void = () => {}

  constructor(options: PresenceOptions) {
    this.#options = options
  }

  /** Whether another bridge has been heard of lately. */
  get contested(): boolean {
    const { clock } = this.#options
    return [...this.#rivals.values()].some((at) => clock.elapsed() - at < GONE_MS)
  }

  /** Says that we are here, now and then every minute; call at each connect. */
  announce(): void {
    const { topic, startedAt, send, clock } = this.#options
    this.#cancel()
    send(topic, JSON.stringify({ instance: this.#instance, started_at: startedAt }))
    this.#cancel = clock.after(INTERVAL_MS, () => this.announce())
  }

  stop(): void {
    this.#cancel()
  }

  receive({ payload, retain }: Message): void {
    const hello = retain ? undefined : parse(payload)
    if (hello === undefined || hello.instance === this.#instance) return
    const { clock, log, topic } = this.#options
    const known = this.#rivals.get(hello.instance)
    this.#rivals.delete(hello.instance)
    this.#rivals.set(hello.instance, clock.elapsed())
    for (const oldest of this.#rivals.keys()) if (this.#rivals.size > 8) this.#rivals.delete(oldest)
    if (known !== undefined && clock.elapsed() - known < GONE_MS) return
    log.error(
      { topic, other_started_at: hello.started_at.slice(0, 32) },
      'another hub2mqtt uses the same base topic: stop one of them, or give each its own mqtt.base_topic',
    )
  }
}

function parse(payload: Buffer): v.InferOutput<typeof HELLO> | undefined {
  if (payload.length > 1024) return undefined
  try {
    const result = v.safeParse(HELLO, JSON.parse(payload.toString('utf8')))
    return result.success ? result.output : undefined
  } catch {
    return undefined
  }
}
