/**
 * Members that share the hubs by leases. Each renews a row of its own; a roster says who belongs to the present epoch, and
 * rendezvous hashing over it says who has which hub. Three rules keep two members from serving one hub:
 *
 * 1. A member acts for four fifths of the lease after the beginning of its latest renewal, by its own clocks.
 * 2. Another one writes it off only when its row has not changed for the whole lease, and only if the row is still the
 *    same when it is overwritten. A write of the store decides that; nothing is concluded from reading.
 * 3. Who gains a hub in an epoch waits until each member of it has said that it keeps to that epoch, or is written off.
 *
 * No rule needs clocks that agree on the time, only such that run at about the same speed.
 */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Fleet, FleetView } from './fleet.ts'
import { type Instant, Lease } from './lease.ts'
import { OwnRow } from './own-row.ts'
import { memberKey, ROSTER_KEY, type Roster } from './records.ts'
import { shareOf } from './rendezvous.ts'
import { Rows } from './rows.ts'
import { ConflictError, type Store } from './store.ts'

export interface LeasedOptions {
  readonly member: string
  readonly leaseMs: number
  readonly store: Store
  /** What there is to share; the same array for as long as that does not change. */
  readonly resources: () => readonly string[]
  /** Members, epoch or lease have changed. */
  readonly onChange: () => void
  readonly clock: Clock
  readonly log: Logger
  /** Default: random. */
  readonly mark?: () => string
}

/** Renewals in the time of a lease. */
const RENEWALS = 5
/** The same while they fail. */
const ATTEMPTS = 15
/** What may be left undone at the end; others find it out by themselves. */
const FAREWELL_MS = 2_000

export class LeasedFleet implements Fleet {
  readonly #options: LeasedOptions
  readonly #lease: Lease
  /** These two are of the store as it is; another one has them anew. */
  #rows: Rows
  #row: OwnRow
  readonly #startedAt: string
  #apply: (serves: ReadonlySet<string>) => Promise<void> = async () => {}
  /** What is this member's while the lease holds. */
  #serves: ReadonlySet<string> = new Set()
  #applied: ReadonlySet<string> = new Set()
  #share:
    | (Pick<Roster, 'members'> & { readonly resources: readonly string[]; readonly of: ReadonlySet<string> })
    | undefined
  #applying: Promise<void> = Promise.resolve()
  #turning = false
  #again = false
  #stopped = false
  #cancelTurn: () => void = () => {}
  #cancelRenewal: () => void = () => {}
  #cancelFence: () => void = () => {}

  constructor(options: LeasedOptions) {
    const { leaseMs, clock } = options
    this.#options = options
    this.#lease = new Lease(clock, leaseMs)
    this.#rows = new Rows(clock)
    this.#row = this.#newRow()
    this.#startedAt = new Date(clock.now()).toISOString()
  }

  /** @param ready nothing is written before */
  #newRow(ready?: Promise<void>): OwnRow {
    const { member, store, log, mark = randomUUID } = this.#options
    const row: OwnRow = new OwnRow({
      member,
      store,
      rows: this.#rows,
      now: () => this.#lease.now(),
      mark,
      onRenewed: (from) => {
        if (row === this.#row) this.#extend(from)
      },
      onTaken: () => this.#lose(),
      ...(ready && { ready }),
      log,
    })
    return row
  }

  get member(): string {
    return this.#options.member
  }

  get view(): FleetView {
    const roster = this.#rows.roster?.record
    const members = Object.entries(roster?.members ?? {}).map(([name, { since }]) => [name, { since }] as const)
    return { mode: 'leases', epoch: roster?.epoch ?? 0, members: new Map(members) }
  }

  mayAct(): boolean {
    return this.#lease.holds
  }

  start(apply: (serves: ReadonlySet<string>) => Promise<void>): void {
    this.#apply = apply
    this.#options.store.watch(
      (key, row) => {
        if (this.#rows.saw(key, row)) this.#turn()
      },
      () => this.#beginAnew(),
    )
    this.#renewLater(0)
  }

  /** What everybody had written down is lost: as at the start, once everything has stopped. */
  #beginAnew(): void {
    const { clock, log } = this.#options
    log.warn({ member: this.member }, 'what the fleet had in NATS is lost: its members begin anew')
    this.#row.end()
    this.#rows = new Rows(clock, this.#rows.highestEpoch)
    this.#row = this.#newRow(this.#lose())
    if (!this.#stopped) this.#renewLater(0)
  }

