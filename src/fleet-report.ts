/** What a member tells of its fleet over HTTP: who belongs to it, and who has which hub. */
import type { FleetStatus } from './api/protocol.ts'
import type { Live } from './config/options.ts'
import type { FleetPayload } from './contract/schemas.ts'
import { SPEAKER } from './fleet/fleet.ts'
import { ownerOf } from './fleet/rendezvous.ts'

export interface FleetReportOptions {
  readonly fleet: {
    readonly member: string
    /** Another object whenever members or hubs have changed. */
    readonly payload: FleetPayload
    mayAct(): boolean
  }
  readonly live: Live
}

export class FleetReport {
  readonly #options: FleetReportOptions
  #known: { readonly payload: FleetPayload; readonly status: FleetStatus } | undefined

  constructor(options: FleetReportOptions) {
    this.#options = options
  }

  /** The same object as long as nothing has changed. */
  readonly status = (): FleetStatus => {
    const { fleet } = this.#options
    const { payload } = fleet
    const acts = fleet.mayAct()
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
    const { fleet, live } = this.#options
    const names = Object.keys(payload.members)
    const owners = Object.keys(live.value.hubs).flatMap((hub) => {
      const owner = ownerOf(hub, names)
      return owner === undefined ? [] : [[hub, owner] as const]
    })
    return {
      ...payload,
      member: fleet.member,
      acts,
      speaker: ownerOf(SPEAKER, names) ?? null,
      owners: Object.fromEntries(owners),
    }
  }
}
