/**
 * Whose a retained topic is, and what becomes of it if nobody holds anything there: answered here for the sweep, for
 * repairs and for `hub2mqtt cleanup`.
 */
import type { HeldElsewhere, OwnerOf } from '../contract/publications.ts'
import type { OwnTopic, Topics } from '../contract/topics.ts'
import type { HubStatus } from '../hub/status.ts'
import { ORIGIN } from './home-assistant/device.ts'
import { type DiscoveryTopic, parseDiscoveryTopic } from './home-assistant/discovery-topics.ts'
import { originOf } from './home-assistant/messages.ts'

/** `peer`: of another bridge with the same base topic. `wait`: it is not known yet whether to keep or to clear it. */
export type Ownership =
  | {
      readonly whose: 'ours'
      readonly verdict: 'keep' | 'clear' | 'wait'
      /** The part that publishes there. */
      readonly writer: 'table' | HeldElsewhere<unknown>['by']
    }
  | { readonly whose: 'peer' | 'foreign'; readonly verdict: 'keep'; readonly writer?: never }

interface Names {
  has(name: string): boolean
}

interface ServedHub {
  readonly status: Pick<HubStatus, 'id' | 'reason'>
  readonly apps: { readonly complete: boolean }
}

/** What the answer follows from, besides what changes with each connection. */
export interface OwnershipFacts {
  readonly topics: Topics
  /** Those that this bridge serves, by name. */
  readonly hubs: ReadonlyMap<string, { readonly hub: ServedHub }>
  readonly states: ReadonlyMap<string, { readonly settings: { publishes(setting: OwnerOf<'setting'>): boolean } }>
  /** Whether several bridges share the hubs. */
  readonly isShared: boolean
  /** `held`: topics of the records that this process answers for. */
  readonly rollouts: { readonly held: Names }
  readonly homeAssistant: {
    /** Whether something of ours may be under a discovery prefix. */
    mayBeUnder(prefix: string): boolean
    /** Whether a device is published under a prefix, in either form, or waits for that or for its end. */
    has(prefix: string, objectId: string): boolean
  }
}

export interface OwnershipState extends OwnershipFacts {
  /** The hubs that this bridge serves, by their ids. */
  readonly byId: ReadonlyMap<string | null, ServedHub>
  /** Hubs that configuration has, whoever serves them. */
  readonly configured: Readonly<Record<string, unknown>>
  /** Hubs that this base topic had before. */
  readonly former: Names
  /** Hubs of which nothing is taken for left over before they were read again. */
  readonly unread: Names & { readonly size: number }
  /** Hubs whose first list may lack apps: nothing of an app is taken for left over before a second look. */
  readonly fresh: Names
}

const FOREIGN: Ownership = { whose: 'foreign', verdict: 'keep' }
const PEER: Ownership = { whose: 'peer', verdict: 'keep' }

/** @param payload `undefined`: it was too large to be kept */
export function ownership(topic: string, payload: string | undefined, state: OwnershipState): Ownership {
  const { topics, homeAssistant } = state
  const own = topics.parse(topic)
  if (own !== undefined) return ofRow(topic, own, state)
  const device = parseDiscoveryTopic(topic)
  if (device !== undefined && homeAssistant.mayBeUnder(device.prefix)) return ofDevice(device, payload, state)
  return topic === topics.availability || topics.parseMember(topic) !== undefined ? PEER : FOREIGN
}

/** Whether all hubs have told who they are and which apps they have. */
export function knowsAll(hubs: OwnershipFacts['hubs']): boolean {
  return hubs.values().every(({ hub }) => hub.apps.complete && hub.status.id !== null)
}

function ofRow(topic: string, own: OwnTopic, state: OwnershipState): Ownership {
  const { name, row, owner } = own
  const { hubs, configured, former, rollouts } = state
  if (name === 'rollout' && !rollouts.held.has(topic)) return PEER
  if (owner.kind !== 'bridge' && !hubs.has(owner.hub)) {
    if (Object.hasOwn(configured, owner.hub)) return PEER
    // Other programs may share the first level.
    if (!former.has(owner.hub)) return FOREIGN
  }
  if ('by' in row) return { whose: 'ours', verdict: 'keep', writer: row.by }
  return { whose: 'ours', verdict: row.retained ? verdictOf(own, state) : 'clear', writer: 'table' }
}

function verdictOf({ name, owner }: OwnTopic, state: OwnershipState): Ownership['verdict'] {
  const { hubs, states, unread, fresh, isShared } = state
  // Until this run writes it, `bridge/info` is all that names the former hubs; another member may speak for the fleet.
  if (owner.kind === 'bridge') return name === 'bridgeInfo' || (name === 'fleet' && isShared) ? 'keep' : 'clear'
  if (owner.kind === 'setting' && states.get(owner.hub)?.settings.publishes(owner)) return 'keep'
  const hub = hubs.get(owner.hub)?.hub
  if (hub === undefined) return 'clear'
  // Before the list was read everything would look gone.
  if (!hub.apps.complete || unread.has(owner.hub)) return 'wait'
  if (owner.kind === 'app') return fresh.has(owner.hub) ? 'wait' : 'clear'
  // A hub's own rows follow from its status, which is known a moment after its list.
  return owner.kind === 'hub' && hub.status.reason === 'connecting' ? 'wait' : 'clear'
}

function ofDevice(device: DiscoveryTopic, payload: string | undefined, state: OwnershipState): Ownership {
  const { prefix, objectId, owner } = device
  const { topics, hubs, byId, unread, isShared, homeAssistant } = state
  if (homeAssistant.has(prefix, objectId)) return OF_PUBLISHER
  const hub = byId.get(owner.hubId)
  // Another bridge may have published the devices of a hub that is not ours, and only the message can tell.
  if (hub === undefined && !payload?.includes(topics.mark)) return FOREIGN
  if (payload !== undefined && originOf(payload) !== ORIGIN) return FOREIGN
  if (hub === undefined && isShared) return PEER
  // A hub that has not told who it is may be the one of this device.
  const isKnown = hub === undefined ? knowsAll(hubs) : hub.apps.complete
  return isKnown && unread.size === 0 ? LEFT_OVER : OF_PUBLISHER
}

/** In another form, not at its turn yet, or about to go: the publisher takes over from it. */
const OF_PUBLISHER: Ownership = { whose: 'ours', verdict: 'wait', writer: 'discovery' }
const LEFT_OVER: Ownership = { whose: 'ours', verdict: 'clear', writer: 'discovery' }
