/** The translation: what hubs say becomes retained state and events, what arrives as a command becomes a call. */

import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import type { AppsNews } from '../hub/app-manager.ts'
import type { Hub } from '../hub/hub.ts'
import type { Change } from '../model/reduce.ts'
import type { LinkStatus, Message } from '../mqtt/types.ts'
import type { BridgeControl, Command } from './commands.ts'
import { type AnswerLink, type CommandRun, Dispatcher } from './dispatcher.ts'
import { eventsOf } from './events.ts'
import { renderBridgeInfo, renderHubInfo } from './info.ts'
import { PublishedSettings, type SettingsToPublish } from './published-settings.ts'
import type { Topics } from './topics.ts'

/** The part of the MQTT link that the translation needs. */
export interface BridgeLink extends AnswerLink {
  /** Clears what the broker holds, nobody wants, and the predicate calls ours. Returns how many. */
  sweep(owned: (topic: string) => boolean): number
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
  readonly settings: SettingsToPublish
  readonly version: string
  readonly clock: Clock
  readonly log: Logger
}

export class Bridge {
  readonly #options: BridgeOptions
  readonly #link: BridgeLink
  readonly #dispatcher: Dispatcher
  readonly #settings = new Map<string, PublishedSettings>()
  readonly #startedAt: string
  #protocol: LinkStatus['protocol'] = null

  constructor(options: BridgeOptions, link: BridgeLink) {
    this.#options = options
    this.#link = link
    this.#startedAt = iso(options.clock.now())
    this.#dispatcher = new Dispatcher({ ...options, bridge: options.control, link, onRun: (run) => this.#onRun(run) })
    const { topics, settings, log } = options
    const hold = (topic: string, payload: string | null) => link.hold(topic, payload)
    for (const [name, { hub }] of options.hubs) {
      this.#settings.set(name, new PublishedSettings({ name, hub, settings, topics, hold, log }))
    }
  }

  /** Listens to the hubs. A hub's topics are left as the broker has them until something is known of that hub. */
  start(): void {
    for (const [name, { hub }] of this.#options.hubs) {
      hub.apps.subscribe((news) => this.#onApps(name, hub, news))
      hub.subscribe(() => this.#onStatus(name, hub))
    }
    this.#holdBridgeInfo()
  }

  /** The broker is there and what it holds is known. */
  onConnected({ protocol }: LinkStatus): void {
    this.#protocol = protocol
    this.#holdBridgeInfo()
    this.#sweep()
  }

  onMessage(message: Message): void {
    this.#dispatcher.receive(message)
  }

  /** A write of ours may have changed a setting, and the hub has no event for that. */
  #onRun({ hub, app, command, phase }: CommandRun): void {
    if (phase === 'ended' && command.write && app !== null) this.#settings.get(hub)?.refreshApp(app)
  }

  #onApps(name: string, hub: Hub, { changes, first, read }: AppsNews): void {
    const { topics, clock } = this.#options
    const at = iso(clock.now())
    for (const change of changes) {
      this.#link.hold(topics.app(name, change.id), change.after === undefined ? null : JSON.stringify(change.after))
      if (!first) this.#sendEvents(name, change, at)
    }
    if (changes.some(({ before, after }) => before === undefined || after === undefined)) this.#holdHubInfo(name, hub)
    if (read) this.#settings.get(name)?.refresh()
    if (first) this.#sweep()
  }

  #sendEvents(name: string, change: Change, at: string): void {
    const { topics } = this.#options
    for (const event of eventsOf(change, at)) {
      const payload = JSON.stringify(event)
      this.#link.send(topics.hubEvent(name), payload)
      this.#link.send(topics.appEvent(name, change.id), payload)
    }
  }

  #onStatus(name: string, hub: Hub): void {
    this.#holdHubInfo(name, hub)
    this.#link.hold(this.#options.topics.hubState(name), hub.status.online ? 'online' : 'offline')
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
