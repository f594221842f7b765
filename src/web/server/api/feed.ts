import { isDeepStrictEqual } from 'node:util'
import type { BridgeOptions } from '../../../bridge/bridge-options.ts'
import { parseDiscoveryTopic } from '../../../contract/discovery.ts'
import type { LogLevel } from '../../../contract/log-levels.ts'
import * as protocol from './protocol.ts'

const BATCH_MS = 100
const GATHER_MS = 20
const MAX_RECENT = 500
/** The period of the usage history in a snapshot. */
const USAGE_MS = 15 * 60_000
/** Maximum total length of the stored events, in characters. It exceeds the largest payload of a command. */
const MAX_RECENT_LENGTH = 512 * 1024

/** What may itself be called `state`. */
const ENDS_WITH_ITS_NAME: ReadonlySet<string> = new Set(['app', 'setting'])

export interface FeedOptions extends Pick<BridgeOptions, 'topics' | 'clock'> {
  /** Renders the retained messages of this bridge. Called when a client connects. */
  readonly retained: () => Iterable<protocol.LiveMessage>
  readonly refusals: () => protocol.Refusals
  readonly logLevel: () => LogLevel
  readonly usage: (ms: number) => Iterable<readonly [of: { hub: string; app: string }, protocol.Sample[]]>
  /** Returns the status of the fleet, as a new object after each change; missing if there is no fleet. */
  readonly fleet?: (() => protocol.FleetStatus) | undefined
}

/** An event of the feed. If the payload is a function, the feed calls it each time it sends the event. */
interface FeedMessage {
  /** The time of the event, in epoch milliseconds. */
  readonly at: number
  readonly topic: string
  readonly payload: string | (() => string)
}

export class Feed {
  readonly #options: FeedOptions
  /** Topic → payload of the retained messages that clients see; `undefined` while there are no subscribers. */
  #shown: Map<string, string> | undefined
  /** State topic → payload and time of the last change, including the states of other bridges. */
  readonly #states = new Map<string, { readonly payload: string; readonly since: string }>()
  #recent: FeedMessage[] = []
  #recentLength = 0
  /** Subscriber → whether it receives the values of settings. */
  readonly #subscribers = new Map<(frame: string) => void, boolean>()
  /** Topics that have changed since the last batch. Empty while there are no subscribers. */
  #changed = new Set<string>()
  #pending: FeedMessage[] = []
  #sentState: Partial<ReturnType<typeof pageState>> = {}
  /** When the last batch was sent, in `clock.elapsed()` milliseconds. */
  #batchAt = Number.NEGATIVE_INFINITY
  #cancelBatch: (() => void) | undefined
  #cancelAlive: () => void = () => {}

  constructor(options: FeedOptions) {
    this.#options = options
  }

  /** Returns the retained messages. @param settings whether to include the values of settings */
  state(settings = true): protocol.LiveMessage[] {
    return this.#seen([...(this.#shown ?? this.#render())], settings)
  }

