/** Clears obsolete retained messages as soon as that is safe, and restores topics that other clients have changed. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { Throttle } from '../base/throttle.ts'
import { hubIdOf, isOfBridge } from '../contract/discovery.ts'
import { asHubError } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import type { MqttLink } from '../mqtt/link.ts'
import type { BridgeOptions, Discovery, FleetSide } from './bridge-options.ts'
import { FormerHubs, type Prefixes } from './former.ts'
import { areComplete, type Ownership, type OwnershipState, ownership, type ServedHub } from './ownership.ts'
import type { StartupBuffer } from './startup-buffer.ts'

type UpkeepHub = Pick<Hub, 'refresh'> & { readonly apps: Pick<Hub['apps'], 'firstIsPartial'> }

interface UpkeepOptions extends Omit<OwnershipState, 'byId' | 'former' | 'pendingReads' | 'fresh'> {
  readonly hubs: ReadonlyMap<string, { readonly hub: ServedHub & UpkeepHub }>
  readonly live: OwnershipState['live'] & Pick<BridgeOptions['live'], 'awaitsHubs'>
  readonly link: Pick<MqttLink, 'sweep' | 'refresh' | 'startOver'>
  readonly fleet?: Pick<FleetSide, 'member' | 'inherits'> | undefined
  /** Messages are cleared only while this bridge is active. */
  readonly early: Pick<StartupBuffer, 'role'>
  readonly prefixes: Pick<Prefixes, 'includes' | 'settle'>
  readonly homeAssistant: Pick<Discovery, 'has' | 'swept' | 'touched'> | undefined
  /** Called when no message can be left under an earlier discovery prefix. */
  readonly onSettled: () => void
  readonly clock: Clock
  readonly log: Logger
}

const REREAD_DELAY_MS = 2_000
/** Topics that other clients change within this time are restored together. */
const SOON_MS = 500
/** The minimum time between two repairs, because a client may keep changing the same topics. */
const INTERVAL_MS = 4_000
const MAX_TOPICS = 10_000
/** How often a device is restored before it is left to another bridge that overwrites it again each time. */
const MAX_RESTORES = 2
/** After this time without such an overwrite, the count starts again. */
const CALM_MS = 60_000
/** How long such devices are left to the other bridge. Then this bridge tries again, because the other may be gone. */
const YIELD_MS = 10 * 60_000

const YIELDED =
  'another hub2mqtt publishes the same devices under this discovery.prefix, and this one leaves them to it; stop one of them, or give each its own discovery.prefix'

export class Upkeep {
  /** Hubs that this bridge has served before, or that another bridge with the same base topic serves. */
  readonly former = new FormerHubs()
  readonly #options: UpkeepOptions
  /**
   * Hubs that are not swept until their list is read, on request (`requested`) or, if that fails, by the `next` read.
   */
  readonly #pendingReads = new Map<string, 'requested' | 'next'>()
  /** Hubs whose first list of apps has not been compared with the broker's topics yet. */
  readonly #fresh = new Set<string>()
  /** Contains the hub ids at the last sweep; a new hub id causes another sweep. */
  #state: OwnershipState
  readonly #cancelRereads = new Set<() => void>()
  /** A sweep over many hubs is expensive, and each new hub requests a sweep. */
  readonly #sweeping: Throttle
  /** Topics of this bridge that another client has changed. */
  #touched = new Set<string>()
  #repairedAt = Number.NEGATIVE_INFINITY
  #cancelRepair: (() => void) | undefined
  /** Topics of devices that are left to another bridge, which has a different base topic. */
  readonly #yielded = new Set<string>()
  /** Topic of a device that such a bridge overwrites → how often this bridge would have to restore it. */
  readonly #restores = new Map<string, number>()
  #overwrittenAt = Number.NEGATIVE_INFINITY
  #yields = false
  #cancelYield: (() => void) | undefined

  constructor(options: UpkeepOptions) {
    this.#options = options
    this.#state = {
      ...options,
      former: { has: (hub) => this.#isFormer(hub) },
      pendingReads: this.#pendingReads,
      fresh: this.#fresh,
      byId: new Map(),
    }
    this.#sweeping = new Throttle(options.clock, () => this.sweep())
  }

  request(): void {
    this.#sweeping.request()
  }

  /** Call this for each new hub, and after each read-back. */
  hubAdded(name: string): void {
    this.#fresh.add(name)
  }

  hubRemoved(name: string): void {
    this.#pendingReads.delete(name)
    this.#fresh.delete(name)
  }

