/**
 * Decides who owns a retained topic, and what happens to it if nothing is held there: for the sweep, for repairs and for
 * `hub2mqtt cleanup`.
 */

import { type DiscoveryTopic, hubIdOf, isOfBridge, nameIn, parseDiscoveryTopic } from '../contract/discovery.ts'
import type { HeldElsewhere } from '../contract/publications.ts'
import type { OwnTopic, Topics } from '../contract/topics.ts'
import type { HubStatus } from '../hub/status.ts'
import type { Discovery } from './bridge-options.ts'
import type { Prefixes } from './former.ts'
import type { HubFigures } from './hub-figures.ts'
import type { PublishedSettings } from './published-settings.ts'

export interface Ownership {
  /** `peer`: of another bridge with the same base topic. */
  readonly whose: 'ours' | 'peer' | 'foreign'
  /** `wait`: it is not known yet whether to keep or to clear it. Only what is ours is ever cleared. */
  readonly verdict: 'keep' | 'clear' | 'wait'
  /** The part of this bridge that publishes there; only of what is ours. */
  readonly writer?: 'table' | HeldElsewhere<unknown>['by']
}

type Names = Pick<ReadonlySet<string>, 'has'>

export interface ServedHub {
  readonly status: Pick<HubStatus, 'id' | 'api' | 'reason'>
  readonly apps: { readonly complete: boolean }
}

/** Everything that the answer depends on. */
export interface OwnershipState {
  readonly topics: Topics
  /** The hubs that this bridge serves, by name. */
  readonly hubs: ReadonlyMap<string, { readonly hub: ServedHub }>
  /** The same by their ids, or what stands for them. */
  readonly byId: ReadonlyMap<string | null, ServedHub>
  readonly states: ReadonlyMap<
    string,
    { readonly settings: Pick<PublishedSettings, 'publishes'>; readonly figures?: Pick<HubFigures, 'isPending'> }
  >
  /** With the hubs of the configuration, whoever serves them. */
  readonly live: { readonly value: { readonly hubs: Readonly<Record<string, unknown>> } }
  /** Whether several bridges share the hubs. */
  readonly isShared: boolean
  /** Hubs that this base topic had before. */
  readonly former: Names
  /** Hubs whose topics are not swept before they were read again. */
  readonly unread: Pick<ReadonlySet<string>, 'has' | 'size'>
  /** Hubs whose first list may lack apps: no app counts as gone before a second read. */
  readonly fresh: Names
  /** `held`: topics of the records that this process answers for. */
  readonly rollouts: { readonly held: Names }
  /** Discovery prefixes under which something of ours may be. */
  readonly prefixes: Pick<Prefixes, 'includes'>
  readonly homeAssistant: Pick<Discovery, 'has'> | undefined
}

const FOREIGN: Ownership = { whose: 'foreign', verdict: 'keep' }
const PEER: Ownership = { whose: 'peer', verdict: 'keep' }

/** @param payload `undefined`: it was too large to be kept */
export function ownership(topic: string, payload: string | undefined, state: OwnershipState): Ownership {
  const { topics, prefixes } = state
  const own = topics.parse(topic)
  if (own !== undefined) return ofRow(topic, own, state)
  const device = parseDiscoveryTopic(topic)
  if (device !== undefined && prefixes.includes(device.prefix)) return ofDevice(device, payload, state)
  return topic === topics.availability || topics.parseMember(topic) !== undefined ? PEER : FOREIGN
}

/** Whether the apps of all hubs are known, and their ids, as far as they show one. */
export function knowsAll(hubs: OwnershipState['hubs']): boolean {
  return hubs.entries().every(([name, { hub }]) => hub.apps.complete && hubIdOf(name, hub.status) !== null)
}

/** A hub that shows no id may be one whose id only the broker knows. */
function showIds(hubs: OwnershipState['hubs']): boolean {
  return hubs.values().every(({ hub }) => hub.status.id !== null)
}

function ofRow(topic: string, own: OwnTopic, state: OwnershipState): Ownership {
  const { name, row, owner } = own
  const { hubs, live, former, rollouts } = state
  if (name === 'rollout' && !rollouts.held.has(topic)) return PEER
  if (owner.kind !== 'bridge' && !hubs.has(owner.hub)) {
    if (Object.hasOwn(live.value.hubs, owner.hub)) return PEER
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
  if (states.get(owner.hub)?.figures?.isPending(name)) return 'wait'
  // Before the list was read everything would look gone, and a hub's own rows follow from a status that comes after it.
  const isEarly = { hub: hub.status.reason === 'connecting', app: fresh.has(owner.hub), setting: false }
  return !hub.apps.complete || unread.has(owner.hub) || isEarly[owner.kind] ? 'wait' : 'clear'
}

function ofDevice(device: DiscoveryTopic, payload: string | undefined, state: OwnershipState): Ownership {
  const { topics, hubs, byId, unread, isShared, homeAssistant } = state
  const waits = { whose: 'ours', verdict: 'wait', writer: 'discovery' } as const
  // In another form, not at its turn yet, or about to go: the publisher takes over from it.
  if (homeAssistant?.has(device.prefix, device.objectId)) return waits
  const hub = byId.get(device.owner.hubId)
  // Another bridge may have published the devices of a hub that is not ours; only the message says so.
  if (hub === undefined && !payload?.includes(topics.mark)) return FOREIGN
  if (payload !== undefined && !isOfBridge(payload)) return FOREIGN
  const name = nameIn(device.owner.hubId)
  // The devices of a hub by its name go once it shows an id.
  const served = name === undefined ? undefined : hubs.get(name)?.hub
  const owner = hub ?? (served?.status.id ? served : undefined)
  if (owner === undefined && isShared) return PEER
  const isKnown = owner === undefined ? knowsAll(hubs) && (name !== undefined || showIds(hubs)) : owner.apps.complete
  return isKnown && unread.size === 0 ? { ...waits, verdict: 'clear' } : waits
}
