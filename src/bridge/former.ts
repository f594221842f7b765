/** Remembers hubs and prefixes that bridges on this base topic had before. The bridge may clear their topics. */
import * as v from 'valibot'
import { readJson } from '../base/read-json.ts'
import { discoveryFilters } from '../contract/discovery.ts'
import * as schemas from '../contract/schemas.ts'

/** Limits for data from the broker, which is not trusted. */
const MAX_HUBS = 1_000
const MAX_NAME = 32
const MAX_PREFIXES = 8

const INFO = v.object({ hubs: v.record(v.string(), v.unknown()) })
const HUB_INFO = v.object({ id: v.string() })

/**
 * Returns the member of a fleet that has published this `info` of a hub. The schema is strict, because other programs
 * may publish below the same base topic.
 */
export const memberIn = (payload: string): string | undefined => readJson(schemas.HUB_INFO, payload)?.owner

export class FormerHubs {
  readonly #names = new Set<string>()
  readonly #ids = new Map<string, string>()
  readonly #members = new Map<string, string>()

  has(name: string): boolean {
    return this.#names.has(name)
  }

  add(name: string): void {
    if (this.#names.size < MAX_HUBS && name.length <= MAX_NAME) this.#names.add(name)
  }

  /** @param payload the payload of `bridge/info` */
  learn(payload: string): this {
    for (const name of Object.keys(readJson(INFO, payload)?.hubs ?? {})) this.add(name)
    return this
  }

  /** @param payload the payload of the hub's `info` topic */
  learnInfo(hub: string, payload: string): void {
    const id = readJson(HUB_INFO, payload)?.id
    if (id !== undefined && (this.#ids.has(hub) || this.#ids.size < MAX_HUBS)) this.#ids.set(hub, id)
    const member = memberIn(payload)
    if (member === undefined) this.#members.delete(hub)
    else if (this.#members.has(hub) || this.#members.size < MAX_HUBS) this.#members.set(hub, member)
  }

  /** Returns the fleet member that the hub's `info` names as its owner. */
  memberOf(hub: string): string | undefined {
    return this.#members.get(hub)
  }

  idOf(hub: string): string | undefined {
    return this.#ids.get(hub)
  }
}

const PREFIX = /^[^$/+#\p{Cc}][^+#\p{Cc}]{0,127}$/u
const MEMORY = v.object({ prefixes: v.array(v.unknown()) })

/** The discovery prefixes under which the broker may have messages from this bridge. */
export class Prefixes {
  readonly #current: string
  readonly #topic: string
  readonly #former = new Set<string>()
  /** Whether the stored list contains prefixes that the sweep has not checked yet. */
  #doubtful = false
  readonly #isPublishing: boolean

  /**
   * @param topic the topic that stores the prefixes
   * @param isPublishing whether discovery messages are published under the current prefix
   */
  constructor(current: string, topic: string, isPublishing = false) {
    this.#current = current
    this.#topic = topic
    this.#isPublishing = isPublishing
  }

  /** Reads the stored prefixes. Returns filters for the discovery topics under these prefixes. */
  learn(topic: string, payload: string): string[] {
    if (topic !== this.#topic) return []
    this.#doubtful = true
    for (const prefix of readJson(MEMORY, payload)?.prefixes ?? []) {
      const isPrefix = typeof prefix === 'string' && PREFIX.test(prefix)
      if (isPrefix && prefix !== this.#current && this.#former.size < MAX_PREFIXES) this.#former.add(prefix)
    }
    return [...this.#former].flatMap(discoveryFilters)
  }

  includes(prefix: string): boolean {
    return prefix === this.#current || this.#former.has(prefix)
  }

  /** Call this when the sweep has checked all topics. */
  settle(): void {
    this.#former.clear()
    this.#doubtful = false
  }

  /** All prefixes to record; `null` if the broker has no discovery message from this bridge. */
  get all(): readonly string[] | null {
    return this.#isPublishing || this.#doubtful ? [this.#current, ...this.#former] : null
  }
}
