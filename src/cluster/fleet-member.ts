/** A member of a fleet: opens and leaves hubs as the fleet assigns them, and reports on the fleet. */
import type { Logger } from 'pino'
import * as v from 'valibot'
import type { FleetSide } from '../bridge/bridge-options.ts'
import type { Config, Live } from '../config/options.ts'
import { camelKeys } from '../config/table.ts'
import { AVAILABILITY, type FleetPayload } from '../contract/schemas.ts'
import type { Topics } from '../contract/topics.ts'
import type { BridgePort, ClusterOptions } from './cluster.ts'
import { type Fleet, LEADER, type Membership, ownerOf, staticFleet } from './fleet.ts'
import { FleetLeader } from './fleet-leader.ts'
import { LeasedFleet } from './leased.ts'
import { NatsStore } from './nats.ts'

/** The fleet as a member sees it, for the HTTP API. */
interface FleetStatus extends FleetPayload {
  member: string
  /** Whether it may act, because its lease is valid. */
  acts: boolean
  speaker: string | null
  /** Hub → the member that owns it. */
  owners: Record<string, string>
}

export class FleetMember implements FleetSide, AsyncDisposable {
  /** State topics of the other members that are known from the start; members with leases come and go. */
  readonly memberStates: readonly string[]
  /** Handles a message that the broker holds, or that another client has published. */
  heard: (topic: string, payload: string) => void = () => {}
  readonly #options: ClusterOptions
  readonly #live: Live
  readonly #log: Logger
  readonly #store: NatsStore | undefined
  readonly #fleet: Fleet
  #port: BridgePort | undefined
  #leader: FleetLeader | undefined
  #serves: ReadonlySet<string> = new Set()
  #published = ''
  #configured: { readonly hubs: Config['hubs']; readonly resources: readonly string[] } | undefined
  #status: { readonly hubs: Config['hubs']; readonly value: FleetStatus } | undefined

