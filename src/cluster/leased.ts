/**
 * Distributes hubs by leases. Each member renews its own row in a store. A roster lists the members of the current
 * epoch, and rendezvous hashing over the roster assigns the hubs. Three rules keep two members from serving one hub:
 *
 * 1. A member acts only for four fifths of the lease, by its own clocks, from the start of its latest renewal.
 * 2. A member is written off only if its row has not changed for a whole lease: another member then overwrites the row,
 *    which fails if the row has changed in the meantime. Reading the row proves nothing.
 * 3. A member that gains a hub in an epoch waits until each member of the epoch has confirmed the epoch in its row, or
 *    is written off.
 *
 * The rules do not need synchronised clocks, only clocks that run at about the same speed.
 */
import type { Logger } from 'pino'
import { type Clock, within } from '../base/clock.ts'
import { type Fleet, type FleetView, shareOf } from './fleet.ts'
import { type Instant, newLease, newOwnRow } from './own-row.ts'
import { MAX_EPOCH, type Roster } from './records.ts'
import { rosterKeeper } from './roster-keeper.ts'
import { Rows, type Store } from './rows.ts'

export interface LeasedOptions {
  readonly member: string
  readonly leaseMs: number
  readonly store: Store
  /** Returns the resources to distribute; the same array until the resources change. */
  readonly resources: () => readonly string[]
  readonly onChange: () => void
  /** Returns whether this member can serve hubs. A member without a connection to the broker cannot. */
  readonly isHealthy: () => boolean
  readonly clock: Clock
  readonly log: Logger
  /** Creates a nonce; default: random. */
  readonly mark?: () => string
}

const RENEWALS = 5
/** Number of attempts per lease after a failed renewal. */
const ATTEMPTS = 15
/** After this many leases without a broker, a member hands over its hubs. Most brokers restart earlier. */
const UNHEALTHY = 2
/** Time limit for leaving, in milliseconds. If leaving fails, the other members wait until the lease ends. */
const LEAVE_MS = 2_000

export class LeasedFleet implements Fleet {
  readonly member: string
  readonly #options: LeasedOptions
  readonly #lease: ReturnType<typeof newLease>
  /** These three objects belong to the current store, and are replaced together with it. */
  #rows: Rows
  #roster: ReturnType<typeof rosterKeeper>
  #row: ReturnType<typeof newOwnRow>
  readonly #startedAt: string
  #apply: (serves: ReadonlySet<string>) => Promise<void> = async () => {}
  /** The resources that this member serves while the lease is valid. */
  #serves: ReadonlySet<string> = new Set()
  #applied: ReadonlySet<string> = new Set()
  #share:
    | (Pick<Roster, 'members'> & { readonly resources: readonly string[]; readonly of: ReadonlySet<string> })
    | undefined
  #applying: Promise<void> = Promise.resolve()
  /** The epoch of the last completed `#gain`. */
  #gained: number | undefined
  #turning = false
  #again = false
  #stopped = false
  /** When this member became unhealthy, in `clock.elapsed()` milliseconds; `undefined` while it is healthy. */
  #unhealthySince: number | undefined
  /** Whether this member has handed over its hubs to the other members until it is healthy again. */
  #isAway = false
  #cancelTurn: () => void = () => {}
  #cancelRenewal: () => void = () => {}
  #cancelFence: () => void = () => {}

  constructor(options: LeasedOptions) {
    const { leaseMs, clock } = options
    this.member = options.member
    this.#options = options
    this.#lease = newLease(clock, leaseMs)
    this.#rows = new Rows(options.store, options.clock)
    this.#roster = this.#newRoster()
    this.#row = this.#newRow()
    this.#startedAt = new Date(clock.now()).toISOString()
  }

