/** What other members of a fleet say on the broker of themselves and of their hubs, for the live channel. */
import * as v from 'valibot'
import type { Live } from '../config/options.ts'
import { AVAILABILITY } from '../contract/schemas.ts'
import type { Topics } from '../contract/topics.ts'
import type { Feed } from './feed.ts'

export interface OthersOptions {
  readonly topics: Topics
  /** Where other members tell their states, as far as that is read. */
  readonly memberStates: readonly string[]
  /** The hubs that this member serves. */
  readonly hubs: { has(name: string): boolean }
  readonly live: Live
  /** Where somebody may look. */
  readonly feed: Pick<Feed, 'held'> | undefined
}

export class Peers {
  readonly #options: OthersOptions
  readonly #ofMembers: ReadonlySet<string>

  constructor(options: OthersOptions) {
    this.#options = options
    this.#ofMembers = new Set([options.topics.availability, ...options.memberStates])
  }

  /** Takes in what the broker holds on a topic, or what somebody else has published there. */
  heard(topic: string, payload: string): void {
    // Most are of apps.
    if (!topic.endsWith('/state')) return
    const isOfMember = this.#ofMembers.has(topic)
    const hub = isOfMember ? undefined : this.#hubOf(topic)
    if (!isOfMember && hub === undefined) return
    const isKnown = hub === undefined || Object.hasOwn(this.#options.live.value.hubs, hub)
    this.#options.feed?.held(topic, isKnown && v.is(AVAILABILITY, payload) ? payload : null)
  }

  /** The hub whose state it is, unless this member serves it. */
  #hubOf(topic: string): string | undefined {
    const { topics, hubs } = this.#options
    const own = topics.parse(topic)
    if (own?.name !== 'hubState' || own.owner.kind !== 'hub') return undefined
    return hubs.has(own.owner.hub) ? undefined : own.owner.hub
  }
}
