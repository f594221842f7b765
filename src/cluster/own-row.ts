/** The lease of a member, and the row by which it renews that: one write at a time, each over the revision that it left. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { LeasedOptions } from './leased.ts'
import { type MemberRecord, memberKey, readMember } from './records.ts'
import { ConflictError, type Row, type Rows } from './rows.ts'

/** Of the lease: the rest is for clocks that run at different speeds. */
const USABLE = 0.8

export interface Instant {
  readonly elapsed: number
  readonly uptime: number | undefined
}

/**
 * How long this member may act: from the moment before its latest renewal that succeeded. Two clocks have to agree: one
 * does not count the time for which the machine was suspended.
 */
export class Lease {
  readonly #clock: Clock
  readonly #usableMs: number
  #from: Instant | undefined

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock
    this.#usableMs = leaseMs * USABLE
  }

  now(): Instant {
    return { elapsed: this.#clock.elapsed(), uptime: this.#clock.uptime?.() }
  }

  /** A renewal succeeded that began at `from`. */
  renewed(from: Instant): void {
    this.#from = from
  }

  /** It is not this member's any more. */
  lost(): void {
    this.#from = undefined
  }

  get holds(): boolean {
    return this.leftMs > 0
  }

  /** For how long it can be acted upon; 0 when it is over. */
  get leftMs(): number {
    if (this.#from === undefined) return 0
    const { elapsed, uptime } = this.now()
    const age = elapsed - this.#from.elapsed
    const age2 = uptime === undefined || this.#from.uptime === undefined ? age : uptime - this.#from.uptime
    return Math.max(0, this.#usableMs - Math.max(age, age2))
  }
}

type Options = Pick<LeasedOptions, 'member' | 'store' | 'log' | 'mark'>

interface Handlers {
  /** A renewal succeeded that began at `from`. */
  onRenewed(from: Instant): void
  /** Others wrote over the row. Resolves when this member has stopped whatever it did. */
  onTaken(): Promise<void>
}

export class OwnRow {
  /** The epoch that it declares to keep to. */
  adopted = 0
  readonly #options: Options
  readonly #rows: Rows
  readonly #lease: Lease
  readonly #handlers: Handlers
  readonly #key: string
  #nonce: string
  /** As it was left; `undefined`: none is known to be there. */
  #revision: number | undefined
  /** With which the nonce began. */
  #begunAt: number | undefined
  #writing: Promise<unknown>
  #ended = false

  /** @param ready nothing is written before */
  constructor(options: Options, rows: Rows, lease: Lease, handlers: Handlers, ready: Promise<void>) {
    this.#options = options
    this.#rows = rows
    this.#lease = lease
    this.#handlers = handlers
    this.#key = memberKey(options.member)
    this.#nonce = this.#newNonce()
    this.#writing = ready
  }

  #newNonce(): string {
    return (this.#options.mark ?? randomUUID)()
  }

  get nonce(): string {
    return this.#nonce
  }

  /** The revision with which the nonce began; 0 if that is not known. */
  get begunAt(): number {
    return this.#begunAt ?? 0
  }

  /** Whether the row is that of another process of this name, or was until that one was killed. */
  get isForeign(): boolean {
    return this.#revision === undefined && this.#free() === undefined
  }

  /** Returns whether it is written. */
  write(): Promise<boolean> {
    const written = this.#writing.then(() => this.#writeOnce())
    this.#writing = written
    return written
  }

  /** Writes nothing more but its farewell. */
  end(): void {
    this.#ended = true
  }

  /** Returns whether there was a row to take back. */
  async leave(): Promise<boolean> {
    await this.#writing
    if (this.#revision === undefined) return false
    const value = JSON.stringify({ gone: this.#nonce })
    this.#revision = await this.#options.store.update(this.#key, value, this.#revision)
    return true
  }

  /** @param found what stood in the way of the first attempt */
  async #writeOnce(found?: Row): Promise<boolean> {
    if (this.#ended) return false
    const rows = this.#rows
    const from = this.#lease.now()
    const before = this.#revision ?? this.#free(found)
    if (before === undefined) return false
    const record: MemberRecord = { nonce: this.#nonce, adopted: this.adopted }
    const value = JSON.stringify(record)
    try {
      this.#revision = await rows.write(this.#key, value, before)
      this.#begunAt ??= this.#revision
      this.#handlers.onRenewed(from)
      return true
    } catch (error) {
      if (!(error instanceof ConflictError)) {
        rows.unavailable()
        this.#options.log.debug({ err: error }, 'the lease could not be renewed')
        return false
      }
      const inTheWay = await this.#resolve()
      return inTheWay !== undefined && found === undefined && (await this.#writeOnce(inTheWay))
    }
  }

  /** The revision that a first row replaces. 0: no row exists. `undefined`: another process owns the row. */
  #free(found?: Row): number | undefined {
    const known = this.#rows.member(this.#options.member)
    const record = found === undefined ? known?.record : readMember(found.value)
    const revision = found?.revision ?? known?.revision ?? 0
    return record === undefined || 'gone' in record ? revision : undefined
  }

  /**
   * The row is not as it was left: an earlier write came through after all, or it is another's. Returns what is there;
   * its revision counts, as a server may send another one to watchers.
   */
  async #resolve(): Promise<Row | undefined> {
    const { store, log, member } = this.#options
    const found = await this.#rows.look(this.#key).catch(() => null)
    // The row was purged, or the store was replaced; only the store can find out which. Do not rewrite the row here:
    // the write could go to a lost store.
    if (found === undefined && this.#revision !== undefined && !this.#ended)
      await store.startOver().catch(() => undefined)
    if (found === undefined || found === null) return undefined
    const record = readMember(found.value)
    if (record !== undefined && 'nonce' in record && record.nonce === this.#nonce) {
      this.#revision = found.revision
      this.#begunAt ??= found.revision
      return found
    }
    if (this.#revision === undefined) return found
    log.warn({ member }, 'the lease of this member was taken: it serves nothing until it has another one')
    this.#nonce = this.#newNonce()
    this.#revision = undefined
    this.#begunAt = undefined
    this.adopted = 0
    // Only then it may have a lease again: until everything has stopped, that would be taken for the former one.
    await this.#handlers.onTaken()
    return found
  }
}
