/** The store that members share, its records as far as they are known, and since when each member is silent. */
import type { Clock } from '../base/clock.ts'
import { type Listed, type MemberRecord, memberOf, ROSTER_KEY, type Roster, readMember, readRoster } from './records.ts'

export interface Row {
  readonly value: string
  /** Grows with every write to any key. */
  readonly revision: number
}

/** A write came too late: the key is not as it was expected to be. */
export class ConflictError extends Error {}

/**
 * The key-value store that fleet members share. All members see its writes in the same order. A write that fails with
 * anything but `ConflictError` may have happened, or happen later. Only writes are decisive: what is read may be old.
 */
export interface Store {
  /** Writes a key that is not there. Returns its revision. @throws ConflictError */
  create(key: string, value: string): Promise<number>
  /** Writes a key that has this revision. Returns its new one. @throws ConflictError */
  update(key: string, value: string, revision: number): Promise<number>
  /** `undefined`: there is no such key. One that was deleted is an empty row. */
  get(key: string): Promise<Row | undefined>
  /** Makes another store take the place of this one, for all members: what is in it leads nowhere. */
  startOver(): Promise<void>
  /**
   * Reports the value of each key, now and after changes. Reports may be late or skip steps. `onLost`: another store
   * has taken the place of this one, and nothing that was in it is left. Writes over revisions of the former one fail
   * with `ConflictError`.
   */
  watch(onRow: (key: string, row: Row) => void, onLost: () => void): void
}

interface Known<T> {
  readonly record: T
  readonly revision: number
  /** `clock.elapsed()` when this revision was seen first. */
  readonly seenAt: number
}

type Writable = Pick<Store, 'create' | 'update' | 'get'>

export class Rows {
  readonly #store: Writable
  readonly #clock: Clock
  #formerEpoch: number
  readonly #members = new Map<string, Known<MemberRecord | undefined>>()
  #roster: Known<Roster> | undefined
  #rosterRevision: number | undefined
  #reachableSince = Number.NEGATIVE_INFINITY

  /** @param formerEpoch the highest of a store that was lost */
  constructor(store: Writable, clock: Clock, formerEpoch = 0) {
    this.#store = store
    this.#clock = clock
    this.#formerEpoch = formerEpoch
  }

  get roster(): Known<Roster> | undefined {
    return this.#roster
  }

  /** Of what stands in the roster's place, a roster or not; `undefined`: nothing is known. */
  get rosterRevision(): number | undefined {
    return this.#rosterRevision
  }

  member(name: string): Known<MemberRecord | undefined> | undefined {
    return this.#members.get(name)
  }

  /** Writes over a revision; 0: creates the key. Returns the new one. @throws ConflictError, and what the store throws */
  async write(key: string, value: string, over: number): Promise<number> {
    const revision = await (over === 0 ? this.#store.create(key, value) : this.#store.update(key, value, over))
    this.saw(key, { value, revision })
    return revision
  }

  /** Reads a key. @param onNews called if that is news */
  async look(key: string, onNews: () => void = () => {}): Promise<Row | undefined> {
    const found = await this.#store.get(key)
    if (found !== undefined && this.saw(key, found)) onNews()
    return found
  }

  /** Takes in what a key holds. Returns whether that is news. */
  saw(key: string, { value, revision }: Row): boolean {
    const seenAt = this.#clock.elapsed()
    const name = memberOf(key)
    if (name !== undefined) {
      if (revision <= (this.#members.get(name)?.revision ?? 0)) return false
      this.#members.set(name, { record: readMember(value), revision, seenAt })
      return true
    }
    if (key !== ROSTER_KEY || revision <= (this.#rosterRevision ?? 0)) return false
    const record = readRoster(value)
    this.#formerEpoch = this.highestEpoch
    this.#rosterRevision = revision
    this.#roster = record && { record, revision, seenAt }
    return true
  }

  /** Whether a member of a roster surely does nothing any more: a later row proves it. A key without a valid row proves nothing. */
  isOver(name: string, { nonce, revision }: Listed): boolean {
    const known = this.#members.get(name)
    if (known?.record === undefined || known.revision <= revision) return false
    return !('nonce' in known.record) || known.record.nonce !== nonce
  }

  /** Whether a member of a roster has confirmed an epoch, or is over, and so no longer serves other members' hubs. */
  hasAdopted(name: string, listed: Listed, epoch: number): boolean {
    if (this.isOver(name, listed)) return true
    const record = this.#members.get(name)?.record
    return record !== undefined && 'nonce' in record && record.nonce === listed.nonce && record.adopted >= epoch
  }

  /** The highest epoch in any record. */
  get highestEpoch(): number {
    const adopted = [...this.#members.values()].map(({ record }) =>
      record !== undefined && 'adopted' in record ? record.adopted : 0,
    )
    return Math.max(this.#formerEpoch, this.#roster?.record.epoch ?? 0, ...adopted)
  }

  /**
   * The store does not take what this member writes: the others may be no better off, and their writes may wait there.
   * No silence up to now counts.
   */
  unavailable(): void {
    this.#reachableSince = this.#clock.elapsed()
  }

  /** For how long a member is silent, in milliseconds; one without a row: since the roster named it. */
  silentMs(name: string): number {
    const since = this.#members.get(name)?.seenAt ?? this.#roster?.seenAt
    return since === undefined ? 0 : this.#clock.elapsed() - Math.max(since, this.#reachableSince)
  }
}
