/** The bridge's side towards Home Assistant: the devices that it publishes there, and what it does at its birth. */
import type { Discovery } from '../bridge/bridge-options.ts'
import { createDiscoveryTopics } from '../contract/discovery.ts'
import type { Change } from '../hub/app.ts'
import type { Message } from '../mqtt/types.ts'
import { deviceDiffers } from './device.ts'
import { Devices, type HomeAssistantOptions } from './devices.ts'
import { type DiscoveryLink, Publisher } from './publisher.ts'

/** After Home Assistant says that it is there: it has much to do then, and so have others who heard it. */
const BIRTH_MS = { least: 1_000, spread: 4_000 }

export class HomeAssistant implements Discovery {
  readonly #options: HomeAssistantOptions
  readonly #link: DiscoveryLink
  readonly #publisher: Publisher
  readonly #devices: Devices
  #cancelBirth: (() => void) | undefined

  constructor(options: HomeAssistantOptions, link: DiscoveryLink) {
    const { live, hubs, clock } = options
    const { format, prefix, rate } = live.value.discovery
    this.#options = options
    this.#link = link
    const form = format === 'component' ? 'component' : 'device'
    const isBusy = () => hubs.values().some(({ hub }) => hub.isStarting)
    this.#publisher = new Publisher({ link, clock, topics: createDiscoveryTopics(prefix), form, rate, isBusy })
    this.#devices = new Devices(options, this.#publisher)
  }

  connected(): void {
    this.#publisher.connected()
  }

  stop(): void {
    this.#publisher.stop()
    this.#cancelBirth?.()
  }

  receive({ payload, retain }: Pick<Message, 'payload' | 'retain'>): void {
    if (!retain && payload.toString() === 'online') this.#welcome()
  }

  touched(topic: string, payload: string): void {
    this.#publisher.touched(topic, payload)
  }

  appsChanged(name: string, changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.after === undefined) this.#devices.appRemoved(name, change.id)
      else if (deviceDiffers(change)) this.#devices.appChanged(name, change.after)
    }
  }

  hubChanged(name: string): boolean {
    return this.#devices.hubChanged(name)
  }

  hubAdded(): void {
    this.#devices.hubAdded()
  }

  hubReleased(name: string): void {
    this.#devices.hubReleased(name)
  }

  hubRemoved(name: string): void {
    this.#devices.hubRemoved(name)
  }

  reconfigured(): void {
    for (const name of this.#options.hubs.keys()) this.#devices.hubChanged(name)
    this.#devices.bridgeChanged()
  }

  has(prefix: string, objectId: string): boolean {
    return this.#publisher.has(prefix, objectId)
  }

  #welcome(): void {
    const { topics, hubs, clock, random } = this.#options
    this.#cancelBirth?.()
    this.#cancelBirth = clock.after(BIRTH_MS.least + random() * BIRTH_MS.spread, () => {
      const states = [...hubs.keys()].map((hub) => topics.of('hubState', { hub }))
      // First, as without it nothing is available; then not once more among the states of its device.
      const availability = new Set([topics.hubsAvailability, ...states])
      this.#link.refresh(availability)
      this.#publisher.publishAgain(availability)
    })
  }
}
