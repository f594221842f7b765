/** Opens and closes hubs as the fleet assigns them, and reports on the fleet. */
import * as v from 'valibot'
import { readJson } from '../base/read-json.ts'
import type { Config, Live } from '../config/options.ts'
import { camelKeys } from '../config/table.ts'
import { AVAILABILITY, FLEET, type FleetPayload } from '../contract/schemas.ts'
import type { Topics } from '../contract/topics.ts'
import type { BridgePort, ClusterOptions } from './cluster.ts'
import { type Fleet, LEADER, type Membership, ownerOf, staticFleet } from './fleet.ts'
import { fleetLeader } from './fleet-leader.ts'
import { LeasedFleet } from './leased.ts'
import { NatsStore } from './nats.ts'
import { HANDOVER_MS, type Rollouts } from './rollout/rollouts.ts'

/** Two leaders overwrite each other's list of members every few seconds. */
const CONTESTED_MS = 60_000
const MAX_NAMES = 8
const OTHERS =
  'another fleet uses the same base topic, and both execute each command: let all members use the same fleet.bucket in the same NATS cluster, or give each fleet its own mqtt.base_topic'

export function fleetMember(membership: Membership, options: ClusterOptions) {
  const { live, clock, topics, random, log } = options
  type FleetStatus = ReturnType<typeof report> & { readonly acts: boolean }
  let port: BridgePort | undefined
  let rollouts: Pick<Rollouts, 'finish' | 'stop'> | undefined
  let leader: ReturnType<typeof fleetLeader> | undefined
  let served: ReadonlySet<string> = new Set()
  let published = ''
  let configured: { readonly hubs: Config['hubs']; readonly resources: readonly string[] } | undefined
  let cached: { readonly hubs: Config['hubs']; readonly value: FleetStatus } | undefined
  const leads = () => served.has(LEADER)
  const { fleet, store } = join()
  const others = [...fleet.view.members.keys()].filter((name) => name !== topics.member)
  /** State topics of the other members of a static fleet; empty with leases, where members may change at any time. */
  const memberStates = others.map(topics.memberState)
  let peers: ReturnType<typeof followPeers> | undefined

  const receive = (topic: string, payload: string): void => peers?.(topic, payload)
  const self = {
    member: fleet.member,
    memberStates,
    status,
    ...detectOtherFleet(fleet, options, receive),
    mayAct: (): boolean => fleet.mayAct(),
    receive,

    get epoch(): number {
      return fleet.view.epoch
    },

    get isLeader(): boolean {
      return leads()
    },

    get payload(): FleetPayload {
      const { mode, epoch, members, count } = status()
      return { mode, epoch, members, count }
    },

    whyNotServed(hub: string): string | undefined {
      const { owners, acts } = status()
      const owner = Object.hasOwn(owners, hub) ? owners[hub] : undefined
      if (owner === undefined) return undefined
      if (owner !== fleet.member)
        return `Member ${owner} of the fleet serves this hub: send the command to that member, or over MQTT.`
      return acts
        ? 'This member of the fleet is about to take over the hub.'
        : 'This member of the fleet has no lease at the moment.'
    },

    inherits(hub: string, from: string): boolean {
      const { members } = fleet.view
      // A member that is unknown here may belong to another fleet with the same base topic.
      return fleet.isSettled && members.has(from) && ownerOf(hub, members.keys()) === fleet.member
    },

    start(given: BridgePort, led: Pick<Rollouts, 'finish' | 'stop'>): void {
      port = given
      rollouts = led
      const { linked, feed, hubs } = port
      if (feed !== undefined) peers = followPeers(topics, memberStates, hubs.all, live, feed)
      const link = { ...linked, clientId: `${linked.clientId}-speaker`, stateTopic: topics.availability }
      leader = fleetLeader({ link, base: topics.base, clock, log: log.child({ part: 'speaker' }), random })
      fleet.start(apply)
    },

    hubsChanged(): void {
      fleet.resourcesChanged()
      changed()
    },

    async [Symbol.asyncDispose](): Promise<void> {
      const isLeader = leads()
      const othersRemain = await fleet.leave()
      await leader?.stop('handover')
      // If another member leads after all, it publishes `online` again.
      if (!(othersRemain ?? !isLeader)) {
        port?.link.hold(topics.availability, 'offline')
        // Publish even if the link has seen `offline`: a leader may have published `online` since the read-back.
        port?.link.refresh([topics.availability])
      }
      await store?.[Symbol.asyncDispose]()
    },
  }
  return self

  function join(): { readonly fleet: Fleet; readonly store?: NatsStore } {
    if (membership.mode === 'static') return { fleet: staticFleet(membership.member, membership.count, resources) }
    const { nats: servers, lease, bucket } = camelKeys(live.value.fleet)
    const login = (renew: boolean) => (renew ? live.natsCredentials() : camelKeys(live.value.fleet))
    const part = log.child({ part: 'fleet' })
    const name = `hub2mqtt ${membership.member}`
    const store = new NatsStore({ servers, login, bucket, quietMs: lease, name, clock, log: part })
    const isHealthy = () => port?.link.status().protocol !== null
    const how = { member: membership.member, leaseMs: lease, store, resources, onChange: changed, isHealthy, clock }
    return { fleet: new LeasedFleet({ ...how, log: part }), store }
  }

  /** Returns the same object until something changes, because this function is called on each renewal of any lease. */
  function status(): FleetStatus {
    const { hubs } = live.value
    const acts = fleet.mayAct()
    const before = cached?.hubs === hubs && cached.value.epoch === fleet.view.epoch ? cached.value : undefined
    const value = before?.acts === acts ? before : { ...(before ?? report(Object.keys(hubs))), acts }
    cached = { hubs, value }
    return value
  }

  /** Returns the fleet as a member sees it, for the HTTP API. */
  function report(hubs: readonly string[]) {
    const { mode, epoch, members } = fleet.view
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
      ...{ member: fleet.member, speaker: ownerOf(LEADER, names) ?? null, owners: Object.fromEntries(owned) },
    }
  }

  function resources(): readonly string[] {
    const { hubs } = live.value
    if (configured?.hubs !== hubs) configured = { hubs, resources: [...Object.keys(hubs), LEADER] }
    return configured.resources
  }

  async function apply(serves: ReadonlySet<string>): Promise<void> {
    if (port === undefined || leader === undefined) return
    const { hubs, bridge, openHub } = port
    served = serves
    const leaving = [...hubs.all.keys()].filter((name) => !serves.has(name))
    const how = fleet.mayAct() ? 'handover' : 'lost'
    const writesMs = how === 'lost' ? 0 : HANDOVER_MS
    const closing = leads() ? [] : [stopLeading(how)]
    closing.push(...leaving.map((name) => hubs.close(name, writesMs)))
    for (const name of leaving) bridge.releaseHub(name)
    await Promise.all(closing)
    const coming = [...serves].filter((name) => name !== LEADER && !hubs.all.has(name))
    for (const name of coming) {
      const config = live.value.hubs[name]
      if (config !== undefined) openHub(name, config)
    }
    if (leads()) leader.start()
    const { epoch } = fleet.view
    log.info({ epoch, hubs: hubs.all.size, came: coming.length, left: leaving.length }, 'hubs of this member')
    published = ''
    changed()
  }

  /** Call this before hubs are closed: the commands that are aborted then must not fail the steps of a rollout. */
  async function stopLeading(how: 'handover' | 'lost'): Promise<void> {
    await Promise.all([leader?.stop(how), how === 'lost' ? rollouts?.stop() : rollouts?.finish()])
  }

  function changed(): void {
    const report = JSON.stringify([self.payload, leads(), fleet.isSettled])
    if (port === undefined || report === published) return
    published = report
    port.bridge.fleetChanged()
    port.onChange()
  }
}

