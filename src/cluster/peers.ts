/** What other members of a fleet publish of themselves and of their hubs, for the live channel. */
import * as v from 'valibot'
import type { Live } from '../config/options.ts'
import { AVAILABILITY } from '../contract/schemas.ts'
import type { Topics } from '../contract/topics.ts'

/**
 * Returns what takes in what the broker holds on a topic, or what another client has published there.
 *
 * @param memberStates topics of other members' states, as far as they are read
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
    // Most are of apps.
    const shown = topic.endsWith('/state') ? isShown(topic) : undefined
    if (shown !== undefined) feed.held(topic, shown && v.is(AVAILABILITY, payload) ? payload : null)
  }
}
