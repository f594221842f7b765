/** How this bridge belongs to a fleet, as configuration says. */
import { hostname } from 'node:os'
import { memberNameOf } from '../base/member-name.ts'
import type { Config } from '../config/options.ts'
import { shardName } from './fleet.ts'

export type Membership =
  | { readonly mode: 'static'; readonly member: string; readonly index: number; readonly count: number }
  | { readonly mode: 'leases'; readonly member: string }

/** `undefined`: it is alone. */
export function membershipOf({ fleet }: Pick<Config, 'fleet'>): Membership | undefined {
  const { shard, index, count, nats, member } = fleet
  if (nats.length > 0) return { mode: 'leases', member: member ?? memberNameOf(hostname()) }
  if (shard !== null) {
    const [number = 1, of = 1] = shard.split('/').map(Number)
    return { mode: 'static', member: shardName(number - 1), index: number - 1, count: of }
  }
  if (index === null || count === null) return undefined
  return { mode: 'static', member: shardName(index), index, count }
}
