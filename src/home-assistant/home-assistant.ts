/** The bridge's side towards Home Assistant: its devices, its birth, and what earlier runs left of ours. */

import { Prefixes } from '../bridge/prefixes.ts'
import { createDiscoveryTopics } from '../contract/discovery.ts'
import type { Change } from '../hub/app.ts'
import type { Message } from '../mqtt/types.ts'
import { deviceDiffers } from './device.ts'
import { Devices, type HomeAssistantOptions } from './devices.ts'
import { type DiscoveryLink, Publisher } from './publisher.ts'

/** After Home Assistant says that it is there: it has much to do then, and so have others who heard it. */
const BIRTH_MS = { least: 1_000, spread: 4_000 }

export class HomeAssistant {
  /** Prefixes under which something of ours may be. */
  readonly prefixes: Prefixes
  readonly #options: HomeAssistantOptions
  readonly #link: DiscoveryLink
  /** Neither is there when configuration turns discovery off; then only what was left over is cleared. */
  readonly #publisher: Publisher | undefined
  readonly #devices: Devices | undefined
  #cancelBirth: (() => void) | undefined

  constructor(options: HomeAssistantOptions, link: DiscoveryLink) {
    const { live, topics, hubs, clock } = options
    const { format, prefix, rate } = live.value.discovery
    this.#options = options
    this.#link = link
    this.prefixes = new Prefixes(prefix, topics.of('bridgeDiscovery', {}), format !== 'off')
    if (format === 'off') return
    const isBusy = () => hubs.values().some(({ hub }) => hub.isStarting)
    this.#publisher = new Publisher({ link, clock, topics: createDiscoveryTopics(prefix), form: format, rate, isBusy })
    this.#devices = new Devices(options, this.#publisher)
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

  /** Whether a device is published under a prefix, in either form, or waits for that or for its end. */
  has(prefix: string, objectId: string): boolean {
    return this.#publisher?.has(prefix, objectId) === true
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
