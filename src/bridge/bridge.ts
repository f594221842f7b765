/** The translation: what hubs say becomes retained state and events, what arrives as a command becomes a call. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Live } from '../config/options.ts'
import type { Command } from '../contract/commands.ts'
import { type AppEventPayload, type CommandFailedPayload, eventsOf } from '../contract/events.ts'
import { availableCommands, refusedBy } from '../contract/permissions.ts'
import { concernsHub, type Facts } from '../contract/publications.ts'
import type { HealthReport, Role } from '../contract/schemas.ts'
import type { OwnTopic, Topics } from '../contract/topics.ts'
import type { AppsNews } from '../hub/app-manager.ts'
import { asHubError } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import type { LogLevel } from '../log/levels.ts'
import type { App } from '../model/app.ts'
import type { Change } from '../model/reduce.ts'
import type { LinkStatus, Message } from '../mqtt/types.ts'
import { type AnswerLink, type CommandEnd, Dispatcher, type FailedWrite } from './dispatcher.ts'
import type { CommandRun } from './execution.ts'
import { FormerHubs } from './former-hubs.ts'
import { Holdings } from './holdings.ts'
import { HomeAssistant } from './home-assistant/home-assistant.ts'
import { Presence } from './presence.ts'
import { PublishedSettings } from './published-settings.ts'
import { Repairs } from './repairs.ts'

/** The part of the MQTT link that the translation needs. */
export interface BridgeLink extends AnswerLink {
  /** Clears what the broker holds, nobody wants, and the predicate calls ours. Returns how many. */
  sweep(owned: (topic: string, payload: string) => boolean): number
  /** Sends again what is held on these topics. */
  refresh(topics: Iterable<string>): void
  /** Connects anew, and reads back what the broker holds. */
  startOver(): void
  /** Whether retained topics are written; while not, what is held is remembered only. */
  setWriting(writing: boolean): void
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
  /** Another bridge on the same base topic has come or gone, or this one is active or stands by since. */
  readonly onPresence: () => void
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

/** Another bridge that ends or steps back may still send what had waited. */
const FAREWELL_MS = 2_000
/** At once for the first time: everybody else takes the bridge for gone. */
const TAKE_BACK_MS = 1_000
/** Commands and events that may wait until it is known whether another bridge is active. */
const MAX_EARLY = 1_000
/** The same as of events and answers that wait for the broker. */
const MAX_EARLY_MS = 60_000

export class Bridge {
  readonly #options: BridgeOptions
  readonly #link: BridgeLink
  readonly #holdings: Holdings
  readonly #dispatcher: Dispatcher
  readonly #settings = new Map<string, PublishedSettings>()
  readonly #presence: Presence
  /** Whether this bridge publishes and executes: the only one on its base topic, or the one that started first. */
  #active = false
  /** Commands and events from before it is known whether this bridge is active. */
  #early: { readonly at: number; readonly task: () => void }[] = []
  #saidStandby = false
  /** Whether another bridge was active since this one was: it may have known more of the hubs. */
  #wasReplaced = false
  /** Hubs of which nothing is taken for left over before they were read again; `next`: by whichever read comes next. */
  readonly #unread = new Map<string, 'asked' | 'next'>()
  /** Whether another bridge was told that this one leaves: commands that come in since are that one's. */
  #left = false
  #protocol: LinkStatus['protocol'] = null
  /** Whether the next connection follows on one that this bridge has ended itself, without saying that it is gone. */
  #startingOver = false
  /** What the broker holds as the bridge's state when a connection begins. */
  #foundState: string | undefined
  readonly #homeAssistant: HomeAssistant
  readonly #repairs: Repairs
  readonly #formerHubs = new FormerHubs()
  /** Hub and app of our own installs under way. */
  readonly #installing = new Set<string>()
  #facts: Facts['bridge']
  #tookBackAt = Number.NEGATIVE_INFINITY
  #cancelStartOver: () => void = () => {}

