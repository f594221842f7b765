/** The bridge's side towards Home Assistant: its devices, the states made for it alone, and what is left over. */
import type { Clock } from '../../base/clock.ts'
import type { AppsNews } from '../../hub/app-manager.ts'
import type { Hub } from '../../hub/hub.ts'
import type { LogLevel } from '../../log/levels.ts'
import type { App } from '../../model/app.ts'
import type { Message } from '../../mqtt/types.ts'
import type { CommandRun } from '../dispatcher.ts'
import { ORIGIN } from './device.ts'
import { Devices, type DevicesOptions } from './devices.ts'
import { createDiscoveryTopics, parseDiscoveryTopic } from './discovery-topics.ts'
import { originOf } from './messages.ts'
import { Prefixes } from './prefixes.ts'
import { type DiscoveryLink, Publisher } from './publisher.ts'
import { countsDiffer, deviceDiffers, renderSummary, renderUpdate, updateDiffers } from './states.ts'

/** The options `discovery.…`. */
export interface DiscoveryConfig {
  readonly format: 'device' | 'component' | 'off'
  readonly prefix: string
  readonly birth_topic: string
}

export interface HomeAssistantOptions extends DevicesOptions {
  readonly discovery: DiscoveryConfig
  readonly clock: Clock
  /** Numbers from 0 to under 1. */
  readonly random: () => number
}

/** After Home Assistant says that it is there: it has much to do then, and so have others who heard it. */
const BIRTH_MS = { least: 1_000, spread: 4_000 }

export class HomeAssistant {
  readonly #options: HomeAssistantOptions
  readonly #link: DiscoveryLink
  /** Neither is there when configuration turns discovery off; then only what was left over is cleared. */
  readonly #publisher: Publisher | undefined
  readonly #devices: Devices | undefined
  readonly #prefixes: Prefixes
  /** Hub and app of our own installs under way. */
  readonly #installing = new Set<string>()
  #cancelBirth: (() => void) | undefined

  constructor(options: HomeAssistantOptions, link: DiscoveryLink) {
    const { discovery, topics, clock } = options
    const { format, prefix } = discovery
    this.#options = options
    this.#link = link
    this.#prefixes = new Prefixes(prefix, topics.bridgeDiscovery)
    if (format === 'off') return
    this.#publisher = new Publisher({ link, clock, topics: createDiscoveryTopics(prefix), form: format })
    this.#devices = new Devices(options, this.#publisher)
  }

  /** What the broker holds may say that an earlier configuration published elsewhere: filters to read that back too. */
  furtherFilters(topic: string, payload: string): string[] {
    return this.#prefixes.learn(topic, payload)
  }

  /** The broker is there and what it holds is known. */
  connected(): void {
    this.#publisher?.connected()
    this.#remember()
    this.#sweep()
  }

  stop(): void {
    this.#publisher?.stop()
    this.#cancelBirth?.()
  }

  setLogLevel(level: LogLevel): void {
    this.#link.hold(this.#options.topics.bridgeLogLevel, this.#publisher === undefined ? null : level)
  }

