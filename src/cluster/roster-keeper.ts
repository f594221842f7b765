/** The roster of a fleet as one member keeps it: writes off silent members, and lists those of the next epoch. */
import type { LeasedOptions } from './leased.ts'
import { type Listed, MAX_EPOCH, memberKey, ROSTER_KEY, type Roster } from './records.ts'
import { ConflictError, type Rows } from './rows.ts'

type Options = Pick<LeasedOptions, 'member' | 'leaseMs' | 'store' | 'clock' | 'log'>

export class RosterKeeper {
  readonly #options: Options
  readonly #rows: Rows
  readonly #onNews: () => void
  #lookedAt: number
  #ended = false

  /** @param onNews called when something new is known */
  constructor(options: Options, rows: Rows, onNews: () => void) {
    this.#options = options
    this.#rows = rows
    this.#onNews = onNews
    this.#lookedAt = options.clock.elapsed()
  }

  /** Its knowledge is of a lost store: it writes nothing more. */
  end(): void {
    this.#ended = true
  }

  /**
   * Updates the roster. Returns whether it was already up to date.
   * @param self this member, as the roster lists it
   * @param adopted the epoch that this member confirms
   */
  async keep(self: Listed, adopted: number): Promise<boolean> {
    await this.#lookNowAndThen()
    // The roster that the new one is based on: a newer one must not be overwritten.
    const { roster, rosterRevision } = this.#rows
    const next = await this.#next(roster, self, adopted)
    if (next !== undefined && !this.#ended) await this.#write(next, rosterRevision)
    return next === undefined && !this.#ended
  }

  /**
   * Removes this member. If several leave at the same time, each overwrites the roster of the one before, so the last
   * one knows that it is the last. Returns whether others remain; `undefined`: unknown.
   */
  async leave(nonce: string): Promise<boolean | undefined> {
    const rows = this.#rows
    const { member } = this.#options
    let before: Rows['roster']
    for (let { roster } = rows; roster !== before; { roster } = rows) {
      before = roster
      if (roster?.record.members[member]?.nonce !== nonce) return true
      const left = without(roster.record, [member])
      const next = { ...left, epoch: rows.highestEpoch + 1 }
      if (await this.#write(next, roster.revision)) return Object.keys(left.members).length > 0
    }
    return undefined
  }

  /** Ends the lease of a member that was silent for the whole lease. */
  async writeOff(name: string): Promise<boolean> {
    const rows = this.#rows
    const { leaseMs, log } = this.#options
    const known = rows.member(name)
    if (rows.silentMs(name) < leaseMs) return false
    const nonce = known?.record !== undefined && 'nonce' in known.record ? known.record.nonce : 'unknown'
    const value = JSON.stringify({ gone: nonce })
    try {
      await this.#put(memberKey(name), value, known?.revision)
      log.warn({ member: name }, 'a member of the fleet has not renewed its lease: the others take over')
      return true
    } catch {
      return false
    }
  }

  /** Returns `undefined` if nothing changes. */
  async #next(roster: Rows['roster'], self: Listed, adopted: number): Promise<Roster | undefined> {
    const rows = this.#rows
    const { member, leaseMs, clock } = this.#options
    const epoch = Math.max(rows.highestEpoch, adopted) + 1
    if (roster === undefined) return { epoch, settled: false, members: { [member]: self } }
    const { members, settled } = roster.record
    const gone: string[] = []
    for (const [name, listed] of Object.entries(members)) {
      if (name !== member && (rows.isOver(name, listed) || (await this.writeOff(name)))) gone.push(name)
    }
    const isListed = members[member]?.nonce === self.nonce
    const settles = !settled && clock.elapsed() - roster.seenAt >= leaseMs
    // Members that have confirmed a later epoch would wait for it: this roster was not written by a member.
    const isBehind = roster.record.epoch < rows.highestEpoch
    if (isListed && gone.length === 0 && !settles && !isBehind) return undefined
    const left = without({ ...roster.record, epoch }, gone)
    return { epoch, settled: settled || settles, members: { ...left.members, [member]: self } }
  }

  /** Writes over the given revision. Returns whether it succeeded. */
  async #write(roster: Roster, before: number | undefined): Promise<boolean> {
    const { store, log } = this.#options
    try {
      if (roster.epoch > MAX_EPOCH) {
        await store.startOver()
        return false
      }
      await this.#put(ROSTER_KEY, JSON.stringify(roster), before)
      this.#onNews()
      return true
    } catch (error) {
      if (!(error instanceof ConflictError)) log.debug({ err: error }, 'the roster of the fleet could not be written')
      return false
    }
  }

  /**
   * Writes a key over a revision, or creates it. On a conflict, reads the existing record:
   * - If none was known, the watch has missed it. A dead member does not write again, so only reading can find it.
   * - If its revision is older than the known one, it is the same record as counted by another server, or a former one.
   *   A second write, over that revision, lets the store decide.
   * - If it no longer exists, it was purged, or is gone with its store.
   */
  async #put(key: string, value: string, before: number | undefined): Promise<void> {
    const rows = this.#rows
    try {
      await rows.write(key, value, before ?? 0)
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error
      const found = await rows.look(key, this.#onNews).catch(() => null)
      // The conflicting record may belong to a store that has replaced the lost one.
      if (this.#ended || before === undefined) throw error
      if (found === undefined) await this.#options.store.startOver()
      if (found === undefined || found === null || found.revision >= before) throw error
      await rows.write(key, value, found.revision)
    }
  }

  /** A watch may skip a step. Rows are written repeatedly, but the roster is not. */
  async #lookNowAndThen(): Promise<void> {
    const { leaseMs, clock } = this.#options
    if (clock.elapsed() - this.#lookedAt < leaseMs) return
    this.#lookedAt = clock.elapsed()
    await this.#rows.look(ROSTER_KEY, this.#onNews).catch(() => undefined)
  }
}

function without(roster: Roster, names: readonly string[]): Roster {
  const members = Object.fromEntries(Object.entries(roster.members).filter(([name]) => !names.includes(name)))
  return { ...roster, members }
}
