/** Connects hubs and the broker: publishes hub data as retained state and events, and executes commands on the hubs. */
import { policyOf } from '../contract/permissions.ts'
import type { HealthReport, Role } from '../contract/schemas.ts'
import type { OwnTopic } from '../contract/topics.ts'
import type { Hub } from '../hub/hub.ts'
import type { MqttLink } from '../mqtt/link.ts'
import type { LinkHandlers, LinkStatus, Message } from '../mqtt/types.ts'
import { logActivity } from './activity-log.ts'
import { AppUpdates } from './app-updates.ts'
import type { BridgeOptions } from './bridge-options.ts'
import { type BridgeState, newBridgeState } from './bridge-state.ts'
import { Dispatcher } from './dispatcher.ts'
import { Evidence } from './evidence.ts'
import { Prefixes } from './former.ts'
import { guardedHub } from './guarding.ts'
import { HubState, type HubStateOptions, limitLargeReads } from './hub-state.ts'
import { LogLevels } from './log-level.ts'
import { rowTable } from './owner-rows.ts'
import { Presence } from './presence.ts'
import type { CommandEnd, Requester } from './requests.ts'
import { StartupBuffer } from './startup-buffer.ts'
import { Upkeep } from './upkeep.ts'

interface BridgeHandlers extends Pick<LinkHandlers, 'observer' | 'onStatus'> {
  /** Called when another bridge has started or stopped, or this bridge's role has changed. */
  readonly onPresence?: () => void
  readonly onAnswer?: (end: CommandEnd) => void
  readonly onReadBack?: (topic: string, payload: string) => void
  readonly onTouched?: (topic: string, payload: string) => void
}

/** How long another bridge that is stopping or switching to standby may still send queued messages. */
const GRACE_MS = 2_000
/** Minimum time between immediate corrections of a wrong `offline`; other corrections wait for the next repair. */
const CORRECTION_INTERVAL_MS = 1_000

export class Bridge {
  readonly #options: BridgeOptions
  /** Filled by `start`. */
  readonly #handlers: BridgeHandlers = {}
  readonly #link: MqttLink
  readonly #state: BridgeState
  readonly #dispatcher: Dispatcher
  readonly #states = new Map<string, HubState>()
  readonly #stateOptions: HubStateOptions
  readonly #updates: AppUpdates
  readonly evidence: Evidence
  readonly logLevels: LogLevels
  /** Whether this bridge has been active. If so, the guardian has already loaded its state from the broker. */
  #wasActive = false
  readonly #presence: Presence
  readonly #early: StartupBuffer
  #reportedStandby = false
  /** Set while another bridge may have published newer data about the hubs. */
  #wasReplaced = false
  #protocol: LinkStatus['protocol'] = null
  /** Set during a deliberate reconnect, while no other bridge can have become active. */
  #startingOver = false
  /** The retained state of the bridge when the connection began. */
  #foundState: string | undefined
  readonly #prefixes: Prefixes
  readonly upkeep: Upkeep
  #correctedAt = Number.NEGATIVE_INFINITY
  #cancelStartOver: () => void = () => {}

