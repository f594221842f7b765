/** Publishes the devices of the bridge, the hubs and the apps. Publishes them again when Home Assistant starts. */
import type { Logger } from 'pino'
import type { BridgeOptions, Discovery } from '../bridge/bridge-options.ts'
import type { Config } from '../config/options.ts'
import { createDiscoveryTopics, hubIdOf, nameIn, objectIdOf, parseDiscoveryTopic } from '../contract/discovery.ts'
import { type CommandPolicy, policyOf } from '../contract/permissions.ts'
import type { App, Change } from '../hub/app.ts'
import type { Hub } from '../hub/hub.ts'
import type { Message } from '../mqtt/types.ts'
import { settingEntities } from './app-entities.ts'
import { appDevice, bridgeDevice, deviceDiffers, type HubFacts, hubDevice, type Surroundings } from './device.ts'
import { ENTITIES } from './entities.ts'
import { type DeviceKind, type Entity, guardedForm, isOffered } from './entity.ts'
import { type DiscoveryLink, Publisher } from './publisher.ts'
import { TRIGGERS } from './triggers.ts'

interface HomeAssistantOptions extends Pick<BridgeOptions, 'topics' | 'version' | 'clock'> {
  readonly hubs: ReadonlyMap<string, { readonly hub: Hub; readonly url: string }>
  readonly live: {
    readonly value: Pick<Config, 'commands' | 'guard' | 'updates' | 'discovery' | 'settings' | 'hubs' | 'http'>
  }
  /** Whether other bridges serve other hubs of the configuration; default: no. */
  readonly isShared?: boolean
  /** Returns numbers from 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number
  readonly log: Logger
}

/** A hub whose id is known. */
interface DiscoveredHub {
  readonly facts: HubFacts
  /** The data on which all devices of the hub depend, as text. */
  readonly signature: string
  readonly entities: Readonly<Record<'app' | 'hub', readonly Entity[]>>
}

/** How long the devices of a removed hub remain. A hub that is renamed is removed first, and then added again. */
const REMOVAL_DELAY_MS = 15_000
/** How long a new hub's devices wait for the sweep, which may in turn wait for a hub that does not answer. */
const SWEEP_WAIT_MS = 60_000
/** Delay after Home Assistant's birth message, when Home Assistant is busy and many clients reply to the message. */
const BIRTH_MS = { least: 1_000, spread: 4_000 }

export class HomeAssistant implements Discovery {
  readonly #options: HomeAssistantOptions
  readonly #link: DiscoveryLink
  readonly #publisher: Publisher
  readonly #discovered = new Map<string, DiscoveredHub>()
  /** Names of hubs that are also configured under another name, under which their devices are published. */
  readonly #duplicates = new Set<string>()
  /** Id of a removed hub whose devices are cleared later → function that cancels this. */
  readonly #leaving = new Map<string, () => void>()
  /**
   * Id of a hub that has not answered in this run → a message of its device from an earlier run; `undefined` before the
   * first connection.
   */
  #formerHubs: Map<string, string> | undefined
  /** Name of a hub that waits for the sweep → function that cancels the timeout of the wait. */
  readonly #waiting = new Map<string, () => void>()
  #bridgeId: string | null = null
  /** The hub ids in bridge devices that an earlier run published; empty once `#bridgeId` is determined. */
  #formerBridgeIds: ReadonlySet<string | undefined> = new Set()
  #cancelBirth: () => void = () => {}

  constructor(options: HomeAssistantOptions, link: DiscoveryLink) {
    const { live, hubs, clock } = options
    const { format, prefix, rate } = live.value.discovery
    this.#options = options
    this.#link = link
    // A fleet member does not clear the devices of a previous hub, because another member may serve that hub.
    if (options.isShared) this.#formerHubs = new Map()
    const form = format === 'component' ? 'component' : 'device'
    const isBusy = () => hubs.values().some(({ hub }) => hub.isStarting)
    this.#publisher = new Publisher({ link, clock, topics: createDiscoveryTopics(prefix), form, rate, isBusy })
  }

  connected(): void {
    const former = this.#former()
    this.#formerBridgeIds = new Set(former.bridge.keys())
    this.#discover(former.hub)
    this.#bridgeChanged()
  }

