/** What a member tells of its fleet over HTTP: who belongs to it, and who has which hub. */
import type { FleetStatus } from './api/protocol.ts'
import type { FleetPayload } from './contract/schemas.ts'
import { SPEAKER } from './fleet/fleet.ts'
import { ownerOf } from './fleet/rendezvous.ts'

export interface ReportedFleet {
  readonly member: string
  /** Another object whenever members or hubs have changed. */
  readonly payload: FleetPayload
  /** By hub. */
  readonly owners: Readonly<Record<string, string>>
  mayAct(): boolean
}

export class FleetReport {
  readonly #fleet: ReportedFleet
  #known: { readonly payload: FleetPayload; readonly status: FleetStatus } | undefined

  constructor(fleet: ReportedFleet) {
    this.#fleet = fleet
  }

  /** The same object as long as nothing has changed. */
  readonly status = (): FleetStatus => {
    const { payload } = this.#fleet
    const acts = this.#fleet.mayAct()
    if (this.#known?.payload !== payload || this.#known.status.acts !== acts) {
      this.#known = { payload, status: this.#statusOf(payload, acts) }
    }
    return this.#known.status
  }

  /** Why this member does not serve a hub, for people; `undefined`: no member does. */
  readonly whyNotServed = (hub: string): string | undefined => {
    const { member, owners, acts } = this.status()
    const owner = Object.hasOwn(owners, hub) ? owners[hub] : undefined
    if (owner === undefined) return undefined
    if (owner !== member) return `Member ${owner} of the fleet has this hub: ask there, or send the command over MQTT.`
    return acts
      ? 'This member of the fleet is about to take over the hub.'
      : 'This member of the fleet has no lease at the moment.'
  }

  #statusOf(payload: FleetPayload, acts: boolean): FleetStatus {
    const { member, owners } = this.#fleet
    return { ...payload, member, acts, speaker: ownerOf(SPEAKER, Object.keys(payload.members)) ?? null, owners }
  }
}
