/** What other members of a fleet say on the broker of themselves and of their hubs, for the live channel. */
import * as v from 'valibot'
import type { Live } from '../config/options.ts'
import { AVAILABILITY } from '../contract/schemas.ts'
import type { Topics } from '../contract/topics.ts'

/** Where somebody may look. */
interface Sink {
  held(topic: string, payload: string | null): void
}

export class Peers {
  readonly #topics: Topics
  readonly #hubs: { has(name: string): boolean }
  readonly #live: Live
  readonly #feed: Sink | undefined
  readonly #ofMembers: ReadonlySet<string>

  /**
   * @param memberStates where other members tell their states, as far as that is read
   * @param hubs those that this member serves
   */
  constructor(
    topics: Topics,
    memberStates: readonly string[],
    hubs: { has(name: string): boolean },
    live: Live,
    feed: Sink | undefined,
  ) {
    this.#topics = topics
    this.#hubs = hubs
    this.#live = live
    this.#feed = feed
    this.#ofMembers = new Set([topics.availability, ...memberStates])
  }

  /** Takes in what the broker holds on a topic, or what somebody else has published there. */
  heard(topic: string, payload: string): void {
    // Most are of apps.
    if (!topic.endsWith('/state')) return
    const isOfMember = this.#ofMembers.has(topic)
    const hub = isOfMember ? undefined : this.#hubOf(topic)
    if (!isOfMember && hub === undefined) return
    const isKnown = hub === undefined || Object.hasOwn(this.#live.value.hubs, hub)
    this.#feed?.held(topic, isKnown && v.is(AVAILABILITY, payload) ? payload : null)
  }

  /** The hub whose state it is, unless this member serves it. */
  #hubOf(topic: string): string | undefined {
    const own = this.#topics.parse(topic)
    if (own?.name !== 'hubState' || own.owner.kind !== 'hub') return undefined
    return this.#hubs.has(own.owner.hub) ? undefined : own.owner.hub
  }
}