  /** Takes in Home Assistant's own message; false for any other. */
  receive({ topic, payload, retain }: Message): boolean {
    if (topic !== this.#options.discovery.birth_topic) return false
    if (!retain && payload.toString() === 'online' && this.#publisher !== undefined) this.#welcome(this.#publisher)
    return true
  }

  /** Somebody published on a discovery topic. */
  touched(topic: string, payload: string): void {
    this.#publisher?.touched(topic, payload)
  }

  /** To be called before the bridge clears what nobody wants. */
  appsChanged(name: string, hub: Hub, { changes, silent }: AppsNews): void {
    if (this.#devices !== undefined) {
      for (const change of changes) {
        if (change.after === undefined) this.#forget(name, change.id)
        else {
          if (updateDiffers(change)) this.#holdUpdate(name, change.after)
          if (deviceDiffers(change)) this.#devices.appChanged(name, change.after)
        }
      }
      if (silent || changes.some(countsDiffer)) this.#holdSummary(name, hub)
    }
    if (silent) this.#sweep()
  }

  /** The hub's status changed: who it is, or what it permits. */
  hubChanged(name: string): void {
    // Who the hub is comes after its apps, and only then it is known which devices are its.
    if (this.#devices === undefined || this.#devices.hubChanged(name)) this.#sweep()
  }

  /** To be called while the hub still knows its apps, and is no longer among the hubs. */
  hubRemoved(name: string, hub: Hub): void {
    const { topics } = this.#options
    for (const id of hub.apps.all.keys()) this.#link.hold(topics.appUpdate(name, id), null)
    this.#link.hold(topics.hubSummary(name), null)
    this.#devices?.hubRemoved(name, hub)
  }

  /** Configuration has changed what commands may do, or which settings are published. */
  reconfigured(): void {
    for (const name of this.#options.hubs.keys()) this.#devices?.hubChanged(name)
    this.#devices?.bridgeChanged()
  }

  /** A command begins or ends: an install of ours shows as progress. */
  ran({ hub: name, app: id, command, phase }: CommandRun): void {
    if (command.operation !== 'installFromAppStore' || id === null) return
    if (phase === 'begun') this.#installing.add(keyOf(name, id))
    else this.#installing.delete(keyOf(name, id))
    const app = this.#options.hubs.get(name)?.hub.apps.all.get(id)
    if (app !== undefined && this.#publisher !== undefined) this.#holdUpdate(name, app)
  }

  #welcome(publisher: Publisher): void {
    const { topics, hubs, clock, random } = this.#options
    this.#cancelBirth?.()
    this.#cancelBirth = clock.after(BIRTH_MS.least + random() * BIRTH_MS.spread, () => {
      this.#link.refresh([topics.bridgeState, ...[...hubs.keys()].map((name) => topics.hubState(name))])
      publisher.publishAgain()
    })
  }

  #forget(name: string, id: string): void {
    this.#link.hold(this.#options.topics.appUpdate(name, id), null)
    this.#devices?.appRemoved(name, id)
  }

  #holdUpdate(name: string, app: App): void {
    const payload = renderUpdate(app, this.#installing.has(keyOf(name, app.id)))
    this.#link.hold(this.#options.topics.appUpdate(name, app.id), payload)
  }

  #holdSummary(name: string, hub: Hub): void {
    this.#link.hold(this.#options.topics.hubSummary(name), renderSummary(hub.apps.all))
  }

  #remember(): void {
    const { topics } = this.#options
    this.#link.hold(topics.bridgeDiscovery, this.#prefixes.render(this.#publisher !== undefined))
  }

  /** Clears what earlier runs and configurations left of ours. Nothing of a hub is touched before its list was read. */
  #sweep(): void {
    const { hubs, log } = this.#options
    const all = [...hubs.values()].every(({ hub }) => hub.apps.complete && hub.status.id !== null)
    const cleared = this.#link.sweep((topic, payload) => this.#isOrphan(topic, payload, all))
    if (cleared > 0) log.info({ topics: cleared }, 'cleared Home Assistant devices that belong to nothing any more')
    if (!all || hubs.size === 0) return
    this.#prefixes.settle()
    this.#remember()
  }

  /** `all`: who all the hubs are is known, and which apps they have. */
  #isOrphan(topic: string, payload: string, all: boolean): boolean {
    const { topics, discovery, hubs } = this.#options
    const parsed = parseDiscoveryTopic(topic)
    if (parsed === undefined || !this.#prefixes.includes(parsed.prefix)) return false
    // Empty where the broker held too much to keep it all: then the topic alone must say whose it is.
    if (payload !== '' && originOf(payload) !== ORIGIN) return false
    // In another form, or not at its turn yet: the publisher takes over from it.
    if (parsed.prefix === discovery.prefix && this.#publisher?.wants(parsed.objectId)) return false
    const owner = [...hubs.values()].find(({ hub }) => hub.status.id === parsed.owner.hubId)
    if (owner !== undefined) return owner.hub.apps.complete
    // Of a hub that is configured no longer, if this bridge made it and none of its hubs can be that one.
    return all && payload.includes(JSON.stringify(topics.bridgeState))
  }
}

const keyOf = (hub: string, app: string) => `${hub} ${app}`
