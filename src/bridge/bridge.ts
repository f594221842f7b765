/** The translation: what hubs say becomes retained state and events, what arrives as a command becomes a call. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Live } from '../config/options.ts'
import type { Command } from '../contract/commands.ts'
import { type AppEventPayload, type CommandFailedPayload, eventsOf } from '../contract/events.ts'
import { availableCommands, mayUse } from '../contract/permissions.ts'
import { concernsHub, type Facts } from '../contract/publications.ts'
import type { HealthReport } from '../contract/schemas.ts'
import type { OwnTopic, Topics } from '../contract/topics.ts'
import type { AppsNews } from '../hub/app-manager.ts'
import type { Hub } from '../hub/hub.ts'
import type { LogLevel } from '../log/levels.ts'
import type { App } from '../model/app.ts'
import type { Change } from '../model/reduce.ts'
import type { LinkStatus, Message } from '../mqtt/types.ts'
import { type AnswerLink, type CommandEnd, Dispatcher, type FailedWrite } from './dispatcher.ts'
import type { CommandRun } from './execution.ts'
import { Holdings } from './holdings.ts'
import { HomeAssistant } from './home-assistant/home-assistant.ts'
import { Presence } from './presence.ts'
import { PublishedSettings } from './published-settings.ts'

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
  /** Changes as hubs are added and removed; `addHub` and `removeHub` tell. */
  readonly hubs: ReadonlyMap<string, BridgedHub>
  /** The configuration that holds now; `reconfigured` tells of another one. */
  readonly live: Live
  readonly setLogLevel: (level: LogLevel) => void
  readonly onEvent?: (hub: string, event: AppEventPayload) => void
  readonly onAnswer?: (end: CommandEnd) => void
  readonly version: string
  /** ISO 8601. */
  readonly startedAt: string
  readonly clock: Clock
  /** Numbers from 0 to under 1. */
  readonly random: () => number
  readonly log: Logger
  /** Writes whatever the log's level is. */
  readonly audit: Logger
}

/** After its goodbye another bridge may still send what had waited. */
const FAREWELL_MS = 2_000

export class Bridge {
  readonly #options: BridgeOptions
  readonly #link: BridgeLink
  readonly #holdings: Holdings
  readonly #dispatcher: Dispatcher
  readonly #settings = new Map<string, PublishedSettings>()
  readonly #presence: Presence
  readonly #homeAssistant: HomeAssistant
  /** Hub and app of our own installs under way. */
  readonly #installing = new Set<string>()
  #facts: Facts['bridge']
  #cancelStartOver: () => void = () => {}

