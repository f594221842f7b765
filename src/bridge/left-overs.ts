/** What earlier runs and configurations left behind in the broker: which topics that is, and when they may be cleared. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { Throttle } from '../base/throttle.ts'
import type { Live } from '../config/options.ts'
import type { OwnTopic, Topics } from '../contract/topics.ts'
import { asHubError } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import { FormerHubs } from './former-hubs.ts'
import { parseDiscoveryTopic } from './home-assistant/discovery-topics.ts'
import type { HomeAssistant } from './home-assistant/home-assistant.ts'
import type { HubState } from './hub-state.ts'
import { type OwnershipState, ownership } from './ownership.ts'
import type { StartupBuffer } from './startup-buffer.ts'

export interface LeftOversOptions {
  readonly topics: Topics
  readonly hubs: ReadonlyMap<string, { readonly hub: Hub }>
  readonly live: Live
  readonly link: {
    /** Clears what the broker holds, nobody wants, and the predicate calls ours. Returns how many. */
    sweep(owned: (topic: string, payload: string) => boolean): number
  }
  /** Whether several bridges share the hubs. */
  readonly isShared: boolean
  /** Nothing is cleared while this bridge is not the active one. */
  readonly early: Pick<StartupBuffer, 'role'>
  readonly states: ReadonlyMap<string, Pick<HubState, 'settings'>>
  readonly homeAssistant: Pick<HomeAssistant, 'orphans' | 'settle' | 'mayBeUnder' | 'has'>
  readonly rollouts: {
    /** Whether this process answers for the record on a topic. */
    holds(topic: string): boolean
    readonly held: ReadonlySet<string>
  }
  /** Nothing can be left under a former discovery prefix. */
  readonly onSettled: () => void
  readonly clock: Clock
  readonly log: Logger
}

/** The old way and the new one disagree: nobody may miss that. */
export function differ(what: string, topic: string, payload: string, how: string): never {
  const error = new Error(`ownership differs: ${what} ${topic} ${payload.slice(0, 200)}: ${how}`)
  queueMicrotask(() => {
    throw error
  })
  throw error
}

/** Before a first list that lacks apps is read again. */
const SECOND_LOOK_MS = 2_000

export class LeftOvers {
  readonly #options: LeftOversOptions
  readonly #formerHubs = new FormerHubs()
  /** Hubs of which nothing is taken for left over before they were read again; `next`: by whichever read comes next. */
  readonly #unread = new Map<string, 'asked' | 'next'>()
  /** Hubs whose first list was not compared yet with what the broker holds of them. */
  readonly #fresh = new Set<string>()
  readonly #secondLooks = new Set<() => void>()
  /** With many hubs there is much to look through, and each hub that comes asks for it. */
  readonly #sweeping: Throttle

  constructor(options: LeftOversOptions) {
    this.#options = options
    this.#sweeping = new Throttle(options.clock, () => this.sweep())
  }

  /** Clears what is left over: at once, or soon. */
  request(): void {
    this.#sweeping.request()
  }

  /** A hub is new, or it is not known any more what the broker holds of it. */
  hubAdded(name: string): void {
    this.#fresh.add(name)
  }

  /** A hub is served no longer by this bridge. */
  hubGone(name: string): void {
    this.#unread.delete(name)
    this.#fresh.delete(name)
  }

  /** This base topic had these hubs before. */
  hadHub(name: string): void {
    this.#formerHubs.add(name)
  }

  /** Takes in a payload of `bridge/info`, which names hubs. */
  learnHubs(info: string): void {
    this.#formerHubs.learn(info)
  }