  resourcesChanged(): void {
    // Whose it is follows from its name and the members: nobody else can be serving what is new.
    this.#turn()
  }

  /** Stops what it does, and says so. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true
    this.#row.end()
    this.#cancelTurn()
    this.#cancelRenewal()
    this.#cancelFence()
    this.#serves = new Set()
    await this.#follow()
    const timeout = new Promise<void>((resolve) => this.#options.clock.after(FAREWELL_MS, resolve))
    await Promise.race([this.#leave(), timeout])
  }

  async #leave(): Promise<void> {
    try {
      if (!(await this.#row.leave())) return
      this.#lease.lost()
      const roster = this.#rows.roster
      if (roster?.record.members[this.member]?.nonce !== this.#row.nonce) return
      const epoch = this.#rows.highestEpoch + 1
      await this.#writeRoster({ ...without(roster.record, [this.member]), epoch }, roster.revision)
    } catch {
      // The others wait until the lease is over.
    }
  }

  #renewLater(ms: number): void {
    this.#cancelRenewal()
    this.#cancelRenewal = this.#options.clock.after(ms, () => {
      void this.#renew().then((done) => {
        if (!this.#stopped) this.#renewLater(this.#options.leaseMs / (done ? RENEWALS : ATTEMPTS))
      })
    })
  }

  async #renew(): Promise<boolean> {
    const done = await this.#row.write()
    this.#turn()
    return done
  }

  async #lose(): Promise<void> {
    this.#lease.lost()
    this.#serves = new Set()
    await this.#follow()
  }

  #extend(from: Instant): void {
    const held = this.#lease.holds
    this.#lease.renewed(from)
    this.#cancelFence()
    this.#cancelFence = this.#options.clock.after(this.#lease.leftMs + 1, () => this.#fence())
    if (!held && this.#lease.holds) void this.#follow()
  }

  #fence(): void {
    if (this.#lease.holds) return
    this.#options.log.warn({ member: this.member }, 'the lease could not be renewed in time: this member stops')
    void this.#follow()
  }

  /** Brings what is done in line with what may be done. Resolves when what may not be done has stopped. */
  #follow(): Promise<void> {
    this.#applying = this.#applying.then(async () => {
      const serves = this.#lease.holds || this.#stopped ? this.#serves : new Set<string>()
      if (sameSets(serves, this.#applied)) return
      this.#applied = serves
      try {
        await this.#apply(serves)
      } catch (error) {
        this.#options.log.error({ err: error }, 'what this member serves could not be changed')
      }
      this.#options.onChange()
    })
    return this.#applying
  }

  /** Does what is due, one thing after the other, until nothing is. */
  #turn(): void {
    if (this.#turning || this.#stopped) {
      this.#again = true
      return
    }
    this.#turning = true
    void this.#turnOnce().finally(() => {
      this.#turning = false
      if (this.#again && !this.#stopped) {
        this.#again = false
        this.#turn()
      } else this.#turnLater()
    })
  }

  async #turnOnce(): Promise<void> {
    this.#options.onChange()
    if (!this.#lease.holds) {
      await this.#writeOffTwin()
      return
    }
    const rows = this.#rows
    const next = await this.#nextRoster()
    if (rows !== this.#rows) return
    if (next !== undefined) {
      await this.#writeRoster(next, rows.roster?.revision)
      return
    }
    await this.#adopt()
    await this.#gain()
  }

  /** When somebody's silence, or the settling, may be long enough. */
  #turnLater(): void {
    this.#cancelTurn()
    const { leaseMs, clock } = this.#options
    const names = Object.keys(this.#rows.roster?.record.members ?? {})
    const waits = [...names, this.member].map((name) => leaseMs - this.#rows.silentMs(name)).filter((ms) => ms > 0)
    this.#cancelTurn = clock.after(Math.min(leaseMs / RENEWALS, ...waits) + 1, () => this.#turn())
  }

  /** Another process goes by this member's name, or did until it was killed. */
  async #writeOffTwin(): Promise<void> {
    if (this.#row.isForeign && (await this.#writeOff(this.member))) this.#renewLater(0)
  }

  /** Ends the lease of a member that was silent for as long as it lasts. */
  async #writeOff(name: string): Promise<boolean> {
    const { leaseMs, store, log } = this.#options
    const rows = this.#rows
    const known = rows.member(name)
    if (rows.silentMs(name) < leaseMs) return false
    const nonce = known?.record !== undefined && 'nonce' in known.record ? known.record.nonce : 'unknown'
    const value = JSON.stringify({ gone: nonce })
    try {
      const key = memberKey(name)
      const revision =
        known === undefined ? await store.create(key, value) : await store.update(key, value, known.revision)
      rows.saw(key, { value, revision })
      log.warn({ member: name }, 'a member of the fleet has not renewed its lease: the others take over')
      return true
    } catch (error) {
      if (error instanceof ConflictError) await this.#look(memberKey(name))
      return false
    }
  }

  /** What the roster should be now; `undefined`: as it is. */
  async #nextRoster(): Promise<Roster | undefined> {
    const { leaseMs } = this.#options
    const { roster } = this.#rows
    const self = { nonce: this.#row.nonce, since: this.#startedAt, revision: this.#row.begunAt }
    const epoch = Math.max(this.#rows.highestEpoch, this.#row.adopted) + 1
    if (roster === undefined) return { epoch, settled: false, members: { [this.member]: self } }
    const { members, settled } = roster.record
    const others = Object.entries(members).filter(([name]) => name !== this.member)
    const gone: string[] = []
    for (const [name, listed] of others) {
      if (this.#rows.isOver(name, listed) || (await this.#writeOff(name))) gone.push(name)
    }
    const isListed = members[this.member]?.nonce === this.#row.nonce
    const settles = !settled && this.#options.clock.elapsed() - roster.seenAt >= leaseMs
    if (isListed && gone.length === 0 && !settles) return undefined
    const left = without({ ...roster.record, epoch }, gone)
    return { epoch, settled: settled || settles, members: { ...left.members, [this.member]: self } }
  }

  async #writeRoster(roster: Roster, revision: number | undefined): Promise<void> {
    const { store, log } = this.#options
    const rows = this.#rows
    const value = JSON.stringify(roster)
    try {
      const written = await (revision === undefined
        ? store.create(ROSTER_KEY, value)
        : store.update(ROSTER_KEY, value, revision))
      rows.saw(ROSTER_KEY, { value, revision: written })
      this.#again = true
    } catch (error) {
      if (error instanceof ConflictError) await this.#look(ROSTER_KEY)
      else log.debug({ err: error }, 'the roster of the fleet could not be written')
    }
  }

  async #look(key: string): Promise<void> {
    const rows = this.#rows
    const found = await this.#options.store.get(key).catch(() => undefined)
    if (found !== undefined && rows.saw(key, found)) this.#again = true
  }

  /** Lets go of what is another's in the present epoch, and says so. */
  async #adopt(): Promise<void> {
    const roster = this.#rows.roster?.record
    if (roster === undefined || roster.epoch <= this.#row.adopted) return
    const row = this.#row
    this.#serves = intersection(this.#serves, this.#shareIn(roster))
    await this.#follow()
    row.adopted = roster.epoch
    await row.write()
  }

  /** Takes what belongs to this member in the present epoch, when nobody else can be serving it. */
  async #gain(): Promise<void> {
    const roster = this.#rows.roster?.record
    if (roster === undefined || !roster.settled || roster.epoch !== this.#row.adopted) return
    if (roster.members[this.member]?.nonce !== this.#row.nonce) return
    const others = Object.entries(roster.members).filter(([name]) => name !== this.member)
    if (!others.every(([name, listed]) => this.#rows.hasAdopted(name, listed, roster.epoch))) return
    this.#serves = this.#shareIn(roster)
    await this.#follow()
  }

  /** Asked for with each renewal of anybody's: of many hubs the drawing takes a while. */
  #shareIn({ members }: Roster): ReadonlySet<string> {
    const resources = this.#options.resources()
    if (this.#share?.members !== members || this.#share.resources !== resources) {
      this.#share = { members, resources, of: shareOf(this.member, resources, Object.keys(members)) }
    }
    return this.#share.of
  }
}

function without(roster: Roster, names: readonly string[]): Roster {
  const members = Object.fromEntries(Object.entries(roster.members).filter(([name]) => !names.includes(name)))
  return { ...roster, members }
}

function intersection(one: ReadonlySet<string>, other: ReadonlySet<string>): Set<string> {
  return new Set([...one].filter((each) => other.has(each)))
}

function sameSets(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one === other || (one.size === other.size && [...one].every((each) => other.has(each)))
}
