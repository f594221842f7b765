/** A bridge as a member of a fleet: which hubs are opened and left, and what is told of it. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Bridge } from '../bridge/bridge.ts'
import type { FleetSide } from '../bridge/bridge-options.ts'
import { camelKeys } from '../config/camel-keys.ts'
import type { Hubs } from '../config/open-hubs.ts'
import type { Config, HubConfig, Live } from '../config/options.ts'
import type { FleetPayload } from '../contract/schemas.ts'
import type { Topics } from '../contract/topics.ts'
import type { MqttLink } from '../mqtt/link.ts'
import type { LinkOptions } from '../mqtt/types.ts'
import { type Fleet, LEADER } from './fleet.ts'
import { FleetLeader } from './fleet-leader.ts'
import { LeasedFleet } from './leased.ts'
import type { Membership } from './membership.ts'
import { NatsStore } from './nats.ts'
import { ownerOf } from './rendezvous.ts'
import { StaticFleet } from './static.ts'

/** What takes part when hubs come and go. */
interface FleetParts {
  readonly topics: Topics
  readonly hubs: Hubs
  readonly link: MqttLink
  readonly bridge: Bridge
  readonly openHub: (name: string, config: HubConfig) => void
  readonly onChange: () => void
}

/** What a member knows of the fleet. */
interface FleetStatus extends FleetPayload {
  member: string
  /** Whether it may act: its lease holds. */
  acts: boolean
  speaker: string | null
  /** Hub → the member that it belongs to. */
  owners: Record<string, string>
}

/** What follows from the members and the configuration. */
interface Summary {
  readonly payload: FleetPayload
  readonly owners: Record<string, string>
}

export class FleetMember implements FleetSide, AsyncDisposable {
  readonly #live: Live
  readonly #clock: Clock
  readonly #log: Logger
  readonly #store: NatsStore | undefined
  readonly #fleet: Fleet
  #parts: FleetParts | undefined
  #speaker: FleetLeader | undefined
  #serves: ReadonlySet<string> = new Set()
  #told = ''
  #configured: { readonly hubs: Config['hubs']; readonly resources: readonly string[] } | undefined
  #summary: (Summary & { readonly hubs: Config['hubs'] }) | undefined
  #status: FleetStatus | undefined

  constructor(membership: Membership, live: Live, clock: Clock, log: Logger) {
    const { member } = membership
    this.#live = live
    this.#clock = clock
    this.#log = log
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
    const isFit = () => this.#parts?.link.status().protocol !== null
    this.#fleet = new LeasedFleet({ member, leaseMs: lease, store, resources, onChange, isFit, clock, log: logger })
  }

  get member(): string {
    return this.#fleet.member
  }

  get epoch(): number {
    return this.#fleet.view.epoch
  }

  get isLeader(): boolean {
    return this.#serves.has(LEADER)
  }

  get payload(): FleetPayload {
    return this.#summarized().payload
  }

  /** What is told of it over HTTP. The same object as long as nothing has changed. */
  status(): FleetStatus {
    const { payload, owners } = this.#summarized()
    const acts = this.mayAct()
    if (this.#status?.owners !== owners || this.#status.acts !== acts) {
      const speaker = ownerOf(LEADER, Object.keys(payload.members)) ?? null
      this.#status = { ...payload, member: this.member, acts, speaker, owners }
    }
    return this.#status
  }

  whyNotServed(hub: string): string | undefined {
    const { member, owners, acts } = this.status()
    const owner = Object.hasOwn(owners, hub) ? owners[hub] : undefined
    if (owner === undefined) return undefined
    if (owner !== member) return `Member ${owner} of the fleet has this hub: ask there, or send the command over MQTT.`
    return acts
      ? 'This member of the fleet is about to take over the hub.'
      : 'This member of the fleet has no lease at the moment.'
  }

  /**
   * Where other members tell their states. Those that share by number are known from the start; those that share by leases
   * come and go, and the fleet tells who is there.
   */
  othersStates(topics: Topics): string[] {
    const names = Object.keys(this.payload.members).filter((name) => name !== topics.member)
    return names.map(topics.memberState)
  }

  #summarized(): Summary {
    const { epoch } = this
    const { hubs } = this.#live.value
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
    const { hubs } = this.#live.value
    if (this.#configured?.hubs !== hubs) this.#configured = { hubs, resources: [...Object.keys(hubs), LEADER] }
    return this.#configured.resources
  }

  /** Whether hubs may be asked, and their topics written, at this moment. */
  mayAct(): boolean {
    return this.#fleet.mayAct()
  }

  /** @param link how `parts.link` is connected; the speaker for all has a connection of its own, made in the same way */
  start(parts: FleetParts, link: LinkOptions, random: () => number): void {
    this.#parts = parts
    const speaking = { ...link, clientId: `${link.clientId}-speaker`, stateTopic: parts.topics.availability }
    const log = this.#log.child({ part: 'speaker' })
    this.#speaker = new FleetLeader({ link: speaking, clock: this.#clock, log, random })
    this.#fleet.start((serves) => this.#apply(serves))
  }

  /** The hubs that are configured have changed. */
  hubsChanged(): void {
    this.#fleet.resourcesChanged()
    this.#tell()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { isLeader } = this
    const areOthersLeft = await this.#fleet.leave()
    await this.#speaker?.stop('handover')
    // Should somebody speak after all, that one contradicts.
    if (!(areOthersLeft ?? !isLeader)) this.#saySilence()
    await this.#store?.[Symbol.asyncDispose]()
  }

  /** Nobody is left who could speak for the fleet. */
  #saySilence(): void {
    if (this.#parts === undefined) return
    const { link, topics } = this.#parts
    link.hold(topics.availability, 'offline')
    // The broker may have got something else from a speaker since that was read.
    link.refresh([topics.availability])
  }

  async #apply(serves: ReadonlySet<string>): Promise<void> {
    const parts = this.#parts
    const speaker = this.#speaker
    if (parts === undefined || speaker === undefined) return
    const { hubs, bridge, openHub } = parts
    this.#serves = serves
    const leaving = [...hubs.all.keys()].filter((name) => !serves.has(name))
    const closing = leaving.map((name) => hubs.close(name))
    for (const name of leaving) bridge.releaseHub(name)
    if (!this.isLeader) closing.push(speaker.stop(this.mayAct() ? 'handover' : 'lost'))
    await Promise.all(closing)
    const configured = this.#live.value.hubs
    const coming = [...serves].filter((name) => !hubs.all.has(name))
    for (const name of coming) {
      const config = configured[name]
      if (config !== undefined) openHub(name, config)
    }
    if (this.isLeader) speaker.start()
    const { epoch } = this
    this.#log.info({ epoch, hubs: hubs.all.size, came: coming.length, left: leaving.length }, 'hubs of this member')
    this.#told = ''
    this.#tell()
  }

  #tell(): void {
    const parts = this.#parts
    const news = JSON.stringify([this.payload, this.isLeader])
    if (parts === undefined || news === this.#told) return
    this.#told = news
    parts.bridge.fleetChanged()
    parts.onChange()
  }
}
