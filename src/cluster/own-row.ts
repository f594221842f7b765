/** A member's lease, and the row by which it is renewed: one write at a time, each over the previous revision. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { LeasedOptions } from './leased.ts'
import { type MemberRecord, memberKey, readMember } from './records.ts'
import { ConflictError, type Row, type Rows } from './rows.ts'

/** The usable part of the lease: the rest allows for clocks that run at different speeds. */
const USABLE = 0.8

export interface Instant {
  readonly elapsed: number
  readonly uptime: number | undefined
}

/**
 * How long this member may act, counted from the beginning of its latest successful renewal. It compares two clocks:
 * one does not count the time for which the machine was suspended.
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

  /** Call it after a successful renewal that began at `from`. */
  renewed(from: Instant): void {
    this.#from = from
  }

  /** Call it when the lease no longer belongs to this member. */
  lost(): void {
    this.#from = undefined
  }

  get holds(): boolean {
    return this.leftMs > 0
  }

  /** How long the member may act; 0 if the lease is over. */
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
  /** Called after a successful renewal that began at `from`. */
  onRenewed(from: Instant): void
  /** Called when another process has overwritten the row. Resolves when this member has stopped everything. */
  onTaken(): Promise<void>
}

export class OwnRow {
  /** The epoch that it confirms. */
  adopted = 0
  readonly #options: Options
  readonly #rows: Rows
  readonly #lease: Lease
  readonly #handlers: Handlers
  readonly #key: string
  #nonce: string
  /** The revision of the last write; `undefined`: no row is known. */
  #revision: number | undefined
  /** The revision with which the nonce began. */
  #begunAt: number | undefined
  #writing: Promise<unknown>
  #ended = false

  /** @param ready nothing is written before it resolves */
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

  /** The revision with which the nonce began; 0 if unknown. */
  get begunAt(): number {
    return this.#begunAt ?? 0
  }

  /** Whether the row belongs to another process of this name, or did until that one was killed. */
  get isForeign(): boolean {
    return this.#revision === undefined && this.#free() === undefined
  }

  /** Returns whether the write succeeded. */
  write(): Promise<boolean> {
    const written = this.#writing.then(() => this.#writeOnce())
    this.#writing = written
    return written
  }

  /** Writes nothing more except its farewell. */
  end(): void {
    this.#ended = true
  }

  /** Returns whether there was a row to withdraw. */
  async leave(): Promise<boolean> {
    await this.#writing
    if (this.#revision === undefined) return false
    const value = JSON.stringify({ gone: this.#nonce })
    this.#revision = await this.#options.store.update(this.#key, value, this.#revision)
    return true
  }

  /** @param found the row that made the first attempt fail */
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
   * The row has another revision: an earlier write succeeded after all, or another process wrote it. Returns the row
   * that exists; compare its revision, because a server may send another one to watchers.
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
    // Only then may it have a lease again: until everything has stopped, a new lease would be mistaken for the former
    // one.
    await this.#handlers.onTaken()
    return found
  }
}
