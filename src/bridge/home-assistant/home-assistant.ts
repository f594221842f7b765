/** The bridge's side towards Home Assistant: its devices, its birth, and what earlier runs left of ours. */

import type { Change } from '../../hub/app.ts'
import type { Message } from '../../mqtt/types.ts'
import { deviceDiffers, ORIGIN } from './device.ts'
import { Devices, type HomeAssistantOptions } from './devices.ts'
import { createDiscoveryTopics, parseDiscoveryTopic } from './discovery-topics.ts'
import { originOf } from './messages.ts'
import { Prefixes } from './prefixes.ts'
import { type DiscoveryLink, Publisher } from './publisher.ts'

/** After Home Assistant says that it is there: it has much to do then, and so have others who heard it. */
const BIRTH_MS = { least: 1_000, spread: 4_000 }

export class HomeAssistant {
  readonly #options: HomeAssistantOptions
  readonly #link: DiscoveryLink
  /** Neither is there when configuration turns discovery off; then only what was left over is cleared. */
  readonly #publisher: Publisher | undefined
  readonly #devices: Devices | undefined
  readonly #prefixes: Prefixes
  #cancelBirth: (() => void) | undefined

  constructor(options: HomeAssistantOptions, link: DiscoveryLink) {
    const { live, topics, hubs, clock } = options
    const { format, prefix, rate } = live.value.discovery
    this.#options = options
    this.#link = link
    this.#prefixes = new Prefixes(prefix, topics.of('bridgeDiscovery', {}))
    if (format === 'off') return
    const isBusy = () => hubs.values().some(({ hub }) => hub.isStarting)
    this.#publisher = new Publisher({ link, clock, topics: createDiscoveryTopics(prefix), form: format, rate, isBusy })
    this.#devices = new Devices(options, this.#publisher)
  }

  /** What the broker holds may say that an earlier configuration published elsewhere: filters to read that back too. */
  furtherFilters(topic: string, payload: string): string[] {
    return this.#prefixes.learn(topic, payload)
  }

  /** Prefixes under which something of ours may be; `null`: under none. */
  get prefixes(): readonly string[] | null {
    return this.#prefixes.all(this.#publisher !== undefined)
  }

  /** The broker is there and what it holds is known. */
  connected(): void {
    this.#publisher?.connected()
  }

  stop(): void {
    this.#publisher?.stop()
    this.#cancelBirth?.()
  }

  /** Takes in Home Assistant's own message. */
  receive({ payload, retain }: Pick<Message, 'payload' | 'retain'>): void {
    if (!retain && payload.toString() === 'online' && this.#publisher !== undefined) this.#welcome(this.#publisher)
  }

  /** Somebody published on a discovery topic. */
  touched(topic: string, payload: string): void {
    this.#publisher?.touched(topic, payload)
  }

  appsChanged(name: string, changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.after === undefined) this.#devices?.appRemoved(name, change.id)
      else if (deviceDiffers(change)) this.#devices?.appChanged(name, change.after)
    }
  }

  /** The hub's status changed: who it is, or what it permits. Returns whether other messages may be left over now. */
  hubChanged(name: string): boolean {
    return this.#devices === undefined || this.#devices.hubChanged(name)
  }

  /** There is one more hub. */
  hubAdded(): void {
    this.#devices?.hubAdded()
  }

  /** Another member of the fleet has the hub from now on: its devices stay as the broker has them. */
  hubReleased(name: string): void {
    this.#devices?.hubReleased(name)
  }

  /** The hub is no longer among the hubs. */
  hubRemoved(name: string): void {
    this.#devices?.hubRemoved(name)
  }

  /** Configuration has changed what commands may do, or which settings are published. */
  reconfigured(): void {
    for (const name of this.#options.hubs.keys()) this.#devices?.hubChanged(name)
    this.#devices?.bridgeChanged()
  }

  /**
   * Which discovery messages are ours and left over from earlier runs and configurations. Nothing of a hub is claimed
   * before its list was read.
   */
  orphans(): (topic: string, payload: string) => boolean {
    const { topics, hubs, live, isShared } = this.#options
    const all = this.#allKnown
    const byId = new Map([...hubs.values()].reverse().map(({ hub }) => [hub.status.id, hub]))
    return (topic, payload) => {
      const parsed = parseDiscoveryTopic(topic)
      if (parsed === undefined || !this.#prefixes.includes(parsed.prefix)) return false
      // In another form, or not at its turn yet: the publisher takes over from it.
      if (parsed.prefix === live.value.discovery.prefix && this.#publisher?.wants(parsed.objectId)) return false
      const owner = byId.get(parsed.owner.hubId)
      // Of a hub that is configured no longer, if this bridge made it and none of its hubs can be that one.
      const isLeftOver = owner === undefined ? all && !isShared && payload.includes(topics.mark) : owner.apps.complete
      // Empty where the broker held too much to keep it all: then the topic alone must say whose it is.
      return isLeftOver && (payload === '' || originOf(payload) === ORIGIN)
    }
  }

  /** The orphans have been cleared. Returns whether nothing can be left under a former prefix. */
  settle(): boolean {
    if (!this.#allKnown || this.#options.hubs.size === 0) return false
    this.#prefixes.settle()
    return true
  }

  /** Who all the hubs are is known, and which apps they have. */
  get #allKnown(): boolean {
    return [...this.#options.hubs.values()].every(({ hub }) => hub.apps.complete && hub.status.id !== null)
  }

  #welcome(publisher: Publisher): void {
    const { topics, hubs, clock, random } = this.#options
    this.#cancelBirth?.()
    this.#cancelBirth = clock.after(BIRTH_MS.least + random() * BIRTH_MS.spread, () => {
      const states = [...hubs.keys()].map((hub) => topics.of('hubState', { hub }))
      // First, as without it nothing is available; then not once more among the states of its device.
      const availability = new Set([topics.hubsAvailability, ...states])
      this.#link.refresh(availability)
      publisher.publishAgain(availability)
    })
  }
}
