/** Which retained messages on a broker are this bridge's, judged from the messages alone: no bridge need be running. */
import type { Topics } from '../contract/topics.ts'
import { FormerHubs } from './former-hubs.ts'
import { ORIGIN } from './home-assistant/device.ts'
import { parseDiscoveryTopic } from './home-assistant/discovery-topics.ts'
import { originOf } from './home-assistant/messages.ts'
import { differ } from './left-overs.ts'
import { ownership } from './ownership.ts'

/**
 * The topics among `held` (topic → payload) that a bridge with this base topic, or any member of a fleet, has published.
 *
 * A hub counts if `hubs` or a bridge's own information names it: other programs may share the first level.
 */
export function ownTopics(
  held: ReadonlyMap<string, string>,
  { topics, hubs }: { readonly topics: Topics; readonly hubs: Iterable<string> },
): string[] {
  const configured = new Set(hubs)
  const told = [...held].flatMap(([topic, payload]) => {
    const found = topics.parse(topic) ?? topics.parseMember(topic)
    return found?.name === 'bridgeInfo' ? [hubsIn(payload)] : []
  })
  const isKnown = (hub: string) => configured.has(hub) || told.some((one) => one.has(hub))
  // Each device says where its bridge tells whether it is online.
  const isOwn = (topic: string, payload: string) => {
    if (topics.parseMember(topic) !== undefined) return true
    const own = topics.parse(topic)
    if (own !== undefined) return own.owner.kind === 'bridge' || isKnown(own.owner.hub)
    return parseDiscoveryTopic(topic) !== undefined && originOf(payload) === ORIGIN && payload.includes(topics.mark)
  }
  const state = {
    topics,
    hubs: NOTHING,
    byId: NOTHING,
    states: NOTHING,
    configured: {},
    former: { has: isKnown },
    unread: new Set<string>(),
    fresh: new Set<string>(),
    rollouts: { held: new Set<string>() },
    isShared: false,
    homeAssistant: { mayBeUnder: () => true, has: () => false },
  }
  return [...held]
    .filter(([topic, payload]) => {
      const old = isOwn(topic, payload)
      const { whose } = ownership(topic, payload, state)
      if (old !== (whose !== 'foreign')) differ('cleanup', topic, payload, `${old} ${whose}`)
      return old
    })
    .map(([topic]) => topic)
}

const NOTHING = new Map<string, never>()

function hubsIn(info: string): FormerHubs {
  const hubs = new FormerHubs()
  hubs.learn(info)
  return hubs
}
