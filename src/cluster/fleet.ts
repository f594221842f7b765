/** Distributes hubs among the bridges of a fleet by configured numbers. `leased.ts` distributes hubs by leases. */
import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { memberNameOf } from '../base/member-name.ts'
import type { Config } from '../config/options.ts'

/** An additional resource. Its owner publishes the state of the whole fleet, and answers commands without a hub. */
export const LEADER = '$speaker'

export interface FleetView {
  readonly mode: 'static' | 'leases'
  readonly epoch: number
  /** The members by name. `since` is when the membership began, in ISO 8601 format; `null` if unknown. */
  readonly members: ReadonlyMap<string, { readonly since: string | null }>
}

export interface Fleet {
  readonly member: string
  readonly view: FleetView
  /**
   * Calls `apply` with the resources that this member serves (hubs and possibly `LEADER`), now and after each change,
   * one call at a time. `apply` must resolve when this member has stopped serving all other resources.
   */
  start(apply: (serves: ReadonlySet<string>) => Promise<void>): void
  resourcesChanged(): void
  /** Returns whether this member may send requests to hubs and publish. Called before each request and publish. */
  mayAct(): boolean
  /** Whether this member acts, and no other member can still be serving this member's resources in this epoch. */
  readonly isSettled: boolean
  /** Stops serving. Resolves to whether a member that can lead remains; `undefined` if unknown. */
  leave(): Promise<boolean | undefined>
}

/** Returns the name of a numbered member. The number in the name starts at 1, `index` at 0. */
const shardName = (index: number) => `shard-${index + 1}`

/** Distributes hubs by number. If a member fails, no other member takes over its share. */
export function staticFleet(member: string, count: number, resources: () => readonly string[]): Fleet {
  const names = Array.from({ length: count }, (_, i) => shardName(i))
  let apply: (serves: ReadonlySet<string>) => Promise<void> = async () => {}
  const resourcesChanged = () => void apply(shareOf(member, resources(), names))
  return {
    member,
    view: { mode: 'static', epoch: count, members: new Map(names.map((name) => [name, { since: null }])) },
    start(onShare) {
      apply = onShare
      resourcesChanged()
    },
    resourcesChanged,
    mayAct: () => true,
    isSettled: true,
    leave: async () => ownerOf(LEADER, names) !== member,
  }
}

export type Membership =
  | { readonly mode: 'static'; readonly member: string; readonly count: number }
  | { readonly mode: 'leases'; readonly member: string }

/** Returns `undefined` if no fleet is configured. */
export function membershipOf({ fleet }: Pick<Config, 'fleet'>): Membership | undefined {
  const { shard, index, count, nats, member } = fleet
  if (nats.length > 0) return { mode: 'leases', member: member ?? memberNameOf(hostname()) }
  if (shard !== null) {
    const [number = 1, of = 1] = shard.split('/').map(Number)
    return { mode: 'static', member: shardName(number - 1), count: of }
  }
  if (index === null || count === null) return undefined
  return { mode: 'static', member: shardName(index), count }
}

/** Number of bytes that are used from each hash. Six bytes fit in a safe integer. */
const BYTES = 6

/**
 * Returns the member that owns a resource, by rendezvous hashing. For each resource, each member gets a number, and the
 * member with the highest number owns the resource. When a member joins or leaves, only its own share moves.
 * `undefined` if there are no members.
 */
export function ownerOf(resource: string, members: Iterable<string>): string | undefined {
  let owner: string | undefined
  let highest = -1
  for (const member of members) {
    const drawn = createHash('sha256').update(`${member}\n${resource}`).digest().readUIntBE(0, BYTES)
    if (drawn < highest || (drawn === highest && owner !== undefined && owner < member)) continue
    owner = member
    highest = drawn
  }
  return owner
}

export function shareOf(member: string, resources: Iterable<string>, members: readonly string[]): Set<string> {
  return new Set([...resources].filter((resource) => ownerOf(resource, members) === member))
}
