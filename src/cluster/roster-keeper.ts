/** Keeps the roster of a fleet up to date: writes off silent members, and lists the members of the next epoch. */
import type { LeasedOptions } from './leased.ts'
import { type Listed, MAX_EPOCH, memberKey, ROSTER_KEY, type Roster } from './records.ts'
import { ConflictError, type Rows } from './rows.ts'

type Options = Pick<LeasedOptions, 'member' | 'leaseMs' | 'store' | 'clock' | 'log'>

/** @param onChange called after a record has changed */
export function rosterKeeper(options: Options, rows: Rows, onChange: () => void) {
  const { member, leaseMs, store, clock, log } = options
  let readAt = clock.elapsed()
  let ended = false
  return { end, keep, leave, writeOff }

  /** Call this when the data is from a lost store, to prevent later writes. */
  function end(): void {
    ended = true
  }

  /** Returns whether the roster was already up to date. `adopted` is the epoch that this member confirms. */
  async function keep(self: Listed, adopted: number): Promise<boolean> {
    await readOncePerLease()
    // Remember the revision that the new roster is based on, so that a newer roster is not overwritten.
    const { roster, rosterRevision } = rows
    const next = await nextOf(roster, self, adopted)
    if (next !== undefined && !ended) await write(next, rosterRevision)
    return next === undefined && !ended
  }

  /**
   * Removes this member. If several members leave at the same time, each write builds on the previous one, so only the
   * last to leave finds the roster empty. Returns whether other members remain; `undefined` if unknown.
   */
  async function leave(nonce: string): Promise<boolean | undefined> {
    let before: Rows['roster']
    for (let { roster } = rows; roster !== before; { roster } = rows) {
      before = roster
      if (roster?.record.members[member]?.nonce !== nonce) return true
      const remaining = without(roster.record, [member])
      const next = { ...remaining, epoch: rows.highestEpoch + 1 }
      if (await write(next, roster.revision)) return Object.keys(remaining.members).length > 0
    }
    return undefined
  }

  async function writeOff(name: string): Promise<boolean> {
    const row = rows.member(name)
    if (rows.silentMs(name) < leaseMs) return false
    try {
      await put(memberKey(name), JSON.stringify({ gone: row?.record?.nonce ?? 'unknown' }), row?.revision)
      log.warn({ member: name }, 'a member of the fleet has not renewed its lease: the others take over')
      return true
    } catch {
      return false
    }
  }

  /** Returns `undefined` if nothing changes. */
  async function nextOf(roster: Rows['roster'], self: Listed, adopted: number): Promise<Roster | undefined> {
    const epoch = Math.max(rows.highestEpoch, adopted) + 1
    if (roster === undefined) return { epoch, settled: false, members: { [member]: self } }
    const { members, settled } = roster.record
    const stopped: string[] = []
    for (const [name, listed] of Object.entries(members)) {
      if (name !== member && (rows.hasStopped(name, listed) || (await writeOff(name)))) stopped.push(name)
    }
    const isListed = members[member]?.nonce === self.nonce
    const settles = !settled && clock.elapsed() - roster.seenAt >= leaseMs
    // Replace a roster whose epoch is not the highest: no member wrote it, and members with a later epoch gain no hubs.
    const isBehind = roster.record.epoch < rows.highestEpoch
    if (isListed && stopped.length === 0 && !settles && !isBehind) return undefined
    const remaining = without({ ...roster.record, epoch }, stopped)
    return { epoch, settled: settled || settles, members: { ...remaining.members, [member]: self } }
  }

  /** Returns whether the write succeeded. */
  async function write(roster: Roster, before: number | undefined): Promise<boolean> {
    try {
      if (roster.epoch > MAX_EPOCH) {
        await store.startOver()
        return false
      }
      await put(ROSTER_KEY, JSON.stringify(roster), before)
      onChange()
      return true
    } catch (error) {
      if (!(error instanceof ConflictError)) log.debug({ err: error }, 'the roster of the fleet could not be written')
      return false
    }
  }

  /**
   * Writes a key if its revision is still `before`; without `before`, creates the key. On a conflict, reads the key:
   * - If `before` is missing, the watch has missed the record. Its member may be dead and never write it again, so only
   *   this read can find it.
   * - If the revision is lower than `before`, a different server numbered the same record, or the read was outdated.
   *   Writes again with the lower revision as the condition, so that the store decides.
   * - If the key no longer exists, it was purged, or its store was lost.
   */
  async function put(key: string, value: string, before: number | undefined): Promise<void> {
    try {
      await rows.write(key, value, before ?? 0)
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error
      const found = await rows.read(key, onChange).catch(() => null)
      // If the store was lost, the conflicting record may be from its replacement.
      if (ended || before === undefined) throw error
      if (found === undefined) await store.startOver()
      if (found === undefined || found === null || found.revision >= before) throw error
      await rows.write(key, value, found.revision)
    }
  }

  /** Reads the roster once per lease, because the watch may miss a change, and the roster is rarely rewritten. */
  async function readOncePerLease(): Promise<void> {
    if (clock.elapsed() - readAt < leaseMs) return
    readAt = clock.elapsed()
    await rows.read(ROSTER_KEY, onChange).catch(() => undefined)
  }
}

function without(roster: Roster, names: readonly string[]): Roster {
  const members = Object.fromEntries(Object.entries(roster.members).filter(([name]) => !names.includes(name)))
  return { ...roster, members }
}
