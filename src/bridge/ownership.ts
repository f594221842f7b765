/** Determines who owns a retained topic, and whether to keep its message. */

import { type DiscoveryTopic, hubIdOf, isOfBridge, nameIn, parseDiscoveryTopic } from '../contract/discovery.ts'
import type { ExternalRow } from '../contract/publications.ts'
import type { OwnTopic, Topics } from '../contract/topics.ts'
import type { HubStatus } from '../hub/status.ts'
import type { Discovery } from './bridge-options.ts'
import type { Prefixes } from './former.ts'
import type { HubFigures } from './hub-figures.ts'
import type { PublishedSettings } from './published-settings.ts'

export interface Ownership {
  /** `peer` means another bridge with the same base topic. */
  readonly whose: 'ours' | 'peer' | 'foreign'
  /** `wait` means to keep the message until the verdict is certain. Only topics that are `ours` can be cleared. */
  readonly verdict: 'keep' | 'clear' | 'wait'
  /** The part of this bridge that publishes the topic; only for `ours`. */
  readonly writer?: 'table' | ExternalRow<unknown>['by']
}

type Names = Pick<ReadonlySet<string>, 'has'>

export interface ServedHub {
  readonly status: Pick<HubStatus, 'id' | 'api' | 'reason'>
  readonly apps: { readonly complete: boolean }
}

export interface OwnershipState {
  readonly topics: Topics
  readonly hubs: ReadonlyMap<string, { readonly hub: ServedHub }>
  /** `hubs` by id or, if a hub sends no id, by its substitute (`hubIdOf`). */
  readonly byId: ReadonlyMap<string | null, ServedHub>
  readonly states: ReadonlyMap<
    string,
    { readonly settings: Pick<PublishedSettings, 'publishes'>; readonly figures?: Pick<HubFigures, 'isPending'> }
  >
  /** The configuration. It includes all configured hubs, regardless of which bridge serves them. */
  readonly live: { readonly value: { readonly hubs: Readonly<Record<string, unknown>> } }
  readonly isShared: boolean
  readonly former: Names
  /** Hubs that must be read again before their topics are swept. */
  readonly pendingReads: Pick<ReadonlySet<string>, 'has' | 'size'>
  /** Hubs whose first list may lack apps. Missing apps do not count as removed before a second read. */
  readonly fresh: Names
  /** `held` contains the topics of the records that this process maintains. */
  readonly rollouts: { readonly held: Names }
  readonly prefixes: Pick<Prefixes, 'includes'>
  readonly homeAssistant: Pick<Discovery, 'has'> | undefined
}

const FOREIGN: Ownership = { whose: 'foreign', verdict: 'keep' }
const PEER: Ownership = { whose: 'peer', verdict: 'keep' }

/** @param payload `undefined` if it was too large to store */
export function ownership(topic: string, payload: string | undefined, state: OwnershipState): Ownership {
  const { topics, prefixes } = state
  const own = topics.parse(topic)
  if (own !== undefined) return ofRow(topic, own, state)
  const device = parseDiscoveryTopic(topic)
  if (device !== undefined && prefixes.includes(device.prefix)) return ofDevice(device, payload, state)
  return topic === topics.availability || topics.parseMember(topic) !== undefined ? PEER : FOREIGN
}

/** Returns whether the apps of all hubs, and the ids of all hubs that send an id, are known. */
export function areComplete(hubs: OwnershipState['hubs']): boolean {
  return hubs.entries().every(([name, { hub }]) => hub.apps.complete && hubIdOf(name, hub.status) !== null)
}

/** Returns whether all hubs send ids. If not, a device with an unknown id may belong to a hub that sends no id. */
function sendIds(hubs: OwnershipState['hubs']): boolean {
  return hubs.values().every(({ hub }) => hub.status.id !== null)
}

function ofRow(topic: string, own: OwnTopic, state: OwnershipState): Ownership {
  const { name, row, owner } = own
  const { hubs, live, former, rollouts } = state
  if (name === 'rollout' && !rollouts.held.has(topic)) return PEER
  if (owner.kind !== 'bridge' && !hubs.has(owner.hub)) {
    if (Object.hasOwn(live.value.hubs, owner.hub)) return PEER
    // Other programs may publish below the same base topic.
    if (!former.has(owner.hub)) return FOREIGN
  }
  if ('by' in row) return { whose: 'ours', verdict: 'keep', writer: row.by }
  return { whose: 'ours', verdict: row.retained ? verdictOf(own, state) : 'clear', writer: 'table' }
}

function verdictOf({ name, owner }: OwnTopic, context: OwnershipState): Ownership['verdict'] {
  const { hubs, states, pendingReads, fresh, isShared } = context
  // Keep `bridge/info`: until this run replaces it, it lists the earlier hubs. Another member may publish `fleet`.
  if (owner.kind === 'bridge') return name === 'bridgeInfo' || (name === 'fleet' && isShared) ? 'keep' : 'clear'
  const state = states.get(owner.hub)
  // Clear an unlisted setting even before the hub is read, because its value may be secret.
  if (owner.kind === 'setting' && state !== undefined) return state.settings.publishes(owner) ? 'keep' : 'clear'
  const hub = hubs.get(owner.hub)?.hub
  if (hub === undefined) return 'clear'
  if (state?.figures?.isPending(name)) return 'wait'
  // Until the list is read, every app would appear to be removed. The hub's own rows need its status, which
  // arrives later.
  const isEarly = owner.kind === 'hub' ? hub.status.reason === 'connecting' : fresh.has(owner.hub)
  return !hub.apps.complete || pendingReads.has(owner.hub) || isEarly ? 'wait' : 'clear'
}

function ofDevice(device: DiscoveryTopic, payload: string | undefined, state: OwnershipState): Ownership {
  const { topics, hubs, byId, pendingReads, isShared, homeAssistant } = state
  const waits = { whose: 'ours', verdict: 'wait', writer: 'discovery' } as const
  // The publisher handles devices that are published in either format or are queued.
  if (homeAssistant?.has(device.prefix, device.objectId)) return waits
  const hub = byId.get(device.owner.hubId)
  // Only the payload shows whether another bridge has published the devices of an unknown hub.
  if (hub === undefined && !payload?.includes(topics.mark)) return FOREIGN
  if (payload !== undefined && !isOfBridge(payload)) return FOREIGN
  const name = nameIn(device.owner.hubId)
  // A hub without an id has devices under its name. Clear these devices once the hub sends an id.
  const served = name === undefined ? undefined : hubs.get(name)?.hub
  const owner = hub ?? (served?.status.id ? served : undefined)
  if (owner === undefined && isShared) return PEER
  const isKnown = owner === undefined ? areComplete(hubs) && (name !== undefined || sendIds(hubs)) : owner.apps.complete
  return isKnown && pendingReads.size === 0 ? { ...waits, verdict: 'clear' } : waits
}
