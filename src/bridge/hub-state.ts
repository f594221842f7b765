/** Publishes the state of one hub, its apps and settings, sends events, and notifies subscribers in a fixed order. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { Limiter } from '../base/limiter.ts'
import { type AppEventPayload, type EventPayload, eventsOf } from '../contract/events.ts'
import type { GuardControl } from '../contract/guard.ts'
import { availableCommands, policyOf } from '../contract/permissions.ts'
import { concernsHub, countsOf } from '../contract/publications.ts'
import type { App, Change } from '../hub/app.ts'
import type { AppsUpdate } from '../hub/app-manager.ts'
import type { Hub } from '../hub/hub.ts'
import type { MqttLink } from '../mqtt/link.ts'
import type { AppUpdates } from './app-updates.ts'
import type { BridgeOptions, Discovery } from './bridge-options.ts'
import type { Evidence } from './evidence.ts'
import type { Guardian } from './guarding.ts'
import { HubFigures } from './hub-figures.ts'
import { uptimeOf } from './hub-health.ts'
import { OwnerRows, type RowTable } from './owner-rows.ts'
import { PublishedSettings } from './published-settings.ts'
import type { CommandRun, FailedWrite } from './requests.ts'
import type { StartupBuffer } from './startup-buffer.ts'
import type { Upkeep } from './upkeep.ts'

/** Creates the limiter that all hubs share, because a large read needs megabytes. A read has a slot for at most 1 s. */
export const limitLargeReads = (clock: Clock) => new Limiter({ clock, slots: 4, slotTimeoutMs: 1_000 })

export interface HubStateOptions extends Pick<BridgeOptions, 'topics' | 'live' | 'fleet' | 'clock'> {
  readonly log: Logger
  readonly table: RowTable
  readonly link: Pick<MqttLink, 'send'>
  readonly guardian: Pick<Guardian, 'factsOf' | 'attentionOf' | 'goneAppsOf' | 'hubReplaced' | 'take'>
  readonly homeAssistant: Pick<Discovery, 'appsChanged' | 'hubChanged'> | undefined
  readonly upkeep: Pick<Upkeep, 'request' | 'listRead' | 'former'>
  readonly updates: AppUpdates
  readonly evidence: Evidence
  readonly early: Pick<StartupBuffer, 'run' | 'role'>
  readonly largeReads: Limiter
}

/** A change that affects more than usage figures. */
export interface NotableChange extends Change {
  readonly events: readonly AppEventPayload[]
}

export class HubState {
  readonly settings: PublishedSettings
  readonly figures: HubFigures
  readonly #name: string
  readonly #hub: Hub
  readonly #options: HubStateOptions
  readonly #rows: OwnerRows<'hub'>
  readonly #evidence: ReturnType<Evidence['of']>
  readonly #apps = new Map<string, OwnerRows<'app'>>()
  /** The permitted commands, cached with the data that determines them, which changes much less often than apps. */
  #permitted: { readonly from: readonly unknown[]; readonly commands: readonly string[] } | undefined
  readonly #eventListeners = new Set<(event: EventPayload) => void>()
  readonly #listeners = new Set<(changes: readonly NotableChange[]) => void>()
  /** The id of the hub that the broker's data describes; `undefined` after the comparison with the actual id. */
  #formerId: string | undefined

