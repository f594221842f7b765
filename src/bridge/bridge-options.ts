import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { RolloutControl } from '../contract/command.ts'
import type { LogLevel } from '../contract/log-levels.ts'
import type { Rules } from '../contract/permissions.ts'
import type { FleetPayload } from '../contract/schemas.ts'
import type { Topics } from '../contract/topics.ts'
import type { Change } from '../hub/app.ts'
import type { Message } from '../mqtt/types.ts'
import type { Guardian } from './guarding.ts'
import type { OwnershipState } from './ownership.ts'
import type { DispatchHub } from './requests.ts'

export interface BridgeSettings extends Rules {
  readonly commands: Rules['commands'] & { readonly response_topics: readonly string[] }
  readonly discovery: {
    readonly format: 'device' | 'component' | 'off'
    readonly prefix: string
    readonly birth_topic: string
  }
  /** The published settings, keyed by app id and then by the name of the setting. */
  readonly settings: { readonly publish: ReadonlyMap<string, ReadonlyMap<string, unknown>> }
  readonly hubs: Readonly<Record<string, unknown>>
  readonly log: { readonly level: LogLevel }
}

export interface BridgedHub extends DispatchHub {
  readonly url: string
}

export interface FleetSide {
  readonly member: string
  /** The leader publishes for the fleet, and answers commands that address no hub. */
  readonly isLeader: boolean
  readonly epoch: number
  readonly payload: FleetPayload
  /** Returns whether another fleet uses the same base topic. */
  isContested(): boolean
  /** Returns why this member does not serve a hub; `undefined` if no member of the fleet serves the hub. */
  whyNotServed(hub: string): string | undefined
  /**
   * Returns whether this member clears the topics of a removed hub. Only the hub's owner does.
   * @param from the last member that served the hub; this member if its own configuration had the hub
   */
  inherits(hub: string, from: string): boolean
}

export interface Discovery {
  /** Called when this bridge becomes active, after the retained messages have been read. */
  connected(): void
  /** Called after each sweep. */
  swept(): void
  receive(message: Pick<Message, 'payload' | 'retain'>): void
  touched(topic: string, payload: string): void
  /** Returns whether a device is published in either format, or is queued for publication or removal. */
  has(prefix: string, objectId: string): boolean
  appsChanged(hub: string, changes: readonly Change[]): void
  /** Returns whether discovery messages may now be obsolete. */
  hubChanged(hub: string): boolean
  hubAdded(): void
  /** Called when another member has taken over the hub. Its discovery messages stay on the broker. */
  hubReleased(hub: string): void
  hubRemoved(hub: string): void
  /** Called when another fleet member serves the hub with this id: perhaps a hub that was removed here and renamed. */
  hubTaken(hubId: string): void
  reconfigured(): void
  stop(): void
}

export interface BridgeOptions {
  readonly topics: Topics
  readonly rollouts: RolloutControl &
    OwnershipState['rollouts'] & {
      /** Stops sending steps of rollouts, and records the answers that arrive before `commands` resolves. */
      finish(commands: Promise<void>): Promise<void>
    }
  /** Set if several bridges share the hubs of one configuration. Call `fleetChanged` after each change. */
  readonly fleet?: FleetSide | undefined
  /** The hubs that this bridge serves. Call `addHub`, `removeHub` or `releaseHub` after each change. */
  readonly hubs: ReadonlyMap<string, BridgedHub>
  /** The current configuration. Call `reconfigured` after each change. */
  readonly live: {
    readonly value: BridgeSettings
    /** Whether the hubs' folder is empty, so that hubs may be missing; default: `false`. */
    readonly awaitsHubs?: boolean
  }
  readonly guardian: Guardian
  /** `undefined` if discovery is turned off. The bridge then only clears old discovery messages. */
  readonly homeAssistant: Discovery | undefined
  readonly version: string
  /** The start time of the bridge, in ISO 8601 format. */
  readonly startedAt: string
  readonly clock: Clock
  readonly log: Logger & { readonly audit: Logger; setLevel(level: LogLevel): void }
}
