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
export function newLease(clock: Clock, leaseMs: number) {
  let from: Instant | undefined
  const now = (): Instant => ({ elapsed: clock.elapsed(), uptime: clock.uptime?.() })
  const lease = {
    now,
    /** Call it after a successful renewal that began at `begun`. */
    renewed(begun: Instant): void {
      from = begun
    },
    /** Call it when the lease no longer belongs to this member. */
    lost(): void {
      from = undefined
    },
    get holds(): boolean {
      return lease.leftMs > 0
    },
    /** How long the member may act; 0 if the lease is over. */
    get leftMs(): number {
      if (from === undefined) return 0
      const { elapsed, uptime } = now()
      const age = elapsed - from.elapsed
      const age2 = uptime === undefined || from.uptime === undefined ? age : uptime - from.uptime
      return Math.max(0, leaseMs * USABLE - Math.max(age, age2))
    },
  }
  return lease
}
export type Lease = ReturnType<typeof newLease>

type Options = Pick<LeasedOptions, 'member' | 'store' | 'log' | 'mark'>

interface Handlers {
  /** Called after a successful renewal that began at `from`. */
  onRenewed(from: Instant): void
  /** Called when another process has overwritten the row. Resolves when this member has stopped everything. */
  onTaken(): Promise<void>
}

/** @param ready nothing is written before it resolves */
export function newOwnRow(options: Options, rows: Rows, lease: Lease, handlers: Handlers, ready: Promise<void>) {
  const { member, store, log, mark = randomUUID } = options
  const key = memberKey(member)
  let nonce = mark()
  /** The revision of the last write; `undefined`: no row is known. */
  let revision: number | undefined
  /** The first revision with the nonce. */
  let begunAt: number | undefined
  let writing: Promise<unknown> = ready
  let ended = false

  const row = {
    /** The epoch that this member confirms. */
    adopted: 0,
    get nonce(): string {
      return nonce
    },
    /** The first revision with the nonce; 0 if unknown. */
    get begunAt(): number {
      return begunAt ?? 0
    },
    /** Whether the row belongs to another process of this name, or did until that one was killed. */
    get isForeign(): boolean {
      return revision === undefined && free() === undefined
    },
    /** Returns whether the write succeeded. */
    write(): Promise<boolean> {
      const written = writing.then(() => writeOnce())
      writing = written
      return written
    },
    /** Writes nothing more except its farewell. */
    end(): void {
      ended = true
    },
    /** Returns whether there was a row to withdraw. */
    async leave(): Promise<boolean> {
      await writing
      if (revision === undefined) return false
      revision = await store.update(key, JSON.stringify({ gone: nonce }), revision)
      return true
    },
  }
  return row

  /** @param found the row that made the first attempt fail */
  async function writeOnce(found?: Row): Promise<boolean> {
    if (ended) return false
    const from = lease.now()
    const before = revision ?? free(found)
    if (before === undefined) return false
    const record: MemberRecord = { nonce, adopted: row.adopted }
    try {
      revision = await rows.write(key, JSON.stringify(record), before)
      begunAt ??= revision
      handlers.onRenewed(from)
      return true
    } catch (error) {
      if (!(error instanceof ConflictError)) {
        rows.unavailable()
        log.debug({ err: error }, 'the lease could not be renewed')
        return false
      }
      const inTheWay = await resolve()
      return inTheWay !== undefined && found === undefined && (await writeOnce(inTheWay))
    }
  }

  /** The revision that a first row replaces. 0: no row exists. `undefined`: another process owns the row. */
  function free(found?: Row): number | undefined {
    const known = rows.member(member)
    const record = found === undefined ? known?.record : readMember(found.value)
    return record === undefined || 'gone' in record ? (found?.revision ?? known?.revision ?? 0) : undefined
  }

  /**
   * The row has another revision: an earlier write succeeded after all, or another process wrote it. Returns the row
   * that exists; compare its revision, because a server may send another one to watchers.
   */
  async function resolve(): Promise<Row | undefined> {
    const found = await rows.look(key).catch(() => null)
    // The row was purged, or the store was replaced; only the store can find out which. Do not rewrite the row here:
    // the write could go to a lost store.
    if (found === undefined && revision !== undefined && !ended) await store.startOver().catch(() => undefined)
    if (found === undefined || found === null) return undefined
    const record = readMember(found.value)
    if (record !== undefined && 'nonce' in record && record.nonce === nonce) {
      revision = found.revision
      begunAt ??= found.revision
      return found
    }
    if (revision === undefined) return found
    log.warn({ member }, 'another process took the lease of this member: it serves nothing until it has a new one')
    nonce = mark()
    revision = undefined
    begunAt = undefined
    row.adopted = 0
    // Only then may it have a lease again: until everything has stopped, a new lease would be mistaken for the former
    // one.
    await handlers.onTaken()
    return found
  }
}
