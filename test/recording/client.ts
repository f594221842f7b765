/** A client that records the messages that it receives, except markers, and waits for markers. */
import type { IClientPublishOptions, IPublishPacket } from 'mqtt'
import type { BrokerKind } from '../support/brokers.ts'
import { Observer } from '../support/observer.ts'
import { isMarker, PING } from './marker.ts'

const TIMEOUT_MS = 30_000

export class Client implements AsyncDisposable {
  readonly seen: IPublishPacket[] = []
  /** The latest received marker; `seen` contains no markers. */
  #marker = ''
  #onMarker = () => {}
  #observer: Observer | undefined

  /** Uses MQTT 5 for Mosquitto, and 3.1.1 for the embedded broker. */
  static async connect(port: number, broker: BrokerKind, filter: readonly string[]): Promise<Client> {
    const client = new Client()
    const protocol = broker === 'mosquitto' ? '5' : '3.1.1'
    const onMessage = ({ packet }: { readonly packet: IPublishPacket }) => client.#take(packet)
    // With `retainAsPublished`, MQTT 5 shows whether a live message was published with the retain flag.
    const options = { protocol, filter, retainAsPublished: true, keeps: false, onMessage } as const
    client.#observer = await Observer.on(port, options)
    return client
  }

  #take(packet: IPublishPacket): void {
    if (!isMarker(packet)) this.seen.push(packet)
    else if (packet.topic !== PING) {
      this.#marker = packet.payload.toString()
      this.#onMarker()
    }
  }

  /** Resolves when the publish is acknowledged. With MQTT 3.1.1, properties are left out. */
  async publish(topic: string, payload: string | Buffer, options?: IClientPublishOptions): Promise<void> {
    await this.#observer?.publish(topic, payload, options)
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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#observer?.[Symbol.asyncDispose]()
  }
}
