/** The roster of a fleet as one member keeps it: it writes off who is silent, and names who belongs to the next epoch. */
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

  /** @param onNews something is known that was not before */
  constructor(options: Options, rows: Rows, onNews: () => void) {
    this.#options = options
    this.#rows = rows
    this.#onNews = onNews
    this.#lookedAt = options.clock.elapsed()
  }

  /** What it knows is of a store that was lost: it writes nothing more. */
  end(): void {
    this.#ended = true
  }

  /**
   * Brings the roster up to date. Returns whether it was so already.
   * @param self this member, as the roster lists it
   * @param adopted the epoch that this member says to keep to
   */
  async keep(self: Listed, adopted: number): Promise<boolean> {
    await this.#lookNowAndThen()
    // What it was made from: a newer one that comes meanwhile must not be written over.
    const { roster, rosterRevision } = this.#rows
    const next = await this.#next(roster, self, adopted)
    if (next !== undefined && !this.#ended) await this.#write(next, rosterRevision)
    return next === undefined && !this.#ended
  }

  /**
   * Takes this member out. Of several that leave at a time each writes over what the one before has written: the last one
   * knows that it is. Returns whether others are left; `undefined`: that is not known.
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

  /** Ends the lease of a member that was silent for as long as it lasts. */
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

  /** `undefined`: as it is. */
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
    // Members that go by a later epoch would wait for that: this roster was not written by a member.
    const isBehind = roster.record.epoch < rows.highestEpoch
    if (isListed && gone.length === 0 && !settles && !isBehind) return undefined
    const left = without({ ...roster.record, epoch }, gone)
    return { epoch, settled: settled || settles, members: { ...left.members, [member]: self } }
  }

  /** Over the one with this revision. Returns whether it is written. */
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
   * - If none was known, the watch has missed it. A dead member does not write it again, so nothing else would show it.
   * - If its revision is older than the known one, it is the same record as counted by another server, or a former one.
   *   A second write, over that revision, lets the store decide.
   * - If it does not exist any more, it was purged, or is gone with its store.
   */
  async #put(key: string, value: string, before: number | undefined): Promise<void> {
    const rows = this.#rows
    try {
      await rows.write(key, value, before ?? 0)
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error
      const found = await rows.look(key, this.#onNews).catch(() => null)
      // What is in the way may be of the store that has taken the place of the lost one.
      if (this.#ended || before === undefined) throw error
      if (found === undefined) await this.#options.store.startOver()
      if (found === undefined || found === null || found.revision >= before) throw error
      await rows.write(key, value, found.revision)
    }
  }

  /** A watch may leave out a step. Rows are written again and again, but the roster is not. */
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