  #newRoster() {
    return rosterKeeper(this.#options, this.#rows, () => {
      this.#again = true
    })
  }

  /** @param ready nothing is written before this promise resolves */
  #newRow(ready = Promise.resolve()) {
    const onRenewed = (from: Instant) => {
      if (row === this.#row) this.#extend(from)
    }
    const handlers = { onRenewed, onReplaced: () => this.#lose() }
    const row: ReturnType<typeof newOwnRow> = newOwnRow(this.#options, this.#rows, this.#lease, handlers, ready)
    return row
  }

  get view(): FleetView {
    const roster = this.#rows.roster?.record
    const members = Object.entries(roster?.members ?? {}).map(([name, { since }]) => [name, { since }] as const)
    return { mode: 'leases', epoch: roster?.epoch ?? 0, members: new Map(members) }
  }

  mayAct(): boolean {
    return this.#lease.holds
  }

  get isSettled(): boolean {
    return this.mayAct() && this.#gained !== undefined && this.#gained === this.#rows.roster?.record.epoch
  }

  start(apply: (serves: ReadonlySet<string>) => Promise<void>): void {
    this.#apply = apply
    this.#options.store.watch(
      (key, row) => {
        if (this.#rows.saw(key, row)) this.#turn()
      },
      () => this.#startOver(),
    )
    this.#renewLater(0)
  }

  /** Call this when the store has lost all its records. Renews the lease only after everything has stopped. */
  #startOver(): void {
    this.#options.log.warn({ member: this.member }, 'the data of the fleet in NATS is lost: the members start over')
    this.#row.end()
    this.#isAway = false
    this.#roster.end()
    // After the highest possible epoch, the next epoch is 1.
    this.#rows = new Rows(this.#options.store, this.#options.clock, this.#rows.highestEpoch % MAX_EPOCH)
    this.#roster = this.#newRoster()
    this.#row = this.#newRow(this.#lose())
    if (!this.#stopped) this.#renewLater(0)
  }

  resourcesChanged(): void {
    // Names and members alone determine the owner, so no other member can already serve a new resource.
    this.#turn()
  }

  async leave(): Promise<boolean | undefined> {
    this.#stopped = true
    this.#cancelTurn()
    await this.#release()
    return await within(this.#options.clock, LEAVE_MS, this.#leave())
  }

  #release(): Promise<void> {
    this.#row.end()
    this.#cancelRenewal()
    this.#cancelFence()
    this.#gained = undefined
    this.#serves = new Set()
    return this.#follow()
  }

  /** Returns whether other members remain; `undefined` if unknown. */
  async #leave(): Promise<boolean | undefined> {
    try {
      if (!(await this.#row.leave())) return undefined
      this.#lease.lost()
      return await this.#roster.leave(this.#row.nonce)
    } catch {
      // This member could not announce that it leaves, so the other members wait until its lease ends.
      return undefined
    }
  }

  #renewLater(ms: number): void {
    this.#cancelRenewal()
    this.#cancelRenewal = this.#options.clock.after(ms, () => {
      void this.#row.write().then((done) => {
        this.#turn()
        if (!this.#stopped && !this.#isAway) this.#renewLater(this.#options.leaseMs / (done ? RENEWALS : ATTEMPTS))
      })
    })
  }

  async #lose(): Promise<void> {
    this.#lease.lost()
    this.#gained = undefined
    this.#serves = new Set()
    await this.#follow()
  }

  #extend(from: Instant): void {
    const wasHeld = this.#lease.holds
    this.#lease.renewed(from)
    this.#cancelFence()
    this.#cancelFence = this.#options.clock.after(this.#lease.remainingMs + 1, () => this.#fence())
    if (!wasHeld && this.#lease.holds) void this.#follow()
  }

  #fence(): void {
    if (this.#lease.holds || this.#isAway) return
    this.#options.log.warn({ member: this.member }, 'the lease could not be renewed in time: this member stops')
    void this.#follow()
  }

  /** Resolves when this member has stopped serving all resources that it may not serve. */
  #follow(): Promise<void> {
    this.#applying = this.#applying.then(async () => {
      const may = this.#lease.holds && !this.#stopped && !this.#isAway
      const serves = may ? this.#serves : new Set<string>()
      if (serves.symmetricDifference(this.#applied).size === 0) return
      this.#applied = serves
      try {
        await this.#apply(serves)
      } catch (error) {
        this.#options.log.error({ err: error }, 'the hubs of this member could not be changed')
      }
      this.#options.onChange()
    })
    return this.#applying
  }

  /** Runs one step at a time, until no step is due. */
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
    if (this.#isAway) {
      if (this.#options.isHealthy()) this.#comeBack()
      return
    }
    const isUnhealthy = this.#isUnhealthy()
    if (!this.#lease.holds) {
      // Write off a member with the same name: its process may have been killed.
      if (this.#row.isForeign && (await this.#roster.writeOff(this.member))) this.#renewLater(0)
      return
    }
    if (isUnhealthy) return await this.#goAway()
    const { nonce, firstRevision: revision, adopted } = this.#row
    if (!(await this.#roster.keep({ nonce, since: this.#startedAt, revision }, adopted))) return
    await this.#adopt()
    await this.#gain()
  }

  /** Schedules the next turn: when the lease of a silent member ends, but at the latest when a renewal is due. */
  #turnLater(): void {
    this.#cancelTurn()
    const { leaseMs, clock } = this.#options
    const names = Object.keys(this.#rows.roster?.record.members ?? {})
    const waits = [...names, this.member].map((name) => leaseMs - this.#rows.silentMs(name)).filter((ms) => ms > 0)
    this.#cancelTurn = clock.after(Math.min(leaseMs / RENEWALS, ...waits) + 1, () => this.#turn())
  }

  #isUnhealthy(): boolean {
    const { isHealthy, clock, leaseMs } = this.#options
    this.#unhealthySince = isHealthy() ? undefined : (this.#unhealthySince ?? clock.elapsed())
    if (this.#unhealthySince === undefined || clock.elapsed() - this.#unhealthySince < UNHEALTHY * leaseMs) return false
    return Object.keys(this.#rows.roster?.record.members ?? {}).some((name) => name !== this.member)
  }

  async #goAway(): Promise<void> {
    this.#options.log.warn({ member: this.member }, 'without a broker, this member leaves its hubs to other members')
    this.#isAway = true
    await this.#release()
    // If no other member remains, take the hubs back.
    if ((await this.#leave()) === false) this.#comeBack()
  }

  #comeBack(): void {
    this.#isAway = false
    this.#unhealthySince = undefined
    // If leaving failed, the old lease may still be valid, but it does not cover the new row.
    this.#lease.lost()
    this.#row = this.#newRow()
    this.#renewLater(0)
  }

  /** Stops serving the hubs that belong to other members in the current epoch, then confirms the epoch. */
  async #adopt(): Promise<void> {
    const roster = this.#rows.roster?.record
    if (roster === undefined || roster.epoch <= this.#row.adopted) return
    const row = this.#row
    this.#serves = this.#serves.intersection(this.#shareIn(roster))
    await this.#follow()
    row.adopted = roster.epoch
    await row.write()
  }

  /** Starts to serve the hubs of this member in the current epoch, once no other member can be serving them. */
  async #gain(): Promise<void> {
    const roster = this.#rows.roster?.record
    if (roster === undefined || !roster.settled || roster.epoch !== this.#row.adopted) return
    if (roster.members[this.member]?.nonce !== this.#row.nonce) return
    const others = Object.entries(roster.members).filter(([name]) => name !== this.member)
    if (!others.every(([name, listed]) => this.#rows.hasAdopted(name, listed, roster.epoch))) return
    this.#serves = this.#shareIn(roster)
    await this.#follow()
    if (this.#gained === roster.epoch) return
    this.#gained = roster.epoch
    this.#options.onChange()
  }

  /** Caches this member's share, because each renewal of any member needs it, and hashing many hubs is slow. */
  #shareIn({ members }: Roster): ReadonlySet<string> {
    const resources = this.#options.resources()
    if (this.#share?.members !== members || this.#share.resources !== resources) {
      this.#share = { members, resources, of: shareOf(this.member, resources, Object.keys(members)) }
    }
    return this.#share.of
  }
}
