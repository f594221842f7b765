/**
 * Members of a fleet in simulated time. Each member has a clock with its own speed, and may be suspended like a paused
 * process. The store's answers may be late or lost, or arrive after the member has stopped waiting.
 */
import { pino } from 'pino'
import type { Clock } from '../../src/base/clock.ts'
import { ownerOf } from '../../src/cluster/fleet.ts'
import { LeasedFleet } from '../../src/cluster/leased.ts'
import { ROSTER_KEY, readRoster } from '../../src/cluster/records.ts'
import { ConflictError, type Row, type Store } from '../../src/cluster/rows.ts'

interface Watcher {
  readonly member: Member
  readonly onRow: (key: string, row: Row) => void
  readonly onLost: () => void
}

interface Event {
  readonly at: number
  readonly order: number
  /** The member that runs the task. The task waits while this member is suspended. */
  readonly owner: Member | undefined
  readonly run: () => void
}

const CALL_TIMEOUT_MS = 1_500
/** Members detect within this time that the store was replaced. */
const LOSS_NOTICED_MS = 15_000

export class Simulation {
  now = 0
  readonly #ownersAmong = new Map<string, Map<string, string | undefined>>()
  readonly members: Member[] = []
  readonly store = new Map<string, Row>()
  losses = 0
  readonly random: () => number
  readonly violations: string[] = []
  /** Whether the store works without faults. */
  isWell = false
  readonly #events = new Set<Event>()
  #order = 0
  #revision = 0
  #watchers: Watcher[] = []
  #membersOf = new Map<number, string>()

  constructor(random: () => number) {
    this.random = random
  }

  at(ms: number, owner: Member | undefined, run: () => void): () => void {
    const event = { at: this.now + ms, order: this.#order++, owner, run }
    this.#events.add(event)
    return () => void this.#events.delete(event)
  }

  async run(ms: number): Promise<void> {
    const end = this.now + ms
    for (;;) {
      let next: Event | undefined
      let due = Number.POSITIVE_INFINITY
      for (const event of this.#events) {
        const at = Math.max(event.at, event.owner?.pausedUntil ?? 0)
        if (at > due || (at === due && next !== undefined && next.order < event.order)) continue
        next = event
        due = at
      }
      if (next === undefined || due > end) break
      this.#events.delete(next)
      this.now = Math.max(this.now, due)
      this.#checkOwners()
      if (next.owner?.killed) continue
      next.run()
      await new Promise((resolve) => setImmediate(resolve))
      this.#checkOwners()
    }
    this.now = end
  }

  /** @param losses how many losses of the store the writer has detected; this identifies the store it writes to */
  commit(key: string, value: string, expected: number | undefined, losses: number): number {
    const name = `${losses}.${key}`
    if (this.store.get(name)?.revision !== expected) throw new ConflictError(key)
    this.#revision += 1
    const row = { value, revision: this.#revision }
    this.store.set(name, row)
    if (key === ROSTER_KEY && losses === this.losses) this.#checkEpoch(value)
    for (const { member, onRow } of this.#watchers) {
      if (member.losses === losses) this.#deliver(member, () => member.losses === losses && onRow(key, row))
    }
    return row.revision
  }

  /** Checks that the epoch increases whenever the members change. */
  #checkEpoch(roster: string): void {
    const record = readRoster(roster)
    if (record === undefined) throw new Error(`no roster: ${roster}`)
    const { epoch, members } = record
    const names = Object.keys(members).sort().join()
    const before = this.#membersOf.get(epoch)
    if (before !== undefined && before !== names) this.violations.push(`epoch ${epoch}: ${before}, then ${names}`)
    this.#membersOf.set(epoch, names)
  }

  /** Writes a value to a key, as another program could. An empty value stands for a deleted key. */
  junk(key: string, value: string): void {
    this.#revision += 1
    const row = { value, revision: this.#revision }
    this.store.set(`${this.losses}.${key}`, row)
    for (const { member, onRow } of this.#watchers) {
      this.#deliver(member, () => member.losses === this.losses && onRow(key, row))
    }
  }

  watch(watcher: Watcher): void {
    this.#watchers.push(watcher)
    this.#notifyAll(watcher)
  }

  #notifyAll({ member, onRow }: Watcher): void {
    const { losses } = member
    for (const [name, row] of this.store) {
      const [of = '', ...key] = name.split('.')
      if (Number(of) === losses) this.#deliver(member, () => member.losses === losses && onRow(key.join('.'), row))
    }
  }

  /** Loses the store with all its data. The new store counts revisions from 1 again. */
  lose(): void {
    this.store.clear()
    this.#membersOf.clear()
    this.#revision = 0
    this.losses += 1
    for (const watcher of this.#watchers) {
      const { member, onLost } = watcher
      this.at(this.random() * LOSS_NOTICED_MS + Math.max(0, member.cutOffUntil - this.now), member, () => {
        if (member.losses === this.losses) return
        member.losses = this.losses
        onLost()
        this.#notifyAll(watcher)
      })
    }
  }

  /** Returns how many members act on each of these resources. */
  servers(resources: readonly string[]): number[] {
    const acting = this.members.filter(({ isActing }) => isActing)
    return resources.map((resource) => acting.filter(({ serves }) => serves.has(resource)).length)
  }

  /** Delivers a row to a member after a delay, or never. A member that is cut off gets the row after it reconnects. */
  #deliver(member: Member, task: () => unknown): void {
    if (!this.isWell && this.random() < 0.02) return
    const delay = this.random() < 0.1 ? this.random() * 4_000 : this.random() * 50
    this.at(Math.max(delay, member.cutOffUntil - this.now), member, task)
  }