  constructor(membership: Membership, options: ClusterOptions) {
    const { live, clock, topics } = options
    this.#options = options
    this.#live = live
    this.#log = options.log
    const resources = () => this.#resources()
    if (membership.mode === 'static') this.#fleet = staticFleet(membership.index, membership.count, resources)
    else {
      const { member } = membership
      const { nats: servers, lease, username, password, bucket } = camelKeys(live.value.fleet)
      const log = options.log.child({ part: 'fleet' })
      const name = `hub2mqtt ${member}`
      const store = new NatsStore({ servers, username, password, bucket, quietMs: lease, name, clock, log })
      const onChange = () => this.#changed()
      const isFit = () => this.#port?.link.status().protocol !== null
      this.#store = store
      this.#fleet = new LeasedFleet({ member, leaseMs: lease, store, resources, onChange, isFit, clock, log })
    }
    const others = [...this.#fleet.view.members.keys()].filter((name) => name !== topics.member)
    this.memberStates = others.map(topics.memberState)
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
    const { mode, epoch, members, count } = this.status()
    return { mode, epoch, members, count }
  }

  /** Returns the same object until something changes: it is called at each renewal of any lease. */
  status(): FleetStatus {
    const { hubs } = this.#live.value
    const acts = this.mayAct()
    const known =
      this.#status?.hubs === hubs && this.#status.value.epoch === this.epoch ? this.#status.value : undefined
    const value = known?.acts === acts ? known : { ...(known ?? this.#report(Object.keys(hubs))), acts }
    this.#status = { hubs, value }
    return value
  }

  #report(hubs: readonly string[]): Omit<FleetStatus, 'acts'> {
    const { member } = this
    const { mode, epoch, members } = this.#fleet.view
    const names = [...members.keys()].sort()
    const owned = hubs.flatMap((hub): [string, string][] => {
      const owner = ownerOf(hub, names)
      return owner === undefined ? [] : [[hub, owner]]
    })
    const about = (name: string) => ({
      since: members.get(name)?.since ?? null,
      hubs: owned.filter(([, owner]) => owner === name).length,
    })
    return {
      ...{ mode, epoch, members: Object.fromEntries(names.map((name) => [name, about(name)])), count: names.length },
      ...{ member, speaker: ownerOf(LEADER, names) ?? null, owners: Object.fromEntries(owned) },
    }
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

  /** Whether the member may send requests to hubs and write their topics now. */
  readonly mayAct = (): boolean => this.#fleet.mayAct()

  start(port: BridgePort): void {
    const { topics, clock, random } = this.#options
    const { linked } = port
    this.#port = port
    if (port.feed !== undefined) {
      this.heard = followPeers(topics, this.memberStates, port.hubs.all, this.#live, port.feed)
    }
    const link = { ...linked, clientId: `${linked.clientId}-speaker`, stateTopic: topics.availability }
    this.#leader = new FleetLeader({ link, clock, log: this.#log.child({ part: 'speaker' }), random })
    this.#fleet.start((serves) => this.#apply(serves))
  }

  /** Call it when the configured hubs have changed. */
  hubsChanged(): void {
    this.#fleet.resourcesChanged()
    this.#changed()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { isLeader } = this
    const areOthersLeft = await this.#fleet.leave()
    await this.#leader?.stop('handover')
    // If another member leads after all, it publishes `online` again.
    if (!(areOthersLeft ?? !isLeader)) this.#publishOffline()
    await this.#store?.[Symbol.asyncDispose]()
  }

  /** No member is left that could publish for the fleet. */
  #publishOffline(): void {
    const { availability } = this.#options.topics
    this.#port?.link.hold(availability, 'offline')
    // The broker may have received another state from a leader since the read-back.
    this.#port?.link.refresh([availability])
  }

  #resources(): readonly string[] {
    const { hubs } = this.#live.value
    if (this.#configured?.hubs !== hubs) this.#configured = { hubs, resources: [...Object.keys(hubs), LEADER] }
    return this.#configured.resources
  }

  async #apply(serves: ReadonlySet<string>): Promise<void> {
    const [port, leader] = [this.#port, this.#leader]
    if (port === undefined || leader === undefined) return
    const { hubs, bridge, openHub } = port
    this.#serves = serves
    const leaving = [...hubs.all.keys()].filter((name) => !serves.has(name))
    const closing = leaving.map((name) => hubs.close(name))
    for (const name of leaving) bridge.releaseHub(name)
    if (!this.isLeader) closing.push(leader.stop(this.mayAct() ? 'handover' : 'lost'))
    await Promise.all(closing)
    const configured = this.#live.value.hubs
    const coming = [...serves].filter((name) => !hubs.all.has(name))
    for (const name of coming) {
      const config = configured[name]
      if (config !== undefined) openHub(name, config)
    }
    if (this.isLeader) leader.start()
    const { epoch } = this
    this.#log.info({ epoch, hubs: hubs.all.size, came: coming.length, left: leaving.length }, 'hubs of this member')
    this.#published = ''
    this.#changed()
  }

  #changed(): void {
    const news = JSON.stringify([this.payload, this.isLeader])
    if (this.#port === undefined || news === this.#published) return
    this.#published = news
    this.#port.bridge.fleetChanged()
    this.#port.onChange()
  }
}

/**
 * Passes the publishes of other members about themselves and their hubs to the live channel. Returns the handler for
 * messages that the broker holds, or that another client has published.
 *
 * @param memberStates topics of other members' states, if they are read
 * @param hubs those that this member serves
 */
export function followPeers(
  topics: Topics,
  memberStates: readonly string[],
  hubs: { has(name: string): boolean },
  live: Live,
  feed: { held(topic: string, payload: string | null): void },
): (topic: string, payload: string) => void {
  const ofMembers = new Set([topics.availability, ...memberStates])
  const isShown = (topic: string) => {
    if (ofMembers.has(topic)) return true
    const own = topics.parse(topic)
    if (own?.name !== 'hubState' || own.owner.kind !== 'hub' || hubs.has(own.owner.hub)) return undefined
    return Object.hasOwn(live.value.hubs, own.owner.hub)
  }
  return (topic, payload) => {
    // Most topics are those of apps.
    const shown = topic.endsWith('/state') ? isShown(topic) : undefined
    if (shown !== undefined) feed.held(topic, shown && v.is(AVAILABILITY, payload) ? payload : null)
  }
}