  swept(): void {
    if (this.#waiting.size > 0) this.#discover(this.#former().hub)
  }

  /** Finds devices that this run has not published: hub id → one message of the hub's or the bridge's device. */
  #former() {
    const former = { hub: new Map<string, string>(), bridge: new Map<string, string>() }
    for (const [[topic, payload] = ['', '']] of this.#publisher.readRetained().values()) {
      const owner = parseDiscoveryTopic(topic)?.owner
      if (owner === undefined || owner.kind === 'app') continue
      if (payload.includes(this.#options.topics.mark)) former[owner.kind].set(owner.hubId, payload)
    }
    return former
  }

  #discover(formerHubs: Map<string, string>): void {
    const { hubs, isShared } = this.#options
    for (const { facts } of this.#discovered.values()) formerHubs.delete(facts.id)
    if (!isShared) this.#formerHubs = formerHubs
    for (const name of hubs.keys()) if (!this.#discovered.has(name)) this.hubChanged(name)
  }

  stop(): void {
    this.#publisher.stop()
    this.#cancelBirth()
    for (const cancel of [...this.#waiting.values(), ...this.#leaving.values()]) cancel()
  }

  receive({ payload, retain }: Pick<Message, 'payload' | 'retain'>): void {
    if (!retain && payload.toString() === 'online') this.#homeAssistantStarted()
  }

  touched(topic: string, payload: string): void {
    this.#publisher.touched(topic, payload)
  }

  has(prefix: string, objectId: string): boolean {
    return this.#publisher.has(prefix, objectId)
  }

  appsChanged(name: string, changes: readonly Change[]): void {
    const hubId = this.#discovered.get(name)?.facts.id
    if (hubId === undefined) return
    for (const change of changes) {
      if (change.after === undefined) this.#publisher.withdraw(objectIdOf({ kind: 'app', hubId, app: change.id }))
      else if (deviceDiffers(change)) this.#appChanged(name, change.after)
    }
  }

  reconfigured(): void {
    for (const name of this.#options.hubs.keys()) this.hubChanged(name)
    this.#bridgeChanged()
  }

  /** Returns `true` if the hub or its permissions have changed, or the hub waits for a sweep. */
  hubChanged(name: string, isOverdue = false): boolean {
    const bridged = this.#options.hubs.get(name)
    if (bridged === undefined) return false
    const id = hubIdOf(name, bridged.hub.status)
    if (id === null) return false
    const isAnother = this.#forgetFormer(name, id)
    if (this.#isDuplicate(name, id)) return isAnother
    if (!isOverdue && this.#mustWait(name, id)) return true
    const { hub, url } = bridged
    const { firmware, api } = hub.status
    const facts = { name, id, firmware, api, url }
    const entities = { app: this.#offered('app', hub), hub: this.#offered('hub', hub) }
    const signature = this.#signature(facts, [...entities.app, ...entities.hub], hub)
    if (this.#discovered.get(name)?.signature === signature) return false
    this.#discovered.set(name, { facts, signature, entities })
    this.#formerHubs?.delete(id)
    this.#waiting.get(name)?.()
    this.#waiting.delete(name)
    // The hub returns under another name, perhaps without some of its apps.
    if (this.#stays(id)) this.#publisher.withdrawAll(objectIdOf({ kind: 'hub', hubId: id }), REMOVAL_DELAY_MS)
    this.#bridgeChanged()
    this.#wantHub(name)
    for (const app of hub.apps.all.values()) this.#appChanged(name, app)
    return true
  }

  hubRemoved(name: string): void {
    const discovered = this.#discovered.get(name)
    this.#discovered.delete(name)
    this.#duplicates.delete(name)
    if (discovered !== undefined) this.#leave(discovered.facts)
    this.#bridgeChanged()
    for (const other of [...this.#discovered.keys(), ...this.#duplicates]) this.hubChanged(other)
  }

  hubReleased(name: string): void {
    const discovered = this.#discovered.get(name)
    this.#discovered.delete(name)
    this.#duplicates.delete(name)
    if (discovered !== undefined) this.#publisher.releaseAll(objectIdOf({ kind: 'hub', hubId: discovered.facts.id }))
  }

  hubTaken(hubId: string): void {
    if (this.#stays(hubId)) this.#publisher.releaseAll(objectIdOf({ kind: 'hub', hubId }))
  }

  /** Clears the devices of a removed hub later, once no other hub can still turn out to be this hub. */
  #leave(facts: HubFacts): void {
    const { id, name } = facts
    const { clock, hubs } = this.#options
    const end = () => {
      // Do not wait if another hub has the name: its states and commands have the topics of these devices.
      const waits = hubs.entries().some(([other, { hub }]) => hubIdOf(other, hub.status) === null)
      if (waits && !this.#discovered.has(name)) return this.#leave(facts)
      this.#leaving.delete(id)
      this.#publisher.withdrawAll(objectIdOf({ kind: 'hub', hubId: id }))
      this.#bridgeChanged()
    }
    this.#leaving.set(id, clock.after(REMOVAL_DELAY_MS, end))
  }

  /** Returns whether the hub was leaving. */
  #stays(id: string): boolean {
    this.#leaving.get(id)?.()
    return this.#leaving.delete(id)
  }

  /**
   * Returns whether the previous hub of this name may still have devices. Until these are cleared, Home Assistant would
   * give different ids to the new hub's entities.
   */
  #mustWait(name: string, id: string): boolean {
    const { topics, clock } = this.#options
    const former = this.#formerHubs
    if (former === undefined) return true
    // A hub without an id may be the previous hub. In that case, its devices stay.
    if (this.#discovered.has(name) || former.has(id) || nameIn(id) !== undefined) return false
    const state = JSON.stringify(topics.of('hubState', { hub: name }))
    if (!former.values().some((payload) => payload.includes(state))) return false
    if (this.#waiting.has(name)) return true
    const giveUp = () => {
      this.#waiting.delete(name)
      this.hubChanged(name, true)
    }
    this.#waiting.set(name, clock.after(SWEEP_WAIT_MS, giveUp))
    return true
  }

  /** Removes the devices of the previous id if a different hub answers under this name, or the hub now sends its id. */
  #forgetFormer(name: string, id: string): boolean {
    const former = this.#discovered.get(name)?.facts.id
    if (former === undefined || former === id) return false
    this.#discovered.delete(name)
    this.#publisher.withdrawAll(objectIdOf({ kind: 'hub', hubId: former }))
    for (const other of [...this.#duplicates]) this.hubChanged(other)
    return true
  }

  hubAdded(): void {
    for (const name of this.#discovered.keys()) this.hubChanged(name)
  }

  /** Returns whether the hub is already published under another name. Its devices cannot exist twice. */
  #isDuplicate(name: string, hubId: string): boolean {
    let first: string | undefined
    // Skip this slow search for a known hub, because all hubs are checked whenever a hub is added.
    if (this.#discovered.get(name)?.facts.id !== hubId) {
      for (const { facts } of this.#discovered.values()) if (facts.id === hubId) first ??= facts.name
    }
    if (first === undefined) {
      this.#duplicates.delete(name)
      return false
    }
    if (this.#duplicates.has(name)) return true
    this.#duplicates.add(name)
    const twice = 'this hub is configured twice; it is published to Home Assistant under the other name only'
    this.#options.log.warn({ hub: name, same_as: first }, twice)
    return true
  }

  #appChanged(name: string, app: App): void {
    const discovered = this.#discovered.get(name)
    const hub = this.#options.hubs.get(name)?.hub
    if (discovered === undefined || hub === undefined) return
    const { live } = this.#options
    const { id, name: shown, version, author, origin } = app
    this.#publisher.want(objectIdOf({ kind: 'app', hubId: discovered.facts.id, app: id }), () => {
      const own = settingEntities(live.value.settings.publish.get(id)).filter((entity) =>
        isOffered(entity, hub, this.#policy),
      )
      const entities = [...discovered.entities.app, ...own]
      return appDevice(entities, discovered.facts, { id, name: shown, version, author, origin }, this.#surroundings)
    })
  }

  /**
   * Gives the bridge's device the id of a hub, because an id from the bridge's topics could change. Keeps the id that
   * the device had before, if possible; otherwise uses the id of the first hub.
   */
  #bridgeChanged(): void {
    // A fleet has no bridge devices: a hub may move between members, and its `via_device` should not change then.
    if (this.#options.isShared) return
    const ids = () => this.#options.hubs.keys().map((name) => this.#discovered.get(name)?.facts.id)
    const [before, former] = [this.#bridgeId, this.#formerBridgeIds]
    const found = former.size > 0 ? ids().find((id) => former.has(id)) : undefined
    // A hub that has not answered yet may have the previous id.
    const mustWait = found === undefined && former.size > 0 && ids().some((id) => id === undefined)
    const kept = before !== null && this.#leaving.has(before) ? before : ids().find((known) => known === before)
    const id = mustWait ? null : (found ?? kept ?? ids().next().value ?? null)
    if (id === null && !mustWait) return
    this.#bridgeId = id
    if (id !== null) this.#formerBridgeIds = new Set()
    // Withdraw the previous device first, so that Home Assistant can give its entity ids to the new entities.
    if (before !== null && before !== id) this.#publisher.withdraw(objectIdOf({ kind: 'bridge', hubId: before }))
    if (id !== null) {
      const objectId = objectIdOf({ kind: 'bridge', hubId: id })
      this.#publisher.want(objectId, () => bridgeDevice(this.#offered('bridge', undefined), this.#surroundings, id))
    }
    if (before === id) return
    for (const name of this.#discovered.keys()) this.#wantHub(name)
  }

  #wantHub(name: string): void {
    const discovered = this.#discovered.get(name)
    if (discovered === undefined) return
    const objectId = objectIdOf({ kind: 'hub', hubId: discovered.facts.id })
    this.#publisher.want(objectId, () => hubDevice(discovered.entities.hub, discovered.facts, this.#surroundings))
  }

  #homeAssistantStarted(): void {
    const { topics, hubs, clock, random } = this.#options
    this.#cancelBirth()
    this.#cancelBirth = clock.after(BIRTH_MS.least + random() * BIRTH_MS.spread, () => {
      const states = [...hubs.keys()].map((hub) => topics.of('hubState', { hub }))
      // Publish availability first, because no entity is available without it. Do not publish it again with the states.
      const availability = new Set([topics.hubsAvailability, ...states])
      this.#link.refresh(availability)
      this.#publisher.publishAgain(availability)
    })
  }

  #signature(facts: HubFacts, offered: readonly Entity[], hub: Hub): string {
    const { publish } = this.#options.live.value.settings
    const settings = [...publish].map(([app, names]) => [app, [...names]])
    const keys = offered.map(({ device, key }) => [device, key])
    const ofSettings = [...publish.values()].flatMap(settingEntities)
    const offersSettings = ofSettings.some((one) => isOffered(one, hub, this.#policy))
    return JSON.stringify([facts, this.#severalHubs, this.#publicUrl, keys, settings, offersSettings])
  }

  #offered(device: DeviceKind, hub: Hub | undefined): Entity[] {
    const policy = this.#policy
    const offered = ENTITIES.filter((one) => one.device === device && isOffered(one, hub, policy))
    return policy.guarded ? offered.map(guardedForm) : offered
  }

  get #policy(): CommandPolicy {
    return policyOf(this.#options.live.value)
  }

  /** Counts all configured hubs. Otherwise, a hub that connects late would change the names of other hubs' apps. */
  get #severalHubs(): boolean {
    const { hubs, live, isShared } = this.#options
    return (isShared ? Object.keys(live.value.hubs).length : hubs.size) > 1
  }

  get #publicUrl(): string | null {
    const { enabled, page, public_url } = this.#options.live.value.http
    return enabled && page ? public_url : null
  }

  get #surroundings(): Surroundings {
    const { topics, version, live } = this.#options
    const triggers = TRIGGERS.filter(
      ({ when }) => live.value.discovery.triggers && (when !== 'guard' || this.#policy.guarded),
    )
    const [bridgeId, severalHubs, publicUrl] = [this.#bridgeId, this.#severalHubs, this.#publicUrl]
    return { topics, version, bridgeId, severalHubs, publicUrl, triggers }
  }
}
