/** The key-value store that fleet members share. All members see its writes in the same order. */

export interface Row {
  readonly value: string
  /** Grows with every write to any key. */
  readonly revision: number
}

/** A write came too late: the key is not as it was expected to be. */
export class ConflictError extends Error {}

/**
 * A write that fails with anything but `ConflictError` may have happened, or happen later. Only writes are decisive: what
 * is read may be old.
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