  #render(): Map<string, string> {
    const states = [...this.#states].map(([topic, { payload }]): protocol.LiveMessage => [topic, payload])
    const retained = [...this.#options.retained()].filter(([topic]) => this.#isShown(topic))
    return new Map([...states, ...retained])
  }

  #seen<M extends readonly [topic: string, ...unknown[]]>(messages: M[], settings: boolean): M[] {
    return settings ? messages : messages.filter(([topic]) => this.#options.topics.parse(topic)?.name !== 'setting')
  }

  /** Records a change of a retained message. @param payload `null` if the topic was cleared */
  held(topic: string, payload: string | null): void {
    const isState = topic.endsWith('/state') && !ENDS_WITH_ITS_NAME.has(this.#options.topics.parse(topic)?.name ?? '')
    if (isState && this.#isShown(topic)) this.#noteState(topic, payload)
    const shown = this.#shown
    if (shown === undefined || !this.#isShown(topic) || (shown.get(topic) ?? null) === payload) return
    if (payload === null) shown.delete(topic)
    else shown.set(topic, payload)
    this.#changed.add(topic)
    this.#batchSoon()
  }

  #noteState(topic: string, payload: string | null): void {
    if (payload === null) this.#states.delete(topic)
    else if (this.#states.get(topic)?.payload !== payload) this.#states.set(topic, { payload, since: this.#now() })
  }

  /** Drops topics that another bridge now publishes, except the hub states, which that bridge overwrites. */
  released(isOthers: (topic: string) => boolean): void {
    const { topics } = this.#options
    for (const topic of [...(this.#shown?.keys() ?? [])]) {
      if (isOthers(topic) && topics.parse(topic)?.name !== 'hubState') this.held(topic, null)
    }
  }

  /** Records a message that is not retained. Ignores messages between bridges. */
  sent(topic: string, payload: string): void {
    const { topics } = this.#options
    const isAmongBridges = topic === topics.of('bridgePresence', {}) || topic === topics.of('bridgeProbe', {})
    if (this.#isShown(topic) && !isAmongBridges) this.record(topic, payload)
  }

  /**
   * Stores an event and sends it to the subscribers. If the payload is a function, it is called whenever the event is
   * sent. It must always return the same short text, whose length does not count towards `MAX_RECENT_LENGTH`.
   */
  record(topic: string, payload: string | (() => string)): void {
    const event = { at: this.#options.clock.now(), topic, payload }
    this.#recent.push(event)
    this.#recentLength += lengthOf(event)
    while (this.#recent.length > MAX_RECENT || this.#recentLength > MAX_RECENT_LENGTH) {
      const oldest = this.#recent.shift()
      this.#recentLength -= oldest === undefined ? 0 : lengthOf(oldest)
    }
    if (this.#subscribers.size === 0) return
    this.#pending.push(event)
    this.#batchSoon()
  }

  subscribe(subscriber: (frame: string) => void, settings = true): () => void {
    this.#sendBatch()
    this.#subscribers.set(subscriber, settings)
    if (this.#subscribers.size === 1) {
      this.#shown = this.#render()
      // The subscriber's snapshot contains the page state, so mark this state as sent.
      this.#changedState()
      this.#aliveLater()
    }
    return () => {
      this.#subscribers.delete(subscriber)
      if (this.#subscribers.size > 0) return
      this.#shown = undefined
      this.#cancelAlive()
      this.#takeBatch()
    }
  }

  /** Returns a snapshot for a new client. Sends pending changes first, so that no client gets a change twice. */
  snapshot(settings = true): string {
    this.#sendBatch()
    const { topics, usage } = this.#options
    const frame: protocol.LiveFrame = {
      type: 'snapshot',
      at: this.#now(),
      state: this.state(settings),
      recent: this.#recent.map(rendered),
      since: Object.fromEntries([...this.#states].map(([topic, { since }]) => [topic, since])),
      usage: Object.fromEntries([...usage(USAGE_MS)].map(([key, samples]) => [topics.of('app', key), samples])),
      ...pageState(this.#options),
    }
    return JSON.stringify(frame)
  }

  /** Whether clients see a topic. They do not see Home Assistant's discovery topics, even below the base topic. */
  #isShown(topic: string): boolean {
    if (!topic.startsWith(`${this.#options.topics.base}/`)) return false
    return !topic.endsWith('/config') || parseDiscoveryTopic(topic) === undefined
  }

  #batchSoon(): void {
    const { clock } = this.#options
    const wait = Math.max(GATHER_MS, this.#batchAt + BATCH_MS - clock.elapsed())
    this.#cancelBatch ??= clock.after(wait, () => this.#sendBatch())
  }

  #sendBatch(): void {
    const { changed, events } = this.#takeBatch()
    if (this.#subscribers.size === 0 || (changed.size === 0 && events.length === 0)) return
    this.#batchAt = this.#options.clock.elapsed()
    const state = [...changed].map((topic): [string, string | null] => [topic, this.#shown?.get(topic) ?? null])
    this.#send({ type: 'changes', at: this.#now(), state, happenings: events.map(rendered), ...this.#changedState() })
  }

  #takeBatch() {
    this.#cancelBatch?.()
    this.#cancelBatch = undefined
    const batch = { changed: this.#changed, events: this.#pending }
    this.#changed = new Set()
    this.#pending = []
    return batch
  }

  /** Returns the changed parts of the page state, and marks them as sent. */
  #changedState() {
    const before = this.#sentState
    const now = pageState(this.#options)
    this.#sentState = now
    return {
      ...(!isDeepStrictEqual(now.refusals, before.refusals) && { refusals: now.refusals }),
      ...(now.log_level !== before.log_level && { log_level: now.log_level }),
      ...(now.fleet !== undefined && now.fleet !== before.fleet && { fleet: now.fleet }),
    }
  }

  #aliveLater(): void {
    this.#cancelAlive = this.#options.clock.after(protocol.LIVE_INTERVAL_MS, () => {
      const [at, changed] = [this.#now(), this.#changedState()]
      const isChanged = Object.keys(changed).length > 0
      this.#send(isChanged ? { type: 'changes', at, state: [], happenings: [], ...changed } : { type: 'alive', at })
      this.#aliveLater()
    })
  }

  #send(content: protocol.LiveFrame): void {
    const texts = new Map<boolean, string>()
    for (const [subscriber, settings] of this.#subscribers) {
      const seen = content.type === 'changes' ? { ...content, state: this.#seen(content.state, settings) } : content
      const text = texts.get(settings) ?? JSON.stringify(seen)
      texts.set(settings, text)
      subscriber(text)
    }
  }

  #now(): string {
    return isoTime(this.#options.clock.now())
  }
}

function pageState({ refusals, logLevel, fleet }: FeedOptions) {
  return { refusals: refusals(), log_level: logLevel(), ...(fleet !== undefined && { fleet: fleet() }) }
}

const isoTime = (ms: number) => new Date(ms).toISOString()

const lengthOf = ({ topic, payload }: FeedMessage) => topic.length + (typeof payload === 'string' ? payload.length : 0)

function rendered({ at, topic, payload }: FeedMessage): protocol.FeedEvent {
  return { at: isoTime(at), topic, payload: typeof payload === 'string' ? payload : payload() }
}
