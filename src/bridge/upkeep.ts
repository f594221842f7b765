/**
 * Keeps the broker as it should be: clears what earlier runs and configurations left behind, as soon as that is safe, and
 * puts right what others change on the bridge's topics: soon, all at once, and never in a race with another writer.
 */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { Throttle } from '../base/throttle.ts'
import { hubIdOf } from '../contract/discovery.ts'
import { asHubError } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import type { MqttLink } from '../mqtt/link.ts'
import type { BridgeOptions, Discovery } from './bridge-options.ts'
import { FormerHubs, type Prefixes } from './former.ts'
import { knowsAll, type Ownership, type OwnershipState, ownership, type ServedHub } from './ownership.ts'
import type { StartupBuffer } from './startup-buffer.ts'

interface UpkeepOptions extends Omit<OwnershipState, 'byId' | 'former' | 'unread' | 'fresh'> {
  readonly hubs: ReadonlyMap<string, { readonly hub: ServedHub & Pick<Hub, 'refresh'> }>
  readonly live: OwnershipState['live'] & Pick<BridgeOptions['live'], 'awaitsHubs'>
  readonly link: Pick<MqttLink, 'sweep' | 'refresh'>
  /** Nothing is cleared while this bridge is not the active one. */
  readonly early: Pick<StartupBuffer, 'role'>
  readonly prefixes: Pick<Prefixes, 'includes' | 'settle'>
  readonly homeAssistant: Pick<Discovery, 'has' | 'touched'> | undefined
  /** Nothing can be left under a former discovery prefix. */
  readonly onSettled: () => void
  /** More was changed than is remembered: reads everything that the broker holds. */
  readonly readEverything: () => void
  readonly clock: Clock
  readonly log: Logger
}

/** Before a first list that lacks apps is read again. */
const SECOND_LOOK_MS = 2_000
/** What others change in a row is put right together. */
const SOON_MS = 500
/** A client that writes the same again and again is corrected this often. */
const INTERVAL_MS = 4_000
const MAX_TOPICS = 10_000

export class Upkeep {
  /** Learns the names of hubs that this base topic had before, or that another bridge publishes. */
  readonly former = new FormerHubs()
  readonly #options: UpkeepOptions
  /** Hubs whose topics are not swept before they were read again; `next`: by the next read, whatever its reason. */
  readonly #unread = new Map<string, 'asked' | 'next'>()
  /** Hubs whose first list was not compared with the broker's topics yet. */
  readonly #fresh = new Set<string>()
  /** The ids of the hubs are those of the last sweep; a hub whose id becomes known requests one. */
  #state: OwnershipState
  readonly #secondLooks = new Set<() => void>()
  /** With many hubs there is much to look through, and each hub that comes asks for it. */
  readonly #sweeping: Throttle
  /** Topics of ours that others have changed. */
  #touched = new Set<string>()
  #repairedAt = Number.NEGATIVE_INFINITY
  #cancelRepair: (() => void) | undefined

  constructor(options: UpkeepOptions) {
    this.#options = options
    this.#state = { ...options, former: this.former, unread: this.#unread, fresh: this.#fresh, byId: new Map() }
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
    const { hubs, link, prefixes, live, early, onSettled, log } = this.#options
    if (early.role !== 'active' || live.awaitsHubs) return
    const byId = [...hubs].reverse().map(([name, { hub }]) => [hubIdOf(name, hub.status), hub] as const)
    this.#state = { ...this.#state, byId: new Map(byId) }
    this.#lookTwice()
    const cleared = link.sweep((topic, payload) => this.#verdictOf(topic, payload) === 'clear')
    if (cleared > 0) log.info({ topics: cleared }, 'cleared retained messages that belong to nothing any more')
    if (this.#unread.size > 0 || hubs.size === 0 || !knowsAll(hubs)) return
    prefixes.settle()
    onSettled()
  }

  /** Another client has published on a topic: if it is ours, it is put right soon. */
  touched(topic: string, payload: string): void {
    const { homeAssistant, clock } = this.#options
    const { whose, writer } = ownership(topic, payload, this.#state)
    if (whose !== 'ours') return
    if (writer === 'discovery' && payload === '') {
      // A user has deleted an entity, and Home Assistant takes down the rest of the device first.
      homeAssistant?.touched(topic, payload)
      return
    }
    if (this.#touched.size <= MAX_TOPICS) this.#touched.add(topic)
    const wait = Math.max(SOON_MS, this.#repairedAt + INTERVAL_MS - clock.elapsed())
    this.#cancelRepair ??= clock.after(wait, () => this.repair())
  }

  /** Repairs wrong topics at once. */
  repair(): void {
    const { link, readEverything, clock } = this.#options
    const touched = this.#touched
    this.forget()
    if (touched.size === 0) return
    this.#repairedAt = clock.elapsed()
    if (touched.size > MAX_TOPICS) readEverything()
    else {
      link.refresh(touched)
      this.sweep()
    }
  }

  /** What the broker holds is read: what others have changed before is put right without them. */
  forget(): void {
    this.#cancelRepair?.()
    this.#cancelRepair = undefined
    this.#touched = new Set()
  }

  stop(): void {
    for (const cancel of this.#secondLooks) cancel()
    this.#sweeping.stop()
    this.forget()
  }

  #wasRead(name: string): void {
    if (this.#unread.delete(name)) this.#sweeping.request()
  }

  /**
   * A hub that is starting, for example after a power cut, may list only a few apps. Read the list again before
   * clearing the other apps' topics.
   */
  #lookTwice(): void {
    const { hubs, topics, link, clock } = this.#options
    const read = new Set([...this.#fresh].filter((name) => hubs.get(name)?.hub.apps.complete === true))
    if (read.size === 0) return
    const doubtful = new Set<string>()
    link.sweep((topic, payload) => {
      const owner = topics.parse(topic)?.owner
      const isFirst = owner?.kind === 'app' && read.has(owner.hub) && !this.#unread.has(owner.hub)
      if (isFirst && this.#verdictOf(topic, payload) === 'wait') doubtful.add(owner.hub)
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

  /** @param payload '' if it was too large to be kept */
  #verdictOf(topic: string, payload: string): Ownership['verdict'] {
    return ownership(topic, payload === '' ? undefined : payload, this.#state).verdict
  }
}
