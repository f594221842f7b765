/** What the bridge is given. */
import type { Clock } from '../base/clock.ts'
import type { Live } from '../config/options.ts'
import type { RolloutControl } from '../contract/command.ts'
import type { FleetPayload } from '../contract/schemas.ts'
import type { Topics } from '../contract/topics.ts'
import type { Log } from '../observability/log.ts'
import type { OwnershipState } from './ownership.ts'
import type { DispatchHub } from './requests.ts'

export interface BridgedHub extends DispatchHub {
  readonly url: string
}

/** What a member of a fleet has to know of it. */
export interface FleetSide {
  readonly member: string
  /** Whether this member speaks for all. */
  readonly isSpeaker: boolean
  readonly epoch: number
  /** For the broker. */
  readonly payload: FleetPayload
  /** Why this member does not serve a hub, for people; `undefined`: no member does. */
  whyNotServed(hub: string): string | undefined
}

export interface BridgeOptions {
  readonly topics: Topics
  /** Changes as hubs are added and removed; `addHub` and `removeHub` tell. */
  readonly hubs: ReadonlyMap<string, BridgedHub>
  /** The configuration that holds now; `reconfigured` tells of another one. */
  readonly live: Live
  readonly rollouts: RolloutControl & OwnershipState['rollouts']
  /** Where several bridges share the hubs of one configuration; `fleetChanged` tells of news. */
  readonly fleet?: FleetSide | undefined
  readonly version: string
  /** ISO 8601. */
  readonly startedAt: string
  readonly clock: Clock
  /** Numbers from 0 to under 1. */
  readonly random: () => number
  readonly log: Log
}
