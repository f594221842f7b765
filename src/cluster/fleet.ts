/** How the bridges of a fleet share hubs: by their configured number, as here, or by leases. */
import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { memberNameOf } from '../base/member-name.ts'
import type { Config } from '../config/options.ts'

/** An additional resource: its owner leads the fleet, publishes for all, and answers commands that address no hub. */
export const LEADER = '$speaker'

export interface FleetView {
  readonly mode: 'static' | 'leases'
  /** Increases whenever the members change. */
  readonly epoch: number
  /** Member → start of its membership (ISO 8601; `null` if unknown). */
  readonly members: ReadonlyMap<string, { readonly since: string | null }>
}

export interface Fleet {
  readonly member: string
  readonly view: FleetView
  /**
   * Starts. Calls `apply` with everything that this member serves, hubs and `LEADER`, at the start and at each change,
   * one call at a time. `apply` resolves when everything else has stopped.
   */
  start(apply: (serves: ReadonlySet<string>) => Promise<void>): void
  /** Call it when the configured resources have changed. */
  resourcesChanged(): void
  /** Whether this member may send requests to hubs and publish now. Cheap: it is called before each of them. */
  mayAct(): boolean
  /** Stops serving, and leaves the fleet. Returns whether members that can lead remain; `undefined`: unknown. */
  leave(): Promise<boolean | undefined>
}

/** `index` starts at 0, the name at 1. */
const shardName = (index: number) => `shard-${index + 1}`

/** Members with configured numbers: each serves its share, and no other member takes it over. */
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
    leave: async () => ownerOf(LEADER, names) !== member,
  }
}

/** How the configuration makes this bridge a member of a fleet. */
export type Membership =
  | { readonly mode: 'static'; readonly member: string; readonly count: number }
  | { readonly mode: 'leases'; readonly member: string }

/** `undefined`: no fleet. */
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

/** Six bytes fit in an exact integer. */
const BYTES = 6

/**
 * The member that owns a resource, by rendezvous hashing: each member gets a number for it and the highest wins. When a
 * member joins or leaves, only its own share moves. `undefined` if there are no members.
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

/** The resources that belong to a member. */
export function shareOf(member: string, resources: Iterable<string>, members: readonly string[]): Set<string> {
  return new Set([...resources].filter((resource) => ownerOf(resource, members) === member))
}