  constructor(options: BridgeOptions, link: BridgeLink) {
    this.#options = options
    this.#link = link
    const { topics, hubs, live, version, startedAt, clock, random, log, audit, setLogLevel } = options
    const { discovery, log: logging } = live.value
    const logLevel = logging.level
    this.#facts = { version, startedAt, protocol: null, hubs: {}, logLevel, health: undefined, prefixes: undefined }
    const hold = (topic: string, payload: string | null) => link.hold(topic, payload)
    const send = (topic: string, payload: string) => link.send(topic, payload)
    const allows = (command: Command, input?: unknown) => mayUse(live.value.commands, command, input)
    this.#holdings = new Holdings({
      topics,
      hold,
      applies: (when) => when !== 'discovery' || discovery.format !== 'off',
    })
    this.#presence = new Presence({ topic: topics.of('bridgePresence', {}), startedAt, send, clock, log })
    this.#homeAssistant = new HomeAssistant({ topics, hubs, live, allows, version, clock, random, log }, link)
    const control = {
      setLogLevel: (level: LogLevel) => {
        setLogLevel(level)
        this.logLevelChanged(level)
      },
    }
    const { onAnswer } = options
    this.#dispatcher = new Dispatcher({
      topics,
      hubs,
      link,
      control,
      allows,
      mayAnswerOn: (topic) => {
        const only = live.value.commands.response_topics
        return topics.mayAnswerOn(topic, { discoveryPrefix: discovery.prefix, only })
      },
      onRun: (run) => this.#onRun(run),
      onFailedWrite: (failed) => this.#onFailedWrite(failed),
      ...(onAnswer && { onAnswer }),
      clock,
      log,
      audit,
    })
  }

  start(): void {
    this.#know({})
  }

  logLevelChanged(logLevel: LogLevel): void {
    this.#options.audit.info({ log_level: logLevel }, 'log level changed')
    this.#know({ logLevel })
  }

  healthChanged(health: HealthReport): void {
    this.#know({ health })
  }

  /** Listens to a hub that is new in `hubs`. Its topics are left as the broker has them until something is known of it. */
  addHub(name: string, hub: Hub): void {
    this.#settings.set(name, this.#settingsOf(name, hub))
    hub.apps.subscribe((news) => this.#onApps(name, hub, news))
    hub.subscribe(() => this.#onStatus(name, hub))
    this.#know({ hubs: this.#hubAddresses() })
  }

  /** Clears all topics of a hub that is no longer in `hubs`. */
  removeHub(name: string): void {
    this.#settings.get(name)?.retire()
    this.#settings.delete(name)
    this.#holdings.drop({ kind: 'hub', hub: name })
    this.#homeAssistant.hubRemoved(name)
    this.#know({ hubs: this.#hubAddresses() })
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
      this.#setHub(name, hub)
    }
    this.#homeAssistant.reconfigured()
  }

  #settingsOf(name: string, hub: Hub): PublishedSettings {
    const { live, log } = this.#options
    return new PublishedSettings({ name, hub, settings: live.value.settings.publish, holdings: this.#holdings, log })
  }

  /** The broker is there and what it holds is known. */
  onConnected({ protocol }: LinkStatus): void {
    this.#homeAssistant.connected()
    this.#know({ protocol, prefixes: this.#homeAssistant.prefixes })
    this.#sweep()
    this.#presence.announce()
  }

  /** Filters to read back besides those of the configuration, for what an earlier one may have left. */
  furtherFilters(topic: string, payload: string): string[] {
    return this.#homeAssistant.furtherFilters(topic, payload)
  }

  /** Somebody published where only the bridge should. */
  onTouched(topic: string, payload: string): void {
    const bridgeState = this.#options.topics.of('bridgeState', {})
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
    if (message.topic === this.#options.topics.of('bridgePresence', {})) this.#presence.receive(message)
    else if (!this.#homeAssistant.receive(message)) this.#dispatcher.receive(message)
  }

  stop(): void {
    this.#cancelStartOver()
    this.#dispatcher.stop()
    this.#presence.stop()
    this.#homeAssistant.stop()
  }

  #onRun({ hub: name, app: id, command, phase }: CommandRun): void {
    if (id === null) return
    if (command.operation === 'installFromAppStore') {
      const key = keyOf(name, id)
      if (phase === 'begun') this.#installing.add(key)
      else this.#installing.delete(key)
      const app = this.#options.hubs.get(name)?.hub.apps.all.get(id)
      if (app !== undefined) this.#setApp(name, app)
    }
    // A write of ours may have changed a setting, and the hub has no event for that.
    if (phase === 'ended' && command.write) this.#settings.get(name)?.refreshApp(id)
  }

  #onFailedWrite({ hub: name, app, command, code, transaction }: FailedWrite): void {
    const at = iso(this.#options.clock.now())
    const event: CommandFailedPayload = { event_type: 'command_failed', app, command, code, transaction, at }
    const isShown = app !== null && this.#options.hubs.get(name)?.hub.apps.all.has(app) === true
    this.#sendEvent(name, isShown ? app : null, JSON.stringify(event))
  }

  #onApps(name: string, hub: Hub, news: AppsNews): void {
    const { changes, silent, read } = news
    const at = iso(this.#options.clock.now())
    for (const change of changes) {
      if (change.after === undefined) this.#holdings.drop({ kind: 'app', hub: name, app: change.id })
      else this.#setApp(name, change.after)
      if (!silent) this.#sendEvents(name, change, at)
    }
    if (silent || changes.some(concernsHub)) this.#setHub(name, hub)
    this.#homeAssistant.appsChanged(name, changes)
    if (read) this.#settings.get(name)?.refresh()
    if (silent) this.#sweep()
  }

  #sendEvents(name: string, change: Change, at: string): void {
    for (const event of eventsOf(change, at)) {
      this.#options.onEvent?.(name, event)
      this.#sendEvent(name, change.id, JSON.stringify(event))
    }
  }

  /** To the hub's event topic, and to that of an app. */
  #sendEvent(name: string, app: string | null, payload: string): void {
    const { topics } = this.#options
    this.#link.send(topics.of('hubEvent', { hub: name }), payload)
    if (app !== null) this.#link.send(topics.of('appEvent', { hub: name, app }), payload)
  }

  #onStatus(name: string, hub: Hub): void {
    this.#setHub(name, hub)
    // Who the hub is comes after its apps, and only then it is known which devices are its.
    if (this.#homeAssistant.hubChanged(name)) this.#sweep()
    this.#know({ hubs: this.#hubAddresses() })
  }

  #know(news: Partial<Facts['bridge']>): void {
    this.#facts = { ...this.#facts, ...news }
    this.#holdings.set({ kind: 'bridge' }, this.#facts)
  }

  #setHub(name: string, hub: Hub): void {
    const { status, apps } = hub
    const commands = availableCommands(hub, this.#options.live.value.commands)
    this.#holdings.set({ kind: 'hub', hub: name }, { status, commands, apps: apps.all, complete: apps.complete })
  }

  #setApp(name: string, app: App): void {
    const installing = this.#installing.has(keyOf(name, app.id))
    this.#holdings.set({ kind: 'app', hub: name, app: app.id }, { app, installing })
  }

  #hubAddresses(): Facts['bridge']['hubs'] {
    const entries = [...this.#options.hubs].map(
      ([name, { url, hub }]) => [name, { url_host: new URL(url).host, api: hub.status.api }] as const,
    )
    return Object.fromEntries(entries)
  }

  /** Clears what earlier runs and configurations left behind: of apps and hubs that are gone, and of rows not asked for. */
  #sweep(): void {
    const { topics, log } = this.#options
    const isOrphan = this.#homeAssistant.orphans()
    const cleared = this.#link.sweep((topic, payload) => {
      const own = topics.parse(topic)
      return own === undefined ? isOrphan(topic, payload) : this.#isLeftOver(own)
    })
    if (cleared > 0) log.info({ topics: cleared }, 'cleared retained messages that belong to nothing any more')
    if (this.#homeAssistant.settle()) this.#know({ prefixes: this.#homeAssistant.prefixes })
  }

  /** Nothing of a hub is touched before its list has been read, as then everything would look gone. */
  #isLeftOver({ row, owner }: OwnTopic): boolean {
    if ('by' in row) return false
    if (owner.kind === 'bridge') return true
    if (owner.kind === 'setting' && this.#settings.get(owner.hub)?.publishes(owner)) return false
    const hub = this.#options.hubs.get(owner.hub)?.hub
    // A hub's own rows follow from its status, which is known a moment after its list.
    return hub === undefined || (hub.apps.complete && (owner.kind !== 'hub' || hub.status.reason !== 'connecting'))
  }
}

const keyOf = (hub: string, app: string) => `${hub} ${app}`

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
