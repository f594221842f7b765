/** How the bridges of a fleet share hubs: by their configured number, as here, or by leases. */
import { ownerOf, shareOf } from './rendezvous.ts'

/** The resource besides the hubs: its owner leads the fleet, publishes for all, and answers what is for no hub. */
export const LEADER = '$speaker'

export interface FleetView {
  readonly mode: 'static' | 'leases'
  /** Grows whenever the members change. */
  readonly epoch: number
  /** By name: since when (ISO 8601; `null` where that is not known). */
  readonly members: ReadonlyMap<string, { readonly since: string | null }>
}

export interface Fleet {
  /** This member's name. */
  readonly member: string
  readonly view: FleetView
  /**
   * Begins. `apply` is called with all that this member serves from then on, hubs and `LEADER`, whenever that changes,
   * one call at a time; it resolves when everything else has stopped.
   */
  start(apply: (serves: ReadonlySet<string>) => Promise<void>): void
  /** Which resources are configured has changed. */
  resourcesChanged(): void
  /** Whether this member may ask hubs and publish at this moment. Cheap: it is asked before each request and publish. */
  mayAct(): boolean
  /** Stops what it serves, and ends. Returns whether members are left that can lead; `undefined`: that is not known. */
  leave(): Promise<boolean | undefined>
}

/** `index` from 0; people count from 1. */
export const shardName = (index: number) => `shard-${index + 1}`

/** Members with configured numbers: each serves its share, and no other member takes it over. */
export function staticFleet(index: number, count: number, resources: () => readonly string[]): Fleet {
  const member = shardName(index)
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
