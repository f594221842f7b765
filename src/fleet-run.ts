/** A bridge as a member of a fleet: which hubs are opened and left, and what is told of it. */
import { camelKeys } from './base/camel-keys.ts'
import type { Clock } from './base/clock.ts'
import type { Bridge, FleetSide } from './bridge/bridge.ts'
import type { Config, HubConfig, Live } from './config/options.ts'
import type { FleetPayload } from './contract/schemas.ts'
import { type Fleet, SPEAKER } from './fleet/fleet.ts'
import type { FleetLeader } from './fleet/fleet-leader.ts'
import { LeasedFleet } from './fleet/leased.ts'
import type { Membership } from './fleet/membership.ts'
import { NatsStore } from './fleet/nats.ts'
import { ownerOf } from './fleet/rendezvous.ts'
import { StaticFleet } from './fleet/static.ts'
import type { Hubs } from './hubs.ts'
import type { Log } from './log/log.ts'

export interface FleetRunOptions {
  readonly membership: Membership
  readonly live: Live
  readonly clock: Clock
  readonly log: Log
}

/** What takes part when hubs come and go. */
export interface FleetParts {
  readonly hubs: Hubs
  readonly bridge: Bridge
  readonly speaker: FleetLeader
  readonly openHub: (name: string, config: HubConfig) => void
  readonly onChange: () => void
  /** Whether the broker can be reached. */
  readonly isConnected: () => boolean
  /** Nobody is left who could speak for the fleet. */
  readonly onSilence: () => void
}

/** What follows from the members and the configuration. */
interface Summary {
  readonly payload: FleetPayload
  readonly owners: Readonly<Record<string, string>>
}

export class FleetRun implements FleetSide, AsyncDisposable {
  readonly #options: FleetRunOptions
  readonly #store: NatsStore | undefined
  readonly #fleet: Fleet
  #parts: FleetParts | undefined
  #serves: ReadonlySet<string> = new Set()
  #told = ''
  #configured: { readonly hubs: Config['hubs']; readonly resources: readonly string[] } | undefined
  #summary: (Summary & { readonly hubs: Config['hubs'] }) | undefined

  constructor(options: FleetRunOptions) {
    const { membership, live, clock, log } = options
    const { member } = membership
    this.#options = options
    const resources = () => this.#resources()
    if (membership.mode === 'static') {
      this.#fleet = new StaticFleet({ ...membership, resources })
      return
    }
    const { nats: servers, username, password, bucket, lease } = camelKeys(live.value.fleet)
    const logger = log.child({ part: 'fleet' })
    this.#store = new NatsStore({
      servers,
      username,
      password,
      bucket,
      quietMs: lease,
      name: `hub2mqtt ${member}`,
      clock,
      log: logger,
    })
    const store = this.#store
    const onChange = () => this.#tell()
    const isFit = () => this.#parts?.isConnected() ?? true
    this.#fleet = new LeasedFleet({ member, leaseMs: lease, store, resources, onChange, isFit, clock, log: logger })
  }

  get member(): string {
    return this.#fleet.member
  }

  get epoch(): number {
    return this.#fleet.view.epoch
  }

  get isSpeaker(): boolean {
    return this.#serves.has(SPEAKER)
  }

  get payload(): FleetPayload {
    return this.#summarized().payload
  }

  /** By hub. */
  get owners(): Readonly<Record<string, string>> {
    return this.#summarized().owners
  }

  #summarized(): Summary {
    const { epoch } = this
    const { hubs } = this.#options.live.value
    // It follows from these two, and is asked for with each renewal of anybody's lease.
    if (this.#summary?.hubs !== hubs || this.#summary.payload.epoch !== epoch) {
      this.#summary = { hubs, ...this.#summarize(Object.keys(hubs)) }
    }
    return this.#summary
  }

  #summarize(hubs: readonly string[]): Summary {
    const { mode, epoch, members } = this.#fleet.view
    const names = [...members.keys()].sort()
    const owners = hubs.flatMap((hub) => {
      const owner = ownerOf(hub, names)
      return owner === undefined ? [] : [[hub, owner] as const]
    })
    const told = names.map((name) => {
      const since = members.get(name)?.since ?? null
      return [name, { since, hubs: owners.filter(([, owner]) => owner === name).length }] as const
    })
    const payload = { mode, epoch, members: Object.fromEntries(told), count: names.length }
    return { payload, owners: Object.fromEntries(owners) }
  }

  #resources(): readonly string[] {
    const { hubs } = this.#options.live.value
    if (this.#configured?.hubs !== hubs) this.#configured = { hubs, resources: [...Object.keys(hubs), SPEAKER] }
    return this.#configured.resources
  }

  /** Whether hubs may be asked, and their topics written, at this moment. */
  mayAct(): boolean {
    return this.#fleet.mayAct()
  }

  start(parts: FleetParts): void {
    this.#parts = parts
    this.#fleet.start((serves) => this.#apply(serves))
  }

  /** The hubs that are configured have changed. */
  hubsChanged(): void {
    this.#fleet.resourcesChanged()
    this.#tell()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { isSpeaker } = this
    const areOthersLeft = await this.#fleet.leave()
    await this.#parts?.speaker.stop('handover')
    // Should somebody speak after all, that one contradicts.
    if (!(areOthersLeft ?? !isSpeaker)) this.#parts?.onSilence()
    await this.#store?.[Symbol.asyncDispose]()
  }

  async #apply(serves: ReadonlySet<string>): Promise<void> {
    const parts = this.#parts
    if (parts === undefined) return
    const { hubs, bridge, speaker, openHub } = parts
    this.#serves = serves
    const leaving = [...hubs.all.keys()].filter((name) => !serves.has(name))
    const closing = leaving.map((name) => hubs.close(name))
    for (const name of leaving) bridge.releaseHub(name)
    if (!this.isSpeaker) closing.push(speaker.stop(this.mayAct() ? 'handover' : 'lost'))
    await Promise.all(closing)
    const configured = this.#options.live.value.hubs
    const coming = [...serves].filter((name) => !hubs.all.has(name))
    for (const name of coming) {
      const config = configured[name]
      if (config !== undefined) openHub(name, config)
    }
    if (this.isSpeaker) speaker.start()
    const { epoch } = this
    this.#options.log.info(
      { epoch, hubs: hubs.all.size, came: coming.length, left: leaving.length },
      'hubs of this member',
    )
    this.#told = ''
    this.#tell()
  }

  #tell(): void {
    const parts = this.#parts
    const news = JSON.stringify([this.payload, this.isSpeaker])
    if (parts === undefined || news === this.#told) return
    this.#told = news
    parts.bridge.fleetChanged()
    parts.onChange()
  }
}