/**
 * Passes the states of other members and their hubs to the live channel.
 * @param hubs the hubs that this member serves
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
    // Check the end of the topic first, which is fast and excludes most topics, because they belong to apps.
    const shown = topic.endsWith('/state') ? isShown(topic) : undefined
    if (shown !== undefined) feed.held(topic, shown && v.is(AVAILABILITY, payload) ? payload : null)
  }
}

/** Detects another fleet by its list of members: each list of this fleet has a member of the current epoch. */
function detectOtherFleet(
  fleet: Fleet,
  { topics, clock, log }: Pick<ClusterOptions, 'topics' | 'clock' | 'log'>,
  receive: (topic: string, payload: string) => void,
) {
  let detectedAt = Number.NEGATIVE_INFINITY
  const isContested = () => clock.elapsed() - detectedAt < CONTESTED_MS
  /** Call this with each retained message that another client has published. */
  const touched = (topic: string, payload: string) => {
    receive(topic, payload)
    if (topic !== topics.of('fleet', {}) || !fleet.isSettled) return
    const names = Object.keys(readJson(FLEET, payload)?.members ?? {})
    if (names.length === 0 || names.some((name) => fleet.view.members.has(name))) return
    if (!isContested()) log.error({ other_members: names.slice(0, MAX_NAMES) }, OTHERS)
    detectedAt = clock.elapsed()
  }
  return { touched, isContested }
}
