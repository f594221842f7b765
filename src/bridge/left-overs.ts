/** What earlier runs and configurations left behind in the broker: which topics that is, and when they may be cleared. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { Throttle } from '../base/throttle.ts'
import type { Live } from '../config/options.ts'
import { asHubError } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import { FormerHubs } from './former-hubs.ts'
import type { HomeAssistant } from './home-assistant/home-assistant.ts'
import type { DiscoveryLink } from './home-assistant/publisher.ts'
import { knowsAll, type Ownership, type OwnershipState, ownership } from './ownership.ts'
import type { StartupBuffer } from './startup-buffer.ts'

export interface LeftOversOptions extends Omit<OwnershipState, 'byId' | 'former' | 'unread' | 'fresh'> {
  readonly hubs: ReadonlyMap<string, { readonly hub: Hub }>
  readonly live: Live
  readonly link: Pick<DiscoveryLink, 'sweep'>
  /** Nothing is cleared while this bridge is not the active one. */
  readonly early: Pick<StartupBuffer, 'role'>
  readonly homeAssistant: Pick<HomeAssistant, 'prefixes' | 'has'>
  /** Nothing can be left under a former discovery prefix. */
  readonly onSettled: () => void
  readonly clock: Clock
  readonly log: Logger
}

/** Before a first list that lacks apps is read again. */
const SECOND_LOOK_MS = 2_000

export class LeftOvers {
  /** Learns the names of hubs that this base topic had before, or that another bridge publishes. */
  readonly former = new FormerHubs()
  readonly #options: LeftOversOptions
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
    const { hubs, link, homeAssistant, live, early, onSettled, log } = this.#options
    if (early.role !== 'active' || live.awaitsHubs) return
    this.#lookTwice()
    const state = this.#state()
    const cleared = link.sweep((topic, payload) => ofFound(topic, payload, state).verdict === 'clear')
    if (cleared > 0) log.info({ topics: cleared }, 'cleared retained messages that belong to nothing any more')
    if (this.#unread.size > 0 || hubs.size === 0 || !knowsAll(hubs)) return
    homeAssistant.prefixes.settle()
    onSettled()
  }

  /** Whose a topic is on which somebody else has published. */
  ownership(topic: string, payload: string): Ownership {
    return ownership(topic, payload, this.#state())
  }

  /** As of this moment; who the hubs are is found out once, and only where a device asks for it. */
  #state(): OwnershipState {
    const { hubs } = this.#options
    let byId: OwnershipState['byId'] | undefined
    return {
      ...this.#options,
      get byId() {
        byId ??= new Map([...hubs.values()].reverse().map(({ hub }) => [hub.status.id, hub]))
        return byId
      },
      former: this.former,
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

  /**
   * The first list of a hub that starts up, as after a power cut, may have few of its apps: before what the broker holds of
   * the others is taken for left over, it is read once more.
   */
  #lookTwice(): void {
    const { hubs, topics, link, clock } = this.#options
    const read = [...this.#fresh].filter((name) => hubs.get(name)?.hub.apps.complete === true)
    if (read.length === 0) return
    const state = this.#state()
    const doubtful = new Set<string>()
    link.sweep((topic, payload) => {
      const owner = topics.parse(topic)?.owner
      const isFirst = owner?.kind === 'app' && read.includes(owner.hub) && !this.#unread.has(owner.hub)
      if (isFirst && ofFound(topic, payload, state).verdict === 'wait') doubtful.add(owner.hub)
      return false
    })
    for (const name of read) this.#fresh.delete(name)
    if (doubtful.size === 0) return
    for (const name of doubtful) this.#unread.set(name, 'asked')
    const cancel = clock.after(SECOND_LOOK_MS, () => {
      this.#secondLooks.delete(cancel)
      this.readAgain(doubtful)
    })
    this.#secondLooks.add(cancel)
  }
}

/** Of what was found on the broker: the payload is '' where it was too large to be kept. */
const ofFound = (topic: string, payload: string, state: OwnershipState) =>
  ownership(topic, payload === '' ? undefined : payload, state)
