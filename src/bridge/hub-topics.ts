/** What the broker holds of hubs, their apps and settings, and the events of what happens to them. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Live } from '../config/options.ts'
import {
  type AppEventPayload,
  type CommandFailedPayload,
  eventsOf,
  type GuardEventPayload,
} from '../contract/events.ts'
import { availableCommands, type CommandPolicy } from '../contract/permissions.ts'
import { concernsHub, type Facts, type GuardFacts, type OwnerOf } from '../contract/publications.ts'
import type { Topics } from '../contract/topics.ts'
import type { AppsNews } from '../hub/app-manager.ts'
import type { Hub } from '../hub/hub.ts'
import type { App } from '../model/app.ts'
import type { Change } from '../model/reduce.ts'
import { FoundUpdates } from './found-updates.ts'
import type { Holdings } from './holdings.ts'
import { Installs } from './installs.ts'
import { PublishedSettings } from './published-settings.ts'
import type { CommandRun, FailedWrite } from './requests.ts'

/** What the guardian lets be published, and what it must hear of. */
export interface GuardView {
  factsOf(hub: string, app: string): GuardFacts | null | undefined
  attentionOf(hub: string): readonly string[] | undefined
  goneAppsOf(hub: string): Facts['hub']['goneApps']
  appsChanged(hub: string, changes: readonly Change[], read: boolean, silent: boolean): void
}

export interface HubTopicsOptions {
  readonly topics: Topics
  /** Changes as hubs are added and removed; `add` and `remove` tell. */
  readonly hubs: ReadonlyMap<string, { readonly hub: Hub }>
  readonly live: Live
  /** What configuration allows now. */
  readonly policy: () => CommandPolicy
  readonly guard: GuardView
  /** The member of a fleet that this bridge is. */
  readonly owner: () => Facts['hub']['owner']
  readonly holdings: Holdings
  readonly send: (topic: string, payload: string) => void
  /** Does what only the active bridge does, now or when that is known. */
  readonly whenActive: (task: () => void) => void
  readonly onEvent?: ((hub: string, event: AppEventPayload) => void) | undefined
  /** After the topics of the apps are as the news say. */
  readonly onApps: (hub: string, news: AppsNews) => void
  /** After the topics of the hub are as its status says. */
  readonly onStatus: (hub: string) => void
  readonly clock: Clock
  readonly log: Logger
}

export class HubTopics {
  readonly #options: HubTopicsOptions
  readonly #settings = new Map<string, PublishedSettings>()
  readonly #installs: Installs
  readonly #found = new FoundUpdates()

  constructor(options: HubTopicsOptions) {
    this.#options = options
    this.#installs = new Installs(options.clock)
  }