  /** Returns the owner of each resource that a member serves. Caches the owners, because hashing takes long. */
  #ownersIn({ fleet }: Member): Map<string, string | undefined> {
    const names = [...fleet.view.members.keys()]
    const known = this.#ownersAmong.get(names.join()) ?? new Map<string, string | undefined>()
    this.#ownersAmong.set(names.join(), known)
    for (const { serves } of this.members) {
      for (const resource of serves) if (!known.has(resource)) known.set(resource, ownerOf(resource, names))
    }
    return known
  }

  /** Checks that no two members act on a resource at the same time. */
  #checkOwners(): void {
    // Skip most events, because they do not change which member acts on what.
    if (!this.members.map((member) => member.hasChanged()).includes(true)) return
    const owners = new Map<string, string>()
    for (const member of this.members) {
      if (!member.isActing) continue
      for (const resource of member.serves) {
        const other = owners.get(resource)
        if (other !== undefined) this.violations.push(`${resource} at ${this.now}: ${other} and ${member.label}`)
        owners.set(resource, member.label)
      }
    }
    // Check settled members too, because a settled member may clear the topics of its share even without serving it.
    for (const member of this.members) {
      if (!member.isActing || !member.fleet.isSettled) continue
      const rightful = this.#ownersIn(member)
      for (const [resource, label] of owners) {
        if (label === member.label || rightful.get(resource) !== member.name) continue
        this.violations.push(`${resource} at ${this.now}: ${label}, not ${member.label}`)
      }
    }
  }
}

let count = 0

export class Member {
  readonly label: string
  readonly name: string
  readonly fleet: LeasedFleet
  /** The resources on which the member acts, until it has stopped. */
  serves: ReadonlySet<string> = new Set()
  pausedUntil = 0
  cutOffUntil = 0
  unfitUntil = 0
  killed = false
  /** How many losses of the store the member has detected. */
  losses: number
  readonly #simulation: Simulation
  #before: { readonly isActing: boolean; readonly serves: ReadonlySet<string>; readonly isSettled: boolean } | undefined

  /** @param ahead the number of writes by which the member's server is ahead; 0 for a correct server */
  constructor(
    simulation: Simulation,
    name: string,
    resources: readonly string[],
    leaseMs: number,
    speed: number,
    ahead = 0,
  ) {
    count += 1
    this.name = name
    this.label = `${name}#${count}`
    this.#simulation = simulation
    this.losses = simulation.losses
    const clock: Clock = {
      now: () => 1_700_000_000_000 + simulation.now * speed,
      elapsed: () => simulation.now * speed,
      after: (ms, task) => simulation.at(Math.max(0, ms) / speed, this, task),
    }
    this.fleet = new LeasedFleet({
      member: name,
      leaseMs,
      store: this.#store(ahead),
      resources: () => resources,
      onChange: () => {},
      isHealthy: () => this.unfitUntil <= simulation.now,
      clock,
      log: pino({ level: 'silent' }),
      mark: () => `${this.label}-${simulation.random()}`,
    })
    simulation.members.push(this)
    this.fleet.start(
      (serves) =>
        new Promise((resolve) => {
          simulation.at(simulation.random() * 300, this, () => {
            this.serves = serves
            resolve()
          })
        }),
    )
  }

  /** Returns whether `isActing`, `serves` or `isSettled` has changed since the previous call. */
  hasChanged(): boolean {
    const { isActing, serves, fleet } = this
    const isSettled = isActing && fleet.isSettled
    const before = this.#before
    if (isActing === before?.isActing && serves === before.serves && isSettled === before.isSettled) return false
    this.#before = { isActing, serves, isSettled }
    return true
  }

  get isActing(): boolean {
    return !this.killed && this.pausedUntil <= this.#simulation.now && this.fleet.mayAct()
  }

  #store(ahead: number): Store {
    const simulation = this.#simulation
    const write = (key: string, value: string, revision: number | undefined) => {
      const { losses } = this
      return this.#call(() => simulation.commit(key, value, revision, losses))
    }
    return {
      create: (key, value) => write(key, value, undefined),
      update: write,
      get: (key) => {
        const name = `${this.losses}.${key}`
        // Keep the old value, because another node may still answer with it.
        const old = simulation.store.get(name)
        return this.#call(() => (!simulation.isWell && simulation.random() < 0.2 ? old : simulation.store.get(name)))
      },
      startOver: () => {
        const { losses } = this
        return this.#call(() => {
          if (losses === simulation.losses) simulation.lose()
        })
      },
      watch: (onRow, onLost) => {
        const shifted: typeof onRow = (key, row) => onRow(key, { ...row, revision: row.revision + ahead })
        simulation.watch({ member: this, onRow: shifted, onLost })
      },
    }
  }

  #call<T>(run: () => T): Promise<T> {
    const simulation = this.#simulation
    const random = () => (simulation.isWell ? 0.5 : simulation.random())
    return new Promise((resolve, reject) => {
      const timeOut = simulation.at(CALL_TIMEOUT_MS, this, () => reject(new Error('timeout')))
      const cutOff = this.cutOffUntil > simulation.now
      const chance = random()
      // A call may be lost, may arrive after the caller has stopped waiting, or may be answered too late.
      if (cutOff && chance < 0.7) return
      const late = cutOff || chance < 0.05
      simulation.at(late ? random() * 8_000 : random() * 20, undefined, () => {
        let settle: () => void
        try {
          const result = run()
          settle = () => resolve(result)
        } catch (error) {
          settle = () => reject(error)
        }
        if (random() < 0.02) return
        simulation.at(random() * 20, this, () => {
          timeOut()
          settle()
        })
      })
    })
  }
}
