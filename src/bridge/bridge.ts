/** The translation: what hubs say becomes retained state and events, what arrives as a command becomes a call. */

import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { BridgeControl, Command } from '../contract/commands.ts'
import { type AppEventPayload, eventsOf } from '../contract/events.ts'
import type { Topics } from '../contract/topics.ts'
import type { AppsNews } from '../hub/app-manager.ts'
import type { Hub } from '../hub/hub.ts'
import type { LogLevel } from '../log/levels.ts'
import type { Change } from '../model/reduce.ts'
import type { LinkStatus, Message } from '../mqtt/types.ts'
import { type AnswerLink, type CommandEnd, type CommandRun, Dispatcher } from './dispatcher.ts'
import { type DiscoveryConfig, HomeAssistant } from './home-assistant/home-assistant.ts'
import { renderBridgeInfo, renderHubInfo } from './info.ts'
import { Presence } from './presence.ts'
import { PublishedSettings, type SettingsToPublish } from './published-settings.ts'

/** The part of the MQTT link that the translation needs. */
export interface BridgeLink extends AnswerLink {
  /** Clears what the broker holds, nobody wants, and the predicate calls ours. Returns how many. */
  sweep(owned: (topic: string, payload: string) => boolean): number
  /** Sends again what is held on these topics. */
  refresh(topics: Iterable<string>): void
  /** Connects anew, and reads back what the broker holds. */
  startOver(): void
}

export interface BridgedHub {
  readonly hub: Hub
  readonly url: string
  /** Commands under way at once. */
  readonly concurrency: number
}

export interface BridgeOptions {
  readonly topics: Topics
  readonly hubs: ReadonlyMap<string, BridgedHub>
  readonly control: BridgeControl
  readonly allows: (command: Command) => boolean
  /** May be another one later; `reconfigured` tells. */
  readonly settings: SettingsToPublish
  readonly onEvent?: (hub: string, event: AppEventPayload) => void
  readonly onAnswer?: (end: CommandEnd) => void
  readonly discovery: DiscoveryConfig
  readonly logLevel: LogLevel
  readonly version: string
  readonly clock: Clock
  /** Numbers from 0 to under 1. */
  readonly random: () => number
  readonly log: Logger
}

/** After its goodbye another bridge may still send what had waited. */
const FAREWELL_MS = 2_000

export class Bridge {
  readonly #options: BridgeOptions
  readonly #link: BridgeLink
  readonly #dispatcher: Dispatcher
  readonly #settings = new Map<string, PublishedSettings>()
  readonly #startedAt: string
  readonly #presence: Presence
  readonly #homeAssistant: HomeAssistant
  #protocol: LinkStatus['protocol'] = null
  #cancelStartOver: () => void = () => {}

  constructor(options: BridgeOptions, link: BridgeLink) {
    this.#options = options
    this.#link = link
    this.#startedAt = iso(options.clock.now())
    const { topics, clock, log } = options
    const send = (topic: string, payload: string) => link.send(topic, payload)
    this.#presence = new Presence({ topic: topics.bridgePresence, startedAt: this.#startedAt, send, clock, log })
    this.#homeAssistant = new HomeAssistant(options, link)
    const bridge: BridgeControl = {
      setLogLevel: (level) => {
        options.control.setLogLevel(level)
        this.logLevelChanged(level)
      },
    }
    this.#dispatcher = new Dispatcher({ ...options, bridge, link, onRun: (run) => this.#onRun(run) })
  }