  constructor(options: BridgeOptions, link: MqttLink) {
    this.#options = options
    this.#link = link
    const { topics, live, fleet, clock, rollouts } = options
    const log = options.log.child({ part: 'bridge' })
    const shared = { evidence: new Evidence(clock, log), largeReads: limitLargeReads(clock) }
    const common = { ...options, ...shared, link, log, isShared: fleet !== undefined }
    this.evidence = shared.evidence
    // Publish nothing until it is known whether another bridge is active.
    link.setWriting(false)
    const { discovery } = live.value
    this.#early = new StartupBuffer(clock, link)
    this.#updates = new AppUpdates(clock)
    const table = rowTable(topics, link, common.log, (when) =>
      when === 'fleet' ? fleet !== undefined : when !== 'discovery' || discovery.format !== 'off',
    )
    this.#state = newBridgeState(options, table)
    this.logLevels = new LogLevels(live.value.log.level, options, (logLevel) => this.#state.set({ logLevel }))
    this.#prefixes = new Prefixes(discovery.prefix, topics.of('bridgeDiscovery', {}), discovery.format !== 'off')
    this.upkeep = new Upkeep({
      ...common,
      early: this.#early,
      states: this.#states,
      prefixes: this.#prefixes,
      onSettled: () => this.#state.set({ prefixes: this.#prefixes.all }),
    })
    this.#dispatcher = new Dispatcher({
      ...common,
      states: this.#states,
      handlers: this.#handlers,
      repair: () => {
        this.upkeep.repair()
        link.readTransient()
      },
      control: { setLogLevel: (level, forMs) => this.logLevels.set(level, forMs), rollouts },
      audit: options.log.audit,
    })
    this.#presence = new Presence({
      ...common,
      topic: topics.of('bridgePresence', {}),
      onChange: (before) => this.#onPresence(before),
      onOtherActive: () => this.#onOtherActive(),
      upkeep: this.upkeep,
    })
    this.#stateOptions = { ...common, table, upkeep: this.upkeep, updates: this.#updates, early: this.#early }
  }

  start(handlers: BridgeHandlers): void {
    Object.assign(this.#handlers, handlers)
    this.#state.set({})
    this.#link.start({
      observer: handlers.observer,
      onStatus: (status) => {
        if (status.state === 'waiting') this.#startingOver = false
        handlers.onStatus?.(status)
      },
      onReadBack: (topic, payload) => {
        handlers.onReadBack?.(topic, payload)
        return this.#additionalFilters(topic, payload)
      },
      onTouched: (topic, payload) => {
        handlers.onTouched?.(topic, payload)
        this.#onTouched(topic, payload)
      },
      onAccepted: () => {
        // Another bridge may have become active since the previous connection was lost.
        if (this.#early.role === 'active' && !this.#startingOver) this.#early.role = 'undecided'
        this.evidence.readsBack()
      },
      onConnected: (status) => this.#onConnected(status),
      onMessage: (message) => {
        const { topics, live, homeAssistant } = this.#options
        if (this.#early.isClosed) return
        const { birth_topic } = live.value.discovery
        if (message.topic === topics.of('bridgePresence', {})) this.#presence.receive(message)
        else if (message.topic === birth_topic) this.#early.run(() => homeAssistant?.receive(message))
        else if (this.#early.role === 'active') this.#dispatcher.receive(message)
        else this.#early.keep(message, this.#dispatcher)
      },
      onStartOver: () => {
        this.#startingOver = true
      },
      // Do not move to a different broker address while commands run, because the move would make them expire.
      isBusy: () => this.#dispatcher.isBusy,
    })
  }

  healthChanged(health: HealthReport): void {
    this.#state.set({ health })
    if (this.role !== 'standby' || this.#reportedStandby) return
    this.#reportedStandby = true
    // The message is not retained, because the topic belongs to the active bridge.
    this.#link.send(this.#options.topics.of('bridgeHealth', {}), JSON.stringify(health))
  }

  /** Call this for a new hub in `hubs`. Its topics remain unchanged until its state is known. */
  addHub(name: string, hub: Hub): HubState {
    const { live, guardian, homeAssistant, log } = this.#options
    this.upkeep.hubAdded(name)
    const state = new HubState(name, hub, this.#stateOptions)
    this.#states.set(name, state)
    logActivity(hub, state, () => live.value.commands, log.child({ part: 'apps', hub: name }))
    guardian.hubAdded(
      name,
      guardedHub(hub, state, {
        policy: () => policyOf(live.value),
        send: (order) => this.#dispatcher.send({ ...order, hub: name }),
        memory: (app, since) => this.evidence.samples.memory(name, app, since),
      }),
    )
    this.#state.follow(name, hub)
    homeAssistant?.hubAdded()
    return state
  }

  /** Call this for a hub that was removed from `hubs`. Clears its topics. */
  removeHub(name: string): void {
    const { guardian, homeAssistant, live } = this.#options
    this.upkeep.hubRemoved(name)
    this.upkeep.former.add(name)
    guardian.hubRemoved(name)
    this.#states.get(name)?.clear()
    this.#states.delete(name)
    homeAssistant?.hubRemoved(name)
    for (const other of Object.keys(live.value.hubs)) this.#leaveDevices(other)
    this.#state.hubsChanged()
    this.upkeep.sweep()
  }

  hubsComplete(): void {
    this.upkeep.sweep()
    if (this.#early.role !== 'active' || this.#options.live.awaitsHubs) return
    // Overwrite the broker's list of hubs only after the sweep. Until then, a restarted bridge needs the old list.
    this.#state.set({ protocol: this.#protocol })
  }

  /** Like `removeHub`, but leaves the topics to another member of the fleet. */
  releaseHub(name: string): void {
    const { topics, guardian, homeAssistant } = this.#options
    this.upkeep.hubRemoved(name)
    guardian.hubReleased(name)
    this.#states.get(name)?.release()
    this.#states.delete(name)
    homeAssistant?.hubReleased(name)
    this.#state.hubsChanged()
    this.#link.release((topic) => {
      const owner = topics.parse(topic)?.owner
      return owner !== undefined && owner.kind !== 'bridge' && owner.hub === name
    })
  }

  /** Call this after the members, the epoch or the leader of the fleet have changed. */
  fleetChanged(): void {
    const { fleet, topics } = this.#options
    if (fleet === undefined) return
    this.#state.set({ fleet: fleet.isLeader ? fleet.payload : undefined })
    if (!fleet.isLeader) this.#link.release((topic) => topic === topics.of('fleet', {}))
    for (const state of this.#states.values()) state.changed()
    this.upkeep.request()
  }

  reconfigured(): void {
    const { guardian, homeAssistant } = this.#options
    guardian.reconfigured()
    for (const state of this.#states.values()) state.reconfigured()
    homeAssistant?.reconfigured()
  }

  #onConnected({ protocol, probe }: LinkStatus): void {
    this.#protocol = protocol
    const keepsRole = this.#early.role === 'active' && this.#startingOver
    this.#startingOver = false
    this.#early.role = 'undecided'
    this.upkeep.forget()
    const isOccupied = probe !== 'ok' || this.#foundState === 'online' || this.contested
    this.#presence.connected(!keepsRole && isOccupied, this.#foundState === 'offline')
    this.#foundState = undefined
    this.#followRole()
  }

  #followRole(): void {
    const { role } = this
    if (role === 'active' && this.#early.role !== 'active') this.#activate()
    this.#early.role = role
    this.#link.setWriting(role === 'active')
    if (role !== 'standby') return
    this.#options.guardian.standBy()
    this.#early.drop()
    this.#wasReplaced = true
  }

  #activate(): void {
    const { hubs, guardian, homeAssistant } = this.#options
    this.#early.role = 'active'
    this.#reportedStandby = false
    homeAssistant?.connected()
    this.#state.set({ prefixes: this.#prefixes.all })
    // Restore the state first, because the sweep in `hubsComplete` clears topics without an owner.
    const restore = !this.#wasActive || this.#wasReplaced
    if (restore) for (const state of this.#states.values()) state.activate(this.#wasReplaced)
    else this.evidence.readsBack()
    guardian.activate(restore)
    this.#wasActive = true
    for (const name of hubs.keys()) this.upkeep.hubAdded(name)
    if (this.#wasReplaced) this.upkeep.readAgain(hubs.keys())
    this.#wasReplaced = false
    this.hubsComplete()
    this.#early.flush()
  }

  #onPresence(before: Role): void {
    this.#followRole()
    // The other bridge has changed the retained messages, so reconnect to read them again.
    if (before === 'standby' && this.role === 'undecided') this.#link.startOver()
    this.#handlers.onPresence?.()
  }

  /** Called if a newer bridge was active too. It has executed waiting commands, and may have published wrong values. */
  #onOtherActive(): void {
    this.#early.drop()
    this.#wasReplaced = true
    this.#startOverLater()
  }

  #startOverLater(): void {
    this.#cancelStartOver()
    this.#cancelStartOver = this.#options.clock.after(GRACE_MS, () => this.#link.startOver())
  }

  /** Learns from a retained message. Returns filters for the discovery topics of earlier configurations. */
  #additionalFilters(topic: string, payload: string): string[] {
    const own = this.#options.topics.parse(topic)
    if (own?.name === 'bridgeState') this.#foundState = payload
    if (own !== undefined) this.#learn(own, payload)
    return this.#prefixes.learn(topic, payload)
  }

  #onTouched(topic: string, payload: string): void {
    const { topics, hubs, fleet } = this.#options
    const own = topics.parse(topic)
    // Learn the topics that this bridge may have to clear, and the guardian state of hubs that it may take over.
    const isOfMember = fleet !== undefined && own !== undefined && 'hub' in own.owner && !hubs.has(own.owner.hub)
    if (own?.name === 'bridgeInfo' || isOfMember) this.#learn(own, payload, true)
    const isOffline = own?.name === 'bridgeState' && payload === 'offline'
    if (this.#early.role !== 'active') {
      if (isOffline) this.#presence.doubt()
      return
    }
    if (isOffline) this.#correctOffline(topic)
    else this.upkeep.touched(topic, payload)
  }

  #learn({ name, owner }: OwnTopic, payload: string, isLive = false): void {
    if (name === 'bridgeInfo') this.upkeep.former.learn(payload)
    if (owner.kind !== 'hub' && owner.kind !== 'app') return
    const { hub } = owner
    if (name === 'hubInfo') {
      this.upkeep.former.learnInfo(hub, payload)
      this.#leaveDevices(hub)
    }
    const app = owner.kind === 'app' ? owner.app : ''
    if (name === 'app') {
      if (Object.hasOwn(this.#options.live.value.hubs, hub)) this.evidence.learnState(hub, app, payload, isLive)
    } else if (name === 'hubHealth') this.#states.get(hub)?.figures.learn(payload)
    else if (name !== 'appUpdate' && name !== 'crash') this.#options.guardian.learn(name, hub, app, payload)
    else {
      const learner = name === 'crash' ? this.evidence : this.#updates
      if (learner.learn(hub, app, payload, this.#options.hubs.has(hub))) this.#states.get(hub)?.appChanged(app)
    }
  }

  /** If another member of the fleet serves this hub, leaves the devices to it: renaming a hub may move it. */
  #leaveDevices(hub: string): void {
    const { live, hubs, homeAssistant } = this.#options
    const { former } = this.upkeep
    const id = former.idOf(hub)
    if (id === undefined || former.memberOf(hub) === undefined) return
    if (!hubs.has(hub) && Object.hasOwn(live.value.hubs, hub)) homeAssistant?.hubTaken(id)
  }

  /** Corrects an `offline` that another bridge or an earlier run has published. */
  #correctOffline(bridgeState: string): void {
    const now = this.#options.clock.elapsed()
    if (now - this.#correctedAt >= CORRECTION_INTERVAL_MS) {
      this.#correctedAt = now
      this.#link.refresh([bridgeState])
    } else this.upkeep.touched(bridgeState, 'offline')
    // The other bridge may have published other wrong values as well, so reconnect to read all retained messages.
    if (this.contested) this.#startOverLater()
  }

  get contested(): boolean {
    return this.#presence.contested || this.#options.fleet?.isContested() === true
  }

  /** The role of this bridge. Only the active bridge publishes and executes commands. */
  get role(): Role {
    return this.#presence.role
  }

  get failedSettings(): number {
    return this.#states.values().reduce((sum, { settings }) => sum + settings.failures, 0)
  }

  /**
   * Executes a command that did not arrive over MQTT. Returns `false`, without an answer, if this bridge is not active.
   */
  command(message: Message, requester: Requester): boolean {
    if (this.#early.role !== 'active' || this.#early.isClosed) return false
    this.#dispatcher.receive(message, requester)
    return true
  }

  async stop(): Promise<void> {
    this.#options.guardian.standBy()
    // Record the answers to rollout steps first, because the next bridge repeats all steps without a recorded answer.
    await this.#options.rollouts.finish(this.#dispatcher.stop())
    this.#cancelStartOver()
    this.logLevels.stop()
    this.upkeep.stop()
    this.#state.stop()
    for (const state of this.#states.values()) state.stop()
    this.#early.isClosed = this.contested
    this.#presence.stop()
    // Publish `offline` if no other bridge does so. A bridge that has never been active has not published `online`.
    if (this.role === 'undecided' && this.#wasActive && !this.contested) this.#link.setWriting(true)
    this.#options.homeAssistant?.stop()
  }

  /** Yields the retained topics and payloads that the broker should have, without discovery messages. */
  *retained(): ReturnType<HubState['rendered']> {
    yield* this.#state.rendered()
    for (const state of this.#states.values()) yield* state.rendered()
  }
}
