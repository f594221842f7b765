/** A member's lease, and the row whose writes renew the lease. Each write replaces the previous revision of the row. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { LeasedOptions } from './leased.ts'
import { memberKey, readMember } from './records.ts'
import { ConflictError, type Row, type Rows } from './rows.ts'

/** Fraction of the lease for which a member may act. The rest allows for clocks that run at different speeds. */
const USABLE = 0.8

export interface Instant {
  readonly elapsed: number
  readonly uptime: number | undefined
}

/** Creates a lease. Two clocks measure its age, because one of them may not advance while the machine is suspended. */
export function newLease(clock: Clock, leaseMs: number) {
  let from: Instant | undefined
  const now = (): Instant => ({ elapsed: clock.elapsed(), uptime: clock.uptime?.() })
  const lease = {
    now,
    /** @param startedAt the start of the successful renewal */
    renewed(startedAt: Instant): void {
      from = startedAt
    },
    lost(): void {
      from = undefined
    },
    get holds(): boolean {
      return lease.remainingMs > 0
    },
    /** Milliseconds for which the member may act; 0 if the lease is over. */
    get remainingMs(): number {
      if (from === undefined) return 0
      const { elapsed, uptime } = now()
      const age = elapsed - from.elapsed
      const age2 = uptime === undefined || from.uptime === undefined ? age : uptime - from.uptime
      return Math.max(0, leaseMs * USABLE - Math.max(age, age2))
    },
  }
  return lease
}
type Lease = ReturnType<typeof newLease>

type Options = Pick<LeasedOptions, 'member' | 'store' | 'log' | 'mark'>

interface Handlers {
  /** Called after a successful renewal that began at `from`. */
  onRenewed(from: Instant): void
  /** Called when another process has overwritten the row. Resolves when this member serves nothing any longer. */
  onReplaced(): Promise<void>
}

/** @param ready nothing is written before this promise resolves */
export function newOwnRow(options: Options, rows: Rows, lease: Lease, handlers: Handlers, ready: Promise<void>) {
  const { member, store, log, mark = randomUUID } = options
  const key = memberKey(member)
  /** The revision of the last write; `undefined` if no row is known. */
  let revision: number | undefined
  let writing: Promise<unknown> = ready
  let ended = false

  const row = {
    adopted: 0,
    nonce: mark(),
    /** The first revision with the nonce; 0 if unknown. */
    firstRevision: 0,
    /** Whether the row belongs to another process with this member's name, even if that process was killed. */
    get isForeign(): boolean {
      return revision === undefined && free() === undefined
    },
    write(): Promise<boolean> {
      const written = writing.then(() => writeOnce())
      writing = written
      return written
    },
    /** Prevents all later writes except the write of `leave`. */
    end(): void {
      ended = true
    },
    /** Marks the row as ended. Returns whether there was a row. */
    async leave(): Promise<boolean> {
      await writing
      if (revision === undefined) return false
      revision = await store.update(key, JSON.stringify({ gone: row.nonce }), revision)
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
    try {
      revision = await rows.write(key, JSON.stringify({ nonce: row.nonce, adopted: row.adopted }), before)
      row.firstRevision ||= revision
      handlers.onRenewed(from)
      return true
    } catch (error) {
      if (!(error instanceof ConflictError)) {
        rows.unavailable()
        log.debug({ err: error }, 'the lease could not be renewed')
        return false
      }
      const existing = await resolve()
      return existing !== undefined && found === undefined && (await writeOnce(existing))
    }
  }

  /** Returns the revision that the first write replaces; 0 if no row exists, `undefined` if another process owns it. */
  function free(found?: Row): number | undefined {
    const stored = rows.member(member)
    const record = found === undefined ? stored?.record : readMember(found.value)
    return record?.nonce === undefined ? (found?.revision ?? stored?.revision ?? 0) : undefined
  }

  /**
   * Handles an unexpected revision of the row, which an earlier write of this or of another process may have created.
   * Returns the existing row. Use its revision, because a server may send a different revision to watchers.
   */
  async function resolve(): Promise<Row | undefined> {
    const found = await rows.read(key).catch(() => null)
    // The row was purged, or the store was replaced; only the store can tell which. Do not rewrite the row here,
    // because the write could reach a lost store.
    if (found === undefined && revision !== undefined && !ended) await store.startOver().catch(() => undefined)
    if (found === undefined || found === null) return undefined
    if (readMember(found.value)?.nonce === row.nonce) {
      revision = found.revision
      row.firstRevision ||= found.revision
      return found
    }
    if (revision === undefined) return found
    log.warn({ member }, 'another process took the lease of this member, which serves no hubs until it has a new lease')
    row.nonce = mark()
    revision = undefined
    row.firstRevision = 0
    row.adopted = 0
    // Wait until everything has stopped. Until then, a new lease would be mistaken for the previous lease.
    await handlers.onReplaced()
    return found
  }
}