  start(): void {
    this.#holdBridgeInfo()
    this.logLevelChanged(this.#options.logLevel)
  }

  logLevelChanged(level: LogLevel): void {
    this.#homeAssistant.setLogLevel(level)
  }

  /** Listens to a hub that is new in `hubs`. Its topics are left as the broker has them until something is known of it. */
  addHub(name: string, hub: Hub): void {
    this.#settings.set(name, this.#settingsOf(name, hub))
    hub.apps.subscribe((news) => this.#onApps(name, hub, news))
    hub.subscribe(() => this.#onStatus(name, hub))
    this.#holdBridgeInfo()
  }

  /** Clears all topics of a hub that is no longer in `hubs`; to be called while it still knows its apps. */
  removeHub(name: string, hub: Hub): void {
    const { topics } = this.#options
    for (const id of hub.apps.all.keys()) this.#link.hold(topics.app(name, id), null)
    for (const topic of [topics.hubState(name), topics.hubInfo(name)]) this.#link.hold(topic, null)
    this.#settings.get(name)?.retire()
    this.#settings.delete(name)
    this.#homeAssistant.hubRemoved(name, hub)
    this.#holdBridgeInfo()
    this.#sweep()
  }

  /** Configuration has changed what commands may do, or which settings are published. */
  reconfigured(): void {
    for (const [name, { hub }] of this.#options.hubs) {
      const before = this.#settings.get(name)
      const after = this.#settingsOf(name, hub)
      before?.retire(after)
      this.#settings.set(name, after)
      after.refresh()
      if (hub.status.reason !== 'connecting') this.#holdHubInfo(name, hub)
    }
    this.#homeAssistant.reconfigured()
  }

  #settingsOf(name: string, hub: Hub): PublishedSettings {
    const { topics, settings, log } = this.#options
    const hold = (topic: string, payload: string | null) => this.#link.hold(topic, payload)
    return new PublishedSettings({ name, hub, settings, topics, hold, log })
  }

  /** The broker is there and what it holds is known. */
  onConnected({ protocol }: LinkStatus): void {
    this.#protocol = protocol
    this.#holdBridgeInfo()
    this.#homeAssistant.connected()
    this.#sweep()
    this.#presence.announce()
  }

  /** Filters to read back besides those of the configuration, for what an earlier one may have left. */
  furtherFilters(topic: string, payload: string): string[] {
    return this.#homeAssistant.furtherFilters(topic, payload)
  }

  /** Somebody published where only the bridge should. */
  onTouched(topic: string, payload: string): void {
    const { bridgeState } = this.#options.topics
    if (topic !== bridgeState || payload !== 'offline') {
      this.#homeAssistant.touched(topic, payload)
      return
    }
    // The goodbye of another bridge on this base topic, or of a former self: as long as we are here, it is not true.
    this.#link.refresh([bridgeState])
    if (!this.contested) return
    // Nor may be what the other one has published, or left behind.
    this.#cancelStartOver()
    this.#cancelStartOver = this.#options.clock.after(FAREWELL_MS, () => this.#link.startOver())
  }

  /** Whether another bridge uses the same base topic. */
  get contested(): boolean {
    return this.#presence.contested
  }

  onMessage(message: Message): void {
    if (message.topic === this.#options.topics.bridgePresence) this.#presence.receive(message)
    else if (!this.#homeAssistant.receive(message)) this.#dispatcher.receive(message)
  }

  stop(): void {
    this.#cancelStartOver()
    this.#presence.stop()
    this.#homeAssistant.stop()
  }

  /** A write of ours may have changed a setting, and the hub has no event for that. */
  #onRun(run: CommandRun): void {
    const { hub, app, command, phase } = run
    this.#homeAssistant.ran(run)
    if (phase === 'ended' && command.write && app !== null) this.#settings.get(hub)?.refreshApp(app)
  }

  #onApps(name: string, hub: Hub, news: AppsNews): void {
    const { topics, clock } = this.#options
    const { changes, silent, read } = news
    const at = iso(clock.now())
    for (const change of changes) {
      this.#link.hold(topics.app(name, change.id), change.after === undefined ? null : JSON.stringify(change.after))
      if (!silent) this.#sendEvents(name, change, at)
    }
    if (changes.some(({ before, after }) => before === undefined || after === undefined)) this.#holdHubInfo(name, hub)
    this.#homeAssistant.appsChanged(name, hub, news)
    if (read) this.#settings.get(name)?.refresh()
    if (silent) this.#sweep()
  }

  #sendEvents(name: string, change: Change, at: string): void {
    const { topics, onEvent } = this.#options
    for (const event of eventsOf(change, at)) {
      onEvent?.(name, event)
      const payload = JSON.stringify(event)
      this.#link.send(topics.hubEvent(name), payload)
      this.#link.send(topics.appEvent(name, change.id), payload)
    }
  }

  #onStatus(name: string, hub: Hub): void {
    this.#holdHubInfo(name, hub)
    this.#link.hold(this.#options.topics.hubState(name), hub.status.online ? 'online' : 'offline')
    this.#homeAssistant.hubChanged(name)
    this.#holdBridgeInfo()
  }

  #holdHubInfo(name: string, hub: Hub): void {
    this.#link.hold(this.#options.topics.hubInfo(name), renderHubInfo(hub, this.#options.allows))
  }

  #holdBridgeInfo(): void {
    const { topics, version, hubs } = this.#options
    const info = { version, startedAt: this.#startedAt, protocol: this.#protocol, hubs }
    this.#link.hold(topics.bridgeInfo, renderBridgeInfo(info))
  }

  /**
   * Clears what earlier runs left behind: apps that are gone, hubs that are no longer configured. Nothing of a hub is
   * touched before its list has been read, as then everything would look gone.
   */
  #sweep(): void {
    const { topics, hubs, log } = this.#options
    const cleared = this.#link.sweep((topic) => {
      const owner = topics.ownerOf(topic)
      if (owner === undefined || owner === 'bridge') return false
      const bridged = hubs.get(owner)
      if (this.#settings.get(owner)?.publishesOn(topic)) return false
      return bridged === undefined || bridged.hub.apps.complete
    })
    if (cleared > 0) log.info({ topics: cleared }, 'cleared retained messages that belong to nothing any more')
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