  constructor(name: string, hub: Hub, options: HubStateOptions) {
    const { table } = options
    this.#name = name
    this.#hub = hub
    this.#options = options
    this.#rows = new OwnerRows({ kind: 'hub', hub: name }, table)
    this.settings = new PublishedSettings(name, hub, options)
    this.figures = new HubFigures(name, hub, { ...options, state: this })
    this.#evidence = options.evidence.of(name)
    // Subscribe the samples first, because the guardian expects the samples to include the latest list.
    options.evidence.samples.follow(name, hub)
    this.#formerId = options.upkeep.former.idOf(name)
    hub.apps.subscribe((update) => this.#appsChanged(update))
    hub.subscribe(() => this.#statusChanged())
  }

  /**
   * Call this after the broker's data has been read, and before any other part uses the data.
   * @param tookOver whether another bridge was active until now
   */
  activate(tookOver: boolean): void {
    this.#formerId = this.#options.upkeep.former.idOf(this.#name)
    this.#compare()
    for (const app of this.#evidence.adoptAll(this.#hub.apps.all.values(), tookOver)) this.appChanged(app)
  }

  /** Calls `listener` after all other parts have handled the changes. */
  subscribe(listener: (changes: readonly NotableChange[]) => void): void {
    this.#listeners.add(listener)
  }

  onEvent(listener: (event: EventPayload) => void): void {
    this.#eventListeners.add(listener)
  }

  clear(): void {
    this.stop()
    this.#options.evidence.forget(this.#name)
    this.settings.clear()
    for (const rows of this.#apps.values()) rows.clear()
    this.#rows.clear()
  }

  /** Stops, and leaves all topics unchanged for another bridge. */
  release(): void {
    this.stop()
    this.settings.release()
  }

  stop(): void {
    this.figures.stop()
    this.#options.updates.hubRemoved(this.#name)
    this.#evidence.stop()
  }

  reconfigured(): void {
    this.settings.reconfigured()
    this.changed()
  }

  /** Call this when a write or generic call begins or ends. */
  onRun(run: CommandRun): void {
    const { app: id, command, phase, ok } = run
    this.#evidence.commanded(run)
    this.#options.guardian.take(this.#name, { kind: 'command', run })
    if (id === null) return
    if (command.operation === 'installFromAppStore') {
      const { updates } = this.#options
      const app = this.#hub.apps.all.get(id)
      if (phase === 'begun') updates.start(this.#name, id, app)
      else if (ok && app !== undefined) updates.confirm(this.#name, id, () => this.appChanged(id))
      else updates.end(this.#name, id)
      this.appChanged(id)
    }
    // The write may have changed a setting, for which the hub sends no event.
    if (phase === 'ended' && command.write) this.settings.refreshApp(id)
  }

  control(app: string, control: GuardControl): void {
    if (control.forget) this.#evidence.forget(app)
    this.#options.guardian.take(this.#name, { kind: 'control', app, control })
    this.appChanged(app)
  }

  /** Call this if a write fails. The caller limits how many failures of unsent writes it reports. */
  onFailedWrite({ app, command, code, transaction }: FailedWrite): void {
    const at = new Date(this.#options.clock.now()).toISOString()
    const isShown = app !== null && this.#hub.apps.all.has(app)
    this.#send(isShown ? app : null, { event_type: 'command_failed', app, command, code, transaction, at })
  }

  sendEvent(event: EventPayload): void {
    this.#options.early.run(() => this.#send(event.app, event))
  }

  /** Call this when data about an app has changed that is not part of the hub's list of apps. */
  appChanged(id: string): void {
    const app = this.#hub.apps.all.get(id)
    if (app !== undefined) this.#setApp(app)
  }

  /** Call this when data about the hub, or about all its apps together, has changed. */
  changed(): void {
    const { guardian, fleet } = this.#options
    const { status, apps } = this.#hub
    this.#rows.set({
      status,
      commands: this.#commands(),
      counts: countsOf(apps.all),
      complete: apps.complete,
      needsAttention: guardian.attentionOf(this.#name),
      goneApps: guardian.goneAppsOf(this.#name),
      health: this.figures.health,
      owner: fleet && { member: fleet.member, epoch: fleet.epoch },
    })
  }

  *rendered(): ReturnType<OwnerRows<'hub'>['rendered']> {
    yield* this.#rows.rendered()
    for (const rows of this.#apps.values()) yield* rows.rendered()
    yield* this.settings.rendered()
  }

  #appsChanged({ changes, silent, read }: AppsUpdate): void {
    const { guardian, upkeep, clock } = this.#options
    const at = clock.now()
    const notable: NotableChange[] = []
    for (const change of changes) {
      const { id, after } = change
      const events = eventsOf(change, at)
      if (events.length > 0) notable.push({ ...change, events })
      if (after === undefined) this.#appRemoved(id)
      else if (events.length > 0) this.#setApp(after)
      else this.#apps.get(id)?.setUsage({ app: after })
      if (!silent) for (const event of events) this.sendEvent(event)
    }
    if (silent || read || notable.some(concernsHub)) this.changed()
    // Notify the guardian after sending the events, so that the guardian's events follow these events.
    guardian.take(this.#name, { kind: 'apps', changes, read, silent })
    if (read) {
      // Read settings and figures too, because the list of apps does not contain them.
      this.settings.refresh()
      this.figures.changed()
    }
    if (notable.length > 0) this.#notablyChanged(notable, silent)
    if (silent) upkeep.request()
    if (read) this.#listRead()
    if (silent || notable.length === 0) return
    for (const listener of this.#listeners) listener(notable)
  }

  #listRead(): void {
    const { upkeep, early } = this.#options
    upkeep.listRead(this.#name)
    if (early.role === 'active') this.#evidence.forgetHeld(this.#hub.apps.all)
  }

  #notablyChanged(changes: readonly NotableChange[], silent: boolean): void {
    const { guardian, homeAssistant, clock } = this.#options
    const guardOf = (app: string) => guardian.factsOf(this.#name, app)
    const { health = null, boot } = this.figures
    const uptime = boot === undefined ? null : uptimeOf(boot, clock)
    const hubData = { firmware: this.#hub.status.firmware, health, uptime, guardOf }
    for (const app of this.#evidence.appsChanged(changes, hubData, silent)) this.appChanged(app)
    homeAssistant?.appsChanged(this.#name, changes)
  }

  #commands(): readonly string[] {
    const policy = policyOf(this.#options.live.value)
    const { scopes, missing } = this.#hub.status
    const from = [policy, scopes, missing]
    if (!this.#permitted?.from.every((one, i) => one === from[i])) {
      this.#permitted = { from, commands: availableCommands(this.#hub, policy) }
    }
    return this.#permitted.commands
  }

  /** Discards the broker's data if it describes a different hub that had this name before. */
  #compare(): void {
    const { id } = this.#hub.status
    if (id === null || this.#formerId === undefined) return
    const isOther = id !== this.#formerId
    this.#formerId = undefined
    if (!isOther) return
    this.#evidence.forgetAll()
    this.#options.guardian.hubReplaced(this.#name)
    const apps = [...this.#hub.apps.all.values()]
    this.#notablyChanged(
      apps.map((after) => ({ id: after.id, before: undefined, after, events: [] })),
      true,
    )
    for (const app of apps) this.#setApp(app)
  }

  #statusChanged(): void {
    const { guardian, homeAssistant, upkeep } = this.#options
    this.#compare()
    for (const app of this.#evidence.setFirmware(this.#hub.status.firmware)) this.appChanged(app)
    this.changed()
    // The hub's id, which identifies its devices, may arrive after its apps.
    if (homeAssistant?.hubChanged(this.#name) ?? true) upkeep.request()
    // Skip `connecting`, because the state is still unknown, and `rate_limited`, because the hub is in fact online.
    const { online, reason } = this.#hub.status
    if (reason !== 'connecting' && reason !== 'rate_limited') guardian.take(this.#name, { kind: 'online', online })
    this.figures.changed()
  }

  /** Publishes on the hub's event topic and, for an app's event, also on the app's event topic. */
  #send(app: string | null, event: EventPayload): void {
    const { topics, link } = this.#options
    const hub = this.#name
    const payload = JSON.stringify(event)
    link.send(topics.of('hubEvent', { hub }), payload)
    if (app !== null) link.send(topics.of('appEvent', { hub, app }), payload)
    for (const listener of this.#eventListeners) listener(event)
  }

  #setApp(app: App): void {
    const { updates, guardian, table } = this.#options
    const { id } = app
    const rows = this.#apps.get(id) ?? new OwnerRows({ kind: 'app', hub: this.#name, app: id }, table)
    this.#apps.set(id, rows)
    rows.set({
      app,
      ...updates.of(this.#name, app),
      guard: guardian.factsOf(this.#name, id),
      crash: this.#evidence.crashes.get(id),
      links: this.figures.links.get(id),
      release: this.#hub.apps.releases.all.get(id)?.release,
    })
  }

  #appRemoved(id: string): void {
    this.#options.updates.appRemoved(this.#name, id)
    this.settings.appRemoved(id)
    this.figures.links.delete(id)
    this.#apps.get(id)?.clear()
    this.#apps.delete(id)
  }
}
