/** Which retained messages on a broker are this bridge's, judged from the messages alone: no bridge need be running. */
import type { Topics } from '../contract/topics.ts'
import { FormerHubs } from './former-hubs.ts'
import { ORIGIN } from './home-assistant/device.ts'
import { parseDiscoveryTopic } from './home-assistant/discovery-topics.ts'
import { originOf } from './home-assistant/messages.ts'

/**
 * The topics among `held` (topic → payload) that a bridge with this base topic has published.
 *
 * A hub counts if `hubs` or the bridge's own information names it: other programs may share the first level.
 */
export function ownTopics(
  held: ReadonlyMap<string, string>,
  { topics, hubs }: { readonly topics: Topics; readonly hubs: Iterable<string> },
): string[] {
  const known = new FormerHubs()
  for (const hub of hubs) known.add(hub)
  known.learn(held.get(topics.of('bridgeInfo', {})) ?? '')
  // Each device says where its bridge tells whether it is online.
  const mark = JSON.stringify(topics.availability)
  const isOwn = (topic: string, payload: string) => {
    const own = topics.parse(topic)
    if (own !== undefined) return own.owner.kind === 'bridge' || known.has(own.owner.hub)
    return parseDiscoveryTopic(topic) !== undefined && originOf(payload) === ORIGIN && payload.includes(mark)
  }
  return [...held].filter(([topic, payload]) => isOwn(topic, payload)).map(([topic]) => topic)
}
