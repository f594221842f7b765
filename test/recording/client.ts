/** An ordinary MQTT client that records the messages that it receives. */
import { connect as connectTcp } from 'node:net'
import { type IClientPublishOptions, type IPublishPacket, MqttClient } from 'mqtt'
import type { BrokerKind } from '../support/brokers.ts'
import { isMarker, PING } from './marker.ts'

const TIMEOUT_MS = 30_000

export interface ClientOptions {
  readonly url: string
  /** The kind of broker. The client uses MQTT 5 for Mosquitto, and 3.1.1 for the embedded broker. */
  readonly broker: BrokerKind
  readonly id: string
  readonly filters: readonly string[]
}

export class Client implements AsyncDisposable {
  readonly seen: IPublishPacket[] = []
  /** The latest received marker; `seen` contains no markers. */
  #marker = ''
  #onMarker = () => {}
  readonly #client: MqttClient
  readonly #broker: BrokerKind

  private constructor(client: MqttClient, broker: BrokerKind) {
    this.#client = client
    this.#broker = broker
    client.on('message', (topic, payload, packet) => {
      if (!isMarker(packet)) this.seen.push(packet)
      else if (topic !== PING) {
        this.#marker = payload.toString()
        this.#onMarker()
      }
    })
  }

  static async connect({ url, broker, id, filters }: ClientOptions): Promise<Client> {
    const port = Number(new URL(url).port)
    const mqtt = new MqttClient(() => connectTcp({ port, host: '127.0.0.1', noDelay: true }), {
      clientId: id,
      protocolVersion: broker === 'mosquitto' ? 5 : 4,
      reconnectPeriod: 0,
    })
    const client = new Client(mqtt, broker)
    await new Promise<void>((resolve, reject) => {
      mqtt.once('connect', () => resolve())
      mqtt.once('error', reject)
      mqtt.once('close', () => reject(new Error('the broker closed the connection')))
    })
    mqtt.on('error', () => undefined)
    // With `rap`, MQTT 5 shows whether a live message was published with the retain flag.
    await Promise.all(filters.map((filter) => mqtt.subscribeAsync(filter, { qos: 1, rap: true })))
    return client
  }

  /** Resolves when the publish is acknowledged. With MQTT 3.1.1, properties are left out. */
  async publish(
    topic: string,
    payload: string | Buffer,
    { properties, ...options }: IClientPublishOptions = {},
  ): Promise<void> {
    const more = properties !== undefined && this.#broker === 'mosquitto' ? { properties } : {}
    await this.#client.publishAsync(topic, payload, { qos: 1, ...options, ...more })
  }

  /** Resolves when this marker is the latest one. Does not poll, because a recording waits for thousands of markers. */
  async untilMarker(marker: string): Promise<void> {
    const timeout = setTimeout(
      () => arrival.reject(new Error(`timed out waiting for the marker ${marker}`)),
      TIMEOUT_MS,
    )
    const arrival = Promise.withResolvers<void>()
    this.#onMarker = () => {
      if (this.#marker.includes(marker)) arrival.resolve()
    }
    this.#onMarker()
    await arrival.promise.finally(() => clearTimeout(timeout))
  }

  texts(topic: string): string[] {
    return this.seen.filter((packet) => packet.topic === topic).map(({ payload }) => payload.toString())
  }

  last(topic: string): string | undefined {
    return this.seen.findLast((packet) => packet.topic === topic)?.payload.toString()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise((resolve) => this.#client.end(false, () => resolve()))
  }
}