  listRead(name: string): void {
    if (this.#pendingReads.get(name) === 'next') this.#wasRead(name)
  }

  /** Reads hubs again, because another bridge may have published newer data about them. */
  readAgain(names: Iterable<string>): void {
    for (const name of names) {
      const hub = this.#options.hubs.get(name)?.hub
      if (hub === undefined) continue
      this.#pendingReads.set(name, 'requested')
      const failed = (error: unknown) => {
        // Do not retry: the API key does not permit reading the list.
        if (asHubError(error).code === 'forbidden') this.#wasRead(name)
        else if (this.#pendingReads.has(name)) this.#pendingReads.set(name, 'next')
      }
      void hub.refresh().then(() => this.#wasRead(name), failed)
    }
  }

  /** Clears the topics of apps and hubs that were removed, and of rows that are not enabled. */
  sweep(): void {
    const { hubs, link, prefixes, live, early, homeAssistant, onSettled, log } = this.#options
    if (early.role !== 'active' || live.awaitsHubs) return
    const byId = [...hubs].reverse().map(([name, { hub }]) => [hubIdOf(name, hub.status), hub] as const)
    this.#state = { ...this.#state, byId: new Map(byId) }
    this.#rereadDoubtful()
    const cleared = link.sweep((topic, payload) => this.#verdictOf(topic, payload) === 'clear')
    if (cleared > 0) log.info({ topics: cleared }, 'cleared retained messages that are no longer in use')
    homeAssistant?.swept()
    if (this.#pendingReads.size > 0 || hubs.size === 0 || !areComplete(hubs)) return
    prefixes.settle()
    onSettled()
  }

  /** Restores a topic soon if it belongs to this bridge. */
  touched(topic: string, payload: string): void {
    const { homeAssistant, clock } = this.#options
    const { whose, writer } = ownership(topic, payload, this.#state)
    if (whose !== 'ours') return
    if (writer === 'discovery' && payload === '') {
      // A user has deleted an entity, so Home Assistant removes the whole device. Restore the device afterwards.
      homeAssistant?.touched(topic, payload)
      return
    }
    if (writer === 'discovery' && this.#leaves(topic, payload)) return
    if (this.#touched.size <= MAX_TOPICS) this.#touched.add(topic)
    const wait = Math.max(SOON_MS, this.#repairedAt + INTERVAL_MS - clock.elapsed())
    this.#cancelRepair ??= clock.after(wait, () => this.repair())
  }

  /** Whether devices are left to another bridge. */
  get yields(): boolean {
    return this.#yields && this.#options.clock.elapsed() - this.#overwrittenAt <= 2 * YIELD_MS
  }

  /** Returns whether to leave a device to another bridge, which overwrites it again each time. */
  #leaves(topic: string, payload: string): boolean {
    const { topics, clock, log } = this.#options
    if (payload.includes(topics.mark) || !isOfBridge(payload)) return false
    const yielded = this.yields
    if (!yielded && clock.elapsed() - this.#overwrittenAt > CALM_MS) this.#restores.clear()
    this.#overwrittenAt = clock.elapsed()
    const restores = this.#restores.get(topic) ?? 0
    const isRestored = !this.#touched.has(topic)
    if (isRestored && this.#restores.size < MAX_TOPICS) this.#restores.set(topic, restores + 1)
    this.#yields = yielded || (isRestored && restores >= MAX_RESTORES)
    if (!this.#yields) return false
    if (!yielded) log.error({ topic }, YIELDED)
    if (this.#yielded.size <= MAX_TOPICS) this.#yielded.add(topic)
    this.#cancelYield ??= clock.after(YIELD_MS, () => this.repair())
    return true
  }

  repair(): void {
    const { link, clock } = this.#options
    const touched = this.#touched.union(this.#yielded)
    this.forget()
    if (touched.size === 0) return
    this.#repairedAt = clock.elapsed()
    // Not all topics were recorded, so read all of them again.
    if (touched.size > MAX_TOPICS) link.startOver()
    else {
      link.refresh(touched)
      this.sweep()
    }
  }

  /** Cancels pending repairs. Call this before all retained messages are read again, because this read replaces them. */
  forget(): void {
    this.#cancelRepair?.()
    this.#cancelYield?.()
    this.#cancelRepair = this.#cancelYield = undefined
    this.#yielded.clear()
    this.#touched = new Set()
  }

  stop(): void {
    for (const cancel of this.#cancelRereads) cancel()
    this.#sweeping.stop()
    this.forget()
  }

  #wasRead(name: string): void {
    if (this.#pendingReads.delete(name)) this.#sweeping.request()
  }

  /** Reads a list again if it lacks apps that have topics, because a starting hub may list only a few apps. */
  #rereadDoubtful(): void {
    const { hubs, topics, link, clock } = this.#options
    const isRead = (name: string) => hubs.get(name)?.hub.apps.complete === true && !this.#pendingReads.has(name)
    const read = new Set([...this.#fresh].filter(isRead))
    if (read.size === 0) return
    const doubtful = new Set<string>()
    link.sweep((topic, payload) => {
      const owner = topics.parse(topic)?.owner
      const isFirst = owner?.kind === 'app' && read.has(owner.hub)
      if (isFirst && this.#verdictOf(topic, payload) === 'wait') doubtful.add(owner.hub)
      return false
    })
    for (const name of read) this.#fresh.delete(name)
    if (doubtful.size === 0) return
    for (const name of doubtful) {
      this.#pendingReads.set(name, 'requested')
      const apps = hubs.get(name)?.hub.apps
      if (apps !== undefined) apps.firstIsPartial = true
    }
    const cancel = clock.after(REREAD_DELAY_MS, () => {
      this.#cancelRereads.delete(cancel)
      this.readAgain(doubtful)
    })
    this.#cancelRereads.add(cancel)
  }

  /** In a fleet, another member may still serve a hub that this member no longer has. */
  #isFormer(hub: string): boolean {
    const { fleet } = this.#options
    const isKnown = this.former.has(hub)
    if (fleet === undefined) return isKnown
    const member = isKnown ? fleet.member : this.former.memberOf(hub)
    return member !== undefined && fleet.inherits(hub, member)
  }

  /** @param payload empty if it was too large to store */
  #verdictOf(topic: string, payload: string): Ownership['verdict'] {
    return ownership(topic, payload === '' ? undefined : payload, this.#state).verdict
  }
}
