/** The store that members share, its latest known records, and how long each member has been silent. */
import type { Clock } from '../base/clock.ts'
import { type Listed, type MemberRecord, memberOf, ROSTER_KEY, type Roster, readMember, readRoster } from './records.ts'

export interface Row {
  readonly value: string
  /** Increases with every write to any key. */
  readonly revision: number
}

/** Thrown if the key's revision is not the expected one, because another write came first. */
export class ConflictError extends Error {}

/**
 * All members see the writes in the same order. A write that fails with an error other than `ConflictError` may
 * still succeed later. Only a successful write is conclusive, because reads may be outdated.
 */
export interface Store {
  /** Returns the revision. @throws ConflictError if the key exists */
  create(key: string, value: string): Promise<number>
  /** Overwrites a key that has this revision. Returns the new revision. @throws ConflictError */
  update(key: string, value: string, revision: number): Promise<number>
  /** Returns `undefined` if the key does not exist. A deleted key is an empty row. */
  get(key: string): Promise<Row | undefined>
  /** Replaces this store with a new store, for all members, because the content of this store cannot be used. */
  startOver(): Promise<void>
  /**
   * Reports the value of each key, now and after changes. Reports may be late or skip changes. Calls `onLost` if the
   * content is lost because a new store has replaced this store. Writes over lost revisions fail with `ConflictError`.
   */
  watch(onRow: (key: string, row: Row) => void, onLost: () => void): void
}

interface StoredRow<T> {
  readonly record: T
  readonly revision: number
  /** When this member first saw the revision, in `clock.elapsed()` milliseconds. */
  readonly seenAt: number
}

type Writable = Pick<Store, 'create' | 'update' | 'get'>

export class Rows {
  readonly #store: Writable
  readonly #clock: Clock
  #formerEpoch: number
  readonly #members = new Map<string, StoredRow<MemberRecord | undefined>>()
  /** Only this class changes this field and the next field. */
  roster: StoredRow<Roster> | undefined
  /** Revision of the roster's key, whether its value is valid or not; `undefined` if unknown. */
  rosterRevision: number | undefined
  #reachableSince = Number.NEGATIVE_INFINITY

  /** @param formerEpoch the highest epoch of a lost store */
  constructor(store: Writable, clock: Clock, formerEpoch = 0) {
    this.#store = store
    this.#clock = clock
    this.#formerEpoch = formerEpoch
  }

  member(name: string): StoredRow<MemberRecord | undefined> | undefined {
    return this.#members.get(name)
  }

  /** Overwrites a revision; 0 creates the key. Returns the new revision. @throws ConflictError, or a store's error */
  async write(key: string, value: string, over: number): Promise<number> {
    const revision = await (over === 0 ? this.#store.create(key, value) : this.#store.update(key, value, over))
    this.saw(key, { value, revision })
    return revision
  }

  /** @param onChange called if the value is new */
  async read(key: string, onChange: () => void = () => {}): Promise<Row | undefined> {
    const found = await this.#store.get(key)
    if (found !== undefined && this.saw(key, found)) onChange()
    return found
  }

  /** Records a value that was read, written or reported by the watch. Returns whether the value is new. */
  saw(key: string, { value, revision }: Row): boolean {
    const seenAt = this.#clock.elapsed()
    const name = memberOf(key)
    if (name !== undefined) {
      if (revision <= (this.#members.get(name)?.revision ?? 0)) return false
      this.#members.set(name, { record: readMember(value), revision, seenAt })
      return true
    }
    if (key !== ROSTER_KEY || revision <= (this.rosterRevision ?? 0)) return false
    const record = readRoster(value)
    this.#formerEpoch = this.highestEpoch
    this.rosterRevision = revision
    this.roster = record && { record, revision, seenAt }
    return true
  }

  /** Returns whether a later row proves that a listed member has stopped. A missing or invalid row proves nothing. */
  hasStopped(name: string, { nonce, revision }: Listed): boolean {
    const row = this.#members.get(name)
    return row?.record !== undefined && row.revision > revision && row.record.nonce !== nonce
  }

  /** Returns whether a listed member has confirmed the epoch or ended, so that it serves no hubs of other members. */
  hasAdopted(name: string, listed: Listed, epoch: number): boolean {
    const record = this.#members.get(name)?.record
    return this.hasStopped(name, listed) || (record?.nonce === listed.nonce && record.adopted >= epoch)
  }

  get highestEpoch(): number {
    const adopted = [...this.#members.values()].map(({ record }) => record?.adopted ?? 0)
    return Math.max(this.#formerEpoch, this.roster?.record.epoch ?? 0, ...adopted)
  }

  /** Call this after a failed write. Other members' writes may have failed too, so their silence so far does not count. */
  unavailable(): void {
    this.#reachableSince = this.#clock.elapsed()
  }

  /** Returns how many milliseconds a member has been silent; for a member without a row, since the roster listed it. */
  silentMs(name: string): number {
    const since = this.#members.get(name)?.seenAt ?? this.roster?.seenAt
    return since === undefined ? 0 : this.#clock.elapsed() - Math.max(since, this.#reachableSince)
  }
}