  /** Listens to a hub that is new in `hubs`. Its topics are left as the broker has them until something is known of it. */
  add(name: string, hub: Hub): void {
    this.#settings.set(name, this.#settingsOf(name, hub))
    hub.apps.subscribe((news) => this.#onApps(name, hub, news))
    hub.subscribe(() => {
      this.#setHub(name, hub)
      this.#options.onStatus(name)
    })
  }

  /** Clears all topics of a hub that is no longer in `hubs`. */
  remove(name: string): void {
    this.#installs.forgetAll(keyOf(name, ''))
    this.#settings.get(name)?.retire()
    this.#settings.delete(name)
    this.#options.holdings.drop({ kind: 'hub', hub: name })
  }

  /** Leaves the topics of a hub that is no longer in `hubs` to somebody else. */
  release(name: string): void {
    this.#installs.forgetAll(keyOf(name, ''))
    this.#settings.get(name)?.abandon()
    this.#settings.delete(name)
    this.#options.holdings.forget({ kind: 'hub', hub: name })
  }

  stop(): void {
    this.#installs.forgetAll()
  }

  /** The epoch of the fleet has changed. */
  ownerChanged(): void {
    for (const [name, { hub }] of this.#options.hubs) this.#setHub(name, hub)
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
  }

  /** Whether a setting is published: what the broker holds of it is not to be swept unread. */
  publishes(setting: OwnerOf<'setting'>): boolean {
    return this.#settings.get(setting.hub)?.publishes(setting) ?? false
  }

  /** How many settings are not published as their hubs have them. */
  get failedSettings(): number {
    return [...this.#settings.values()].reduce((sum, { failures }) => sum + failures, 0)
  }

  onRun({ hub: name, app: id, command, phase, ok }: CommandRun): void {
    if (id === null) return
    if (command.operation === 'installFromAppStore') {
      const key = keyOf(name, id)
      const app = this.#options.hubs.get(name)?.hub.apps.all.get(id)
      if (phase === 'begun') this.#installs.begin(key, app)
      else if (ok && app !== undefined) this.#installs.confirm(key, () => this.guardChanged(name, id))
      else this.#installs.forget(key)
      if (app !== undefined) this.#setApp(name, app)
    }
    // A write of ours may have changed a setting, and the hub has no event for that.
    if (phase === 'ended' && command.write) this.#settings.get(name)?.refreshApp(id)
  }

  onFailedWrite({ hub: name, app, command, code, transaction }: FailedWrite): void {
    const event: CommandFailedPayload = {
      event_type: 'command_failed',
      app,
      command,
      code,
      transaction,
      at: this.#now(),
    }
    const isShown = app !== null && this.#options.hubs.get(name)?.hub.apps.all.has(app) === true
    this.#sendEvent(name, isShown ? app : null, JSON.stringify(event))
  }

  /** What the broker holds of an app's update. */
  learnUpdate(name: string, id: string, payload: string): void {
    if (this.#found.learn(keyOf(name, id), payload)) this.guardChanged(name, id)
  }

  /** What the guardian knows of an app has changed. */
  guardChanged(name: string, id: string): void {
    const app = this.#options.hubs.get(name)?.hub.apps.all.get(id)
    if (app !== undefined) this.#setApp(name, app)
  }

  /** Which apps need attention, or are remembered, has changed. */
  attentionChanged(name: string): void {
    const hub = this.#options.hubs.get(name)?.hub
    if (hub !== undefined) this.#setHub(name, hub)
  }

  /** The guardian has done or found something. */
  onGuardEvent(name: string, event: GuardEventPayload): void {
    const payload = JSON.stringify(event)
    this.#options.whenActive(() => this.#sendEvent(name, event.app, payload))
  }

  #onApps(name: string, hub: Hub, news: AppsNews): void {
    const { changes, silent, read } = news
    const at = this.#now()
    for (const change of changes) {
      if (change.after === undefined) this.#dropApp(name, change.id)
      else this.#setApp(name, change.after)
      if (!silent) this.#sendEvents(name, change, at)
    }
    if (silent || read || changes.some(concernsHub)) this.#setHub(name, hub)
    // After the events of what it acts upon.
    this.#options.guard.appsChanged(name, changes, read, silent)
    if (read) this.#settings.get(name)?.refresh()
    this.#options.onApps(name, news)
  }

  #sendEvents(name: string, change: Change, at: string): void {
    for (const event of eventsOf(change, at)) {
      this.#options.onEvent?.(name, event)
      const payload = JSON.stringify(event)
      this.#options.whenActive(() => this.#sendEvent(name, change.id, payload))
    }
  }

  /** To the hub's event topic, and to that of an app. */
  #sendEvent(name: string, app: string | null, payload: string): void {
    const { topics, send } = this.#options
    send(topics.of('hubEvent', { hub: name }), payload)
    if (app !== null) send(topics.of('appEvent', { hub: name, app }), payload)
  }

  #setHub(name: string, hub: Hub): void {
    const { holdings, policy, guard, owner } = this.#options
    const { status, apps } = hub
    const commands = availableCommands(hub, policy())
    const needsAttention = guard.attentionOf(name)
    const goneApps = guard.goneAppsOf(name)
    holdings.set(
      { kind: 'hub', hub: name },
      { status, commands, apps: apps.all, complete: apps.complete, needsAttention, goneApps, owner: owner() },
    )
  }

  #setApp(name: string, app: App): void {
    const key = keyOf(name, app.id)
    const installing = this.#installs.has(key, app)
    const { holdings, guard: guardian, clock } = this.#options
    const guard = guardian.factsOf(name, app.id)
    const foundAt = this.#found.of(key, app, clock.now())
    holdings.set({ kind: 'app', hub: name, app: app.id }, { app, installing, foundAt, guard })
  }

  #dropApp(name: string, id: string): void {
    this.#found.forget(keyOf(name, id))
    this.#installs.settle(keyOf(name, id))
    this.#options.holdings.drop({ kind: 'app', hub: name, app: id })
  }

  #settingsOf(name: string, hub: Hub): PublishedSettings {
    const { live, holdings, log } = this.#options
    return new PublishedSettings({ name, hub, settings: live.value.settings.publish, holdings, log })
  }

  #now(): string {
    return new Date(this.#options.clock.now()).toISOString()
  }
}

const keyOf = (hub: string, app: string) => `${hub} ${app}`