  constructor(options: BridgeOptions, link: BridgeLink) {
    this.#options = options
    this.#link = link
    const { topics, hubs, live, version, startedAt, clock, random, log, audit, setLogLevel } = options
    // Until it is known whether another bridge is there.
    link.setWriting(false)
    const { discovery, log: logging } = live.value
    const logLevel = logging.level
    this.#facts = { version, startedAt, protocol: null, hubs: {}, logLevel, health: undefined, prefixes: undefined }
    const hold = (topic: string, payload: string | null) => link.hold(topic, payload)
    const send = (topic: string, payload: string) => link.send(topic, payload)
    const refuses = (command: Command, input?: unknown) => refusedBy(live.value.commands, command, input)
    const allows = (command: Command) => refuses(command) === undefined
    this.#holdings = new Holdings({
      topics,
      hold,
      applies: (when) => when !== 'discovery' || discovery.format !== 'off',
      onFailure: (topic, error) => log.error({ topic, err: error }, 'what a topic is to hold could not be rendered'),
    })
    this.#presence = new Presence({
      topic: topics.of('bridgePresence', {}),
      startedAt,
      send,
      onChange: (before) => this.#onPresence(before),
      onOtherActive: () => this.#onOtherActive(),
      hubs: () => [...hubs.keys()],
      onHubs: (names) => {
        for (const name of names) this.#formerHubs.add(name)
      },
      clock,
      log,
    })
    this.#homeAssistant = new HomeAssistant({ topics, hubs, live, allows, version, clock, random, log }, link)
    this.#repairs = new Repairs({
      repair: (touched) => {
        link.refresh(touched)
        this.#sweep()
      },
      readEverything: () => this.#startOver(),
      clock,
    })
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
      refuses,
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
    if (this.role !== 'standby' || this.#saidStandby) return
    this.#saidStandby = true
    // Not retained: the topic is the active bridge's.
    this.#link.send(this.#options.topics.of('bridgeHealth', {}), JSON.stringify(health))
  }

  /** Listens to a hub that is new in `hubs`. Its topics are left as the broker has them until something is known of it. */
  addHub(name: string, hub: Hub): void {
    this.#settings.set(name, this.#settingsOf(name, hub))
    hub.apps.subscribe((news) => this.#onApps(name, hub, news))
    hub.subscribe(() => this.#onStatus(name, hub))
    this.#know({ hubs: this.#hubAddresses() })
    this.#homeAssistant.hubAdded()
  }

  /** Clears all topics of a hub that is no longer in `hubs`. */
  removeHub(name: string): void {
    this.#settings.get(name)?.retire()
    this.#settings.delete(name)
    this.#unread.delete(name)
    this.#formerHubs.add(name)
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
  onConnected({ protocol, probe }: LinkStatus): void {
    this.#protocol = protocol
    const keepsRole = this.#active && this.#startingOver
    this.#startingOver = false
    this.#active = false
    // What the broker holds has just been read: what differs is put right without them.
    this.#repairs.stop()
    this.#presence.connected(!keepsRole && (probe !== 'ok' || this.#foundState === 'online'))
    this.#foundState = undefined
    this.#followRole()
  }

  /** Publishes and executes, or not, as this bridge's role is. */
  #followRole(): void {
    const active = this.role === 'active'
    if (active && !this.#active) this.#begin()
    this.#active = active
    this.#link.setWriting(active)
    if (this.role !== 'standby') return
    this.#early = []
    this.#wasReplaced = true
  }

  /** This bridge is the active one from now on, and what the broker holds has just been read. */
  #begin(): void {
    this.#active = true
    this.#saidStandby = false
    this.#homeAssistant.connected()
    this.#know({ prefixes: this.#homeAssistant.prefixes })
    if (this.#wasReplaced) this.#readAgain()
    this.#wasReplaced = false
    this.#sweep()
    // After the sweep: it takes the place of what names the former hubs, and the next run must know of those until then.
    this.#know({ protocol: this.#protocol })
    const oldest = this.#options.clock.elapsed() - MAX_EARLY_MS
    for (const { at, task } of this.#early.splice(0)) if (at >= oldest) task()
  }

  /** What the other bridge has published of a hub may be newer than what is known here. */
  #readAgain(): void {
    for (const [name, { hub }] of this.#options.hubs) {
      this.#unread.set(name, 'asked')
      const failed = (error: unknown) => {
        asHubError(error)
        if (this.#unread.has(name)) this.#unread.set(name, 'next')
      }
      void hub.refresh().then(() => this.#wasRead(name), failed)
    }
  }

  #wasRead(name: string): void {
    if (this.#unread.delete(name)) this.#sweep()
  }

  #onPresence(before: Role): void {
    this.#followRole()
    // What the broker holds has changed since it was read.
    if (before === 'standby' && this.role === 'undecided') this.#startOver()
    this.#options.onPresence()
  }

  /** Another bridge did the same until now. What came in so far it has executed; what it has published may be wrong. */
  #onOtherActive(): void {
    this.#early = []
    this.#wasReplaced = true
    this.#startOverLater()
  }

  #startOverLater(): void {
    this.#cancelStartOver()
    this.#cancelStartOver = this.#options.clock.after(FAREWELL_MS, () => this.#startOver())
  }

  #startOver(): void {
    this.#startingOver = true
    this.#link.startOver()
  }

  /** Filters to read back besides those of the configuration, for what an earlier one may have left. */
  furtherFilters(topic: string, payload: string): string[] {
    const { topics } = this.#options
    if (topic === topics.of('bridgeState', {})) this.#foundState = payload
    if (topic === topics.of('bridgeInfo', {})) this.#formerHubs.learn(payload)
    return this.#homeAssistant.furtherFilters(topic, payload)
  }

  /** Somebody published where only the bridge should. */
  onTouched(topic: string, payload: string): void {
    const { topics } = this.#options
    const saidOffline = topic === topics.of('bridgeState', {}) && payload === 'offline'
    // Also while another bridge is active: what it leaves behind is this one's to clear.
    if (topic === topics.of('bridgeInfo', {})) this.#formerHubs.learn(payload)
    if (!this.#active) {
      if (saidOffline) this.#presence.doubt()
      return
    }
    if (saidOffline) this.#takeBack(topic)
    else if (this.#isOurs(topic, payload)) this.#repairs.touched(topic)
    this.#homeAssistant.touched(topic, payload)
  }

  /** The goodbye of another bridge on this base topic, or of a former self: as long as we are here, it is not true. */
  #takeBack(bridgeState: string): void {
    const { clock } = this.#options
    const due = clock.elapsed() - this.#tookBackAt >= TAKE_BACK_MS
    if (due) {
      this.#tookBackAt = clock.elapsed()
      this.#link.refresh([bridgeState])
    } else this.#repairs.touched(bridgeState)
    // Nor may be what the other one has published, or left behind.
    if (this.contested) this.#startOverLater()
  }

  /** Whether a topic is the bridge's to put right. Home Assistant may remove what is discovered, which has its own way. */
  #isOurs(topic: string, payload: string): boolean {
    const own = this.#options.topics.parse(topic)
    if (own === undefined) return payload !== ''
    const { owner } = own
    return owner.kind === 'bridge' || this.#options.hubs.has(owner.hub) || this.#formerHubs.has(owner.hub)
  }

  /** Whether another bridge uses the same base topic. */
  get contested(): boolean {
    return this.#presence.contested
  }

  /** Whether this bridge is the one that publishes and executes. */
  get role(): Role {
    return this.#presence.role
  }

  onMessage(message: Message): void {
    if (this.#left) return
    if (message.topic === this.#options.topics.of('bridgePresence', {})) this.#presence.receive(message)
    else {
      this.#whenActive(() => {
        if (!this.#homeAssistant.receive(message)) this.#dispatcher.receive(message)
      })
    }
  }

  /** Does what only the active bridge does; waits with it while it is not known which one that is. */
  #whenActive(task: () => void): void {
    if (this.#left) return
    if (this.#active) task()
    else if (this.role !== 'standby') this.#early.push({ at: this.#options.clock.elapsed(), task })
    if (this.#early.length > MAX_EARLY) this.#early.shift()
  }

  stop(): void {
    this.#cancelStartOver()
    this.#dispatcher.stop()
    this.#repairs.stop()
    this.#left = this.contested
    this.#presence.stop()
    // Nobody else says that nobody is there.
    if (this.role === 'undecided') this.#link.setWriting(true)
    this.#homeAssistant.stop()
  }

  #onRun({ hub: name, app: id, command, phase }: CommandRun): void {
    if (command.name === 'refresh' && phase === 'ended') this.#repairs.now()
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
    if (read && this.#unread.get(name) === 'next') this.#wasRead(name)
  }

  #sendEvents(name: string, change: Change, at: string): void {
    for (const event of eventsOf(change, at)) {
      this.#options.onEvent?.(name, event)
      const payload = JSON.stringify(event)
      this.#whenActive(() => this.#sendEvent(name, change.id, payload))
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
    if (!this.#active) return
    const { topics, log } = this.#options
    const isOrphan = this.#homeAssistant.orphans()
    const cleared = this.#link.sweep((topic, payload) => {
      const own = topics.parse(topic)
      // Of which hub a device is, only its message knows.
      return own === undefined ? this.#unread.size === 0 && isOrphan(topic, payload) : this.#isLeftOver(own)
    })
    if (cleared > 0) log.info({ topics: cleared }, 'cleared retained messages that belong to nothing any more')
    if (this.#unread.size === 0 && this.#homeAssistant.settle()) this.#know({ prefixes: this.#homeAssistant.prefixes })
  }

  /** Nothing of a hub is touched before its list has been read, as then everything would look gone. */
  #isLeftOver({ name, row, owner }: OwnTopic): boolean {
    if ('by' in row) return false
    if (owner.kind === 'bridge') return name !== 'bridgeInfo'
    if (owner.kind === 'setting' && this.#settings.get(owner.hub)?.publishes(owner)) return false
    const hub = this.#options.hubs.get(owner.hub)?.hub
    if (hub === undefined) return this.#formerHubs.has(owner.hub)
    if (this.#unread.has(owner.hub)) return false
    // A hub's own rows follow from its status, which is known a moment after its list.
    return hub.apps.complete && (owner.kind !== 'hub' || hub.status.reason !== 'connecting')
  }
}

const keyOf = (hub: string, app: string) => `${hub} ${app}`

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