  /** The list of a hub was read, for whatever reason. */
  listRead(name: string): void {
    if (this.#unread.get(name) === 'next') this.#wasRead(name)
  }

  /** What the broker holds of these hubs may be newer than what is known here: another bridge may have published it. */
  readAgain(names: Iterable<string>): void {
    for (const name of names) {
      const hub = this.#options.hubs.get(name)?.hub
      if (hub === undefined) continue
      this.#unread.set(name, 'asked')
      const failed = (error: unknown) => {
        asHubError(error)
        if (this.#unread.has(name)) this.#unread.set(name, 'next')
      }
      void hub.refresh().then(() => this.#wasRead(name), failed)
    }
  }

  /** Clears what belongs to apps and hubs that are gone, and to rows that are not asked for. */
  sweep(): void {
    const { topics, link, homeAssistant, live, early, onSettled, log } = this.#options
    if (early.role !== 'active' || live.awaitsHubs) return
    this.#lookTwice()
    const isOrphan = homeAssistant.orphans()
    const state = this.#state()
    const cleared = link.sweep((topic, payload) => {
      const own = topics.parse(topic)
      // Of which hub a device is, only its message knows.
      const old = own === undefined ? this.#unread.size === 0 && isOrphan(topic, payload) : this.#isLeftOver(own)
      const { verdict } = ownership(topic, payload === '' ? undefined : payload, state)
      if (old !== (verdict === 'clear')) differ('sweep', topic, payload, `${old} ${verdict}`)
      return old
    })
    if (cleared > 0) log.info({ topics: cleared }, 'cleared retained messages that belong to nothing any more')
    if (this.#unread.size === 0 && homeAssistant.settle()) onSettled()
  }

  /** Whether a topic is the bridge's to put right. Home Assistant may remove what is discovered, which has its own way. */
  isOurs(topic: string, payload: string): boolean {
    const old = this.#isOurs(topic, payload)
    const { whose, writer } = ownership(topic, payload, this.#state())
    const isRepaired = whose === 'ours' && !(writer === 'discovery' && payload === '')
    // Of what is no bridge's, the old way lets the sweep decide that nothing is to be done.
    const isLeft = !isRepaired && this.#options.topics.parse(topic) === undefined
    if (old !== isRepaired && !(isLeft && !this.#isOrphan(topic, payload))) {
      differ('repair', topic, payload, `${old} ${whose} ${writer}`)
    }
    return old
  }

  #isOrphan(topic: string, payload: string): boolean {
    const { homeAssistant, live } = this.#options
    const device = parseDiscoveryTopic(topic)
    if (device !== undefined && homeAssistant.has(device.prefix, device.objectId)) return true
    return homeAssistant.orphans()(topic, payload) && live.value.discovery.format !== 'off'
  }

  #isOurs(topic: string, payload: string): boolean {
    const own = this.#options.topics.parse(topic)
    if (own === undefined) return payload !== ''
    return own.name === 'rollout' ? this.#options.rollouts.holds(topic) : this.#owns(own.owner)
  }

  /** As of this moment; who the hubs are is found out once, and only where a device asks for it. */
  #state(): OwnershipState {
    const { hubs, live } = this.#options
    let byId: OwnershipState['byId'] | undefined
    return {
      ...this.#options,
      get byId() {
        byId ??= new Map([...hubs.values()].reverse().map(({ hub }) => [hub.status.id, hub]))
        return byId
      },
      configured: live.value.hubs,
      former: this.#formerHubs,
      unread: this.#unread,
      fresh: this.#fresh,
    }
  }

  stop(): void {
    for (const cancel of this.#secondLooks) cancel()
    this.#sweeping.stop()
  }

  #wasRead(name: string): void {
    if (this.#unread.delete(name)) this.#sweeping.request()
  }

  #owns(owner: OwnTopic['owner']): boolean {
    return owner.kind === 'bridge' || this.#options.hubs.has(owner.hub) || this.#isFormer(owner.hub)
  }

  /** Whether a hub is in nobody's configuration any more. */
  #isFormer(hub: string): boolean {
    return this.#formerHubs.has(hub) && !Object.hasOwn(this.#options.live.value.hubs, hub)
  }

  /**
   * The first list of a hub that starts up, as after a power cut, may have few of its apps: before what the broker holds of
   * the others is taken for left over, it is read once more.
   */
  #lookTwice(): void {
    const { hubs, topics, link, clock } = this.#options
    const read = new Set([...this.#fresh].filter((name) => hubs.get(name)?.hub.apps.complete === true))
    if (read.size === 0) return
    for (const name of read) this.#fresh.delete(name)
    const doubtful = new Set<string>()
    const state = { ...this.#state(), fresh: read }
    link.sweep((topic, payload) => {
      const own = topics.parse(topic)
      if (own?.owner.kind !== 'app' || !read.has(own.owner.hub)) return false
      const old = this.#isLeftOver(own)
      if (old) doubtful.add(own.owner.hub)
      if (own.row.retained && !this.#unread.has(own.owner.hub)) {
        const { verdict } = ownership(topic, payload === '' ? undefined : payload, state)
        if (old !== (verdict === 'wait')) differ('second look', topic, payload, `${old} ${verdict}`)
      }
      return false
    })
    if (doubtful.size === 0) return
    for (const name of doubtful) this.#unread.set(name, 'asked')
    const cancel = clock.after(SECOND_LOOK_MS, () => {
      this.#secondLooks.delete(cancel)
      this.readAgain(doubtful)
    })
    this.#secondLooks.add(cancel)
  }

  /** Nothing of a hub is touched before its list has been read, as then everything would look gone. */
  #isLeftOver({ name, row, owner }: OwnTopic): boolean {
    const { hubs, states, isShared } = this.#options
    if ('by' in row) return false
    if (!row.retained) return this.#owns(owner)
    if (owner.kind === 'bridge') return name !== 'bridgeInfo' && (name !== 'fleet' || !isShared)
    if (owner.kind === 'setting' && states.get(owner.hub)?.settings.publishes(owner)) return false
    const hub = hubs.get(owner.hub)?.hub
    if (hub === undefined) return this.#isFormer(owner.hub)
    if (this.#unread.has(owner.hub)) return false
    // A hub's own rows follow from its status, which is known a moment after its list.
    return hub.apps.complete && (owner.kind !== 'hub' || hub.status.reason !== 'connecting')
  }
}
