/** One connection to a broker, from CONNECT to its end. Each connection has its own mqtt.js client. */
import type { Duplex } from 'node:stream'
import {
  type IClientPublishOptions,
  type IClientSubscribeOptions,
  type IConnackPacket,
  type IPublishPacket,
  MqttClient,
} from 'mqtt'
import { errorFailure, type Failure, reasonFailure } from './failure.ts'
import { filterPackets, PACKET_TOO_LARGE, TOO_LARGE_STAND_IN } from './packet-filter.ts'
import type { BrokerOptions, Credentials, Protocol } from './types.ts'

interface ConnectionOptions extends Credentials, Pick<BrokerOptions, 'keepaliveMs' | 'connectTimeoutMs'> {
  readonly clientId: string
  readonly protocol: Protocol
  /** The topic of the will, a retained `offline`; default: no will. */
  readonly willTopic?: string | undefined
  readonly onPublish: (packet: IPublishPacket) => void
  /** Whether to postpone the PUBACK of a message passed to `onPublish` until `acknowledge`; default: no. */
  readonly postponesAck?: (() => boolean) | undefined
  /** Called if the broker reports that a publish has no subscribers. Requires MQTT 5; not all brokers report this. */
  readonly onNoSubscribers?: (() => void) | undefined
}

export const CLOSED_BY_US: Failure = { code: 'closed', detail: 'closed by us' }

/** A DISCONNECT packet without a reason code, which means a normal disconnection. */
const DISCONNECT = Buffer.from([0xe0, 0])

const NO_MATCHING_SUBSCRIBERS = 16

export class Connection {
  readonly protocol: Protocol
  isDown = false
  readonly #client: MqttClient
  readonly #accepted = Promise.withResolvers<undefined>()
  readonly #down = Promise.withResolvers<Failure>()
  readonly #ended = new AbortController()
  /** Stays pending if the broker does not accept the connection. */
  readonly accepted = this.#accepted.promise
  /** Resolves when the connection has ended or could not be established. */
  readonly down = this.#down.promise
  /** Aborted when `down` resolves. */
  readonly ended = this.#ended.signal
  /** Packet ids whose PUBACK is postponed. */
  readonly #postponed: number[] = []
  #connack: IConnackPacket | undefined
  /** Whether DISCONNECT was sent. No packet may follow it. */
  #ending = false

  constructor(openStream: () => Duplex, options: ConnectionOptions) {
    const { protocol, onPublish, postponesAck = () => false, onNoSubscribers } = options
    this.protocol = protocol
    const client = new MqttClient(() => filterPackets(openStream(), protocol), clientOptions(options))
    this.#client = client
    client.on('connect', (connack) => {
      this.#connack = connack
      this.#accepted.resolve(undefined)
    })
    client.on('message', (_topic, _payload, packet) => {
      if (!this.isDown) onPublish(packet)
    })
    client.handleMessage = ({ messageId, qos }: IPublishPacket, done) => {
      if (messageId === undefined || qos !== 1 || !postponesAck()) return done()
      this.#postponed.push(messageId)
      // mqtt.js sends no PUBACK after an error, and continues with the next packet.
      done(new Error('acknowledged later'))
    }
    if (onNoSubscribers !== undefined) {
      client.on('packetreceive', (packet) => {
        if (packet.cmd === 'puback' && packet.reasonCode === NO_MATCHING_SUBSCRIBERS) onNoSubscribers()
      })
    }
    client.on('error', (error) => this.drop(errorFailure(error, this.isAccepted)))
    // Listen for stream errors here too, because mqtt.js emits only those that have a code.
    client.stream.on('error', (error: Error) => this.drop(errorFailure(error, this.isAccepted)))
    client.on('disconnect', ({ reasonCode = 0, properties }) => {
      const detail = `the broker ended the connection with reason ${reasonCode}`
      this.drop(reasonFailure(reasonCode, properties?.reasonString ? `${detail}: ${properties.reasonString}` : detail))
    })
    client.on('close', () => this.drop({ code: 'closed', detail: 'the other side closed the connection' }))
  }

  /** Stays `true` after the end of the connection. */
  get isAccepted(): boolean {
    return this.#connack !== undefined
  }

  /** A required feature that the broker lacks according to its CONNACK. */
  get lack(): string | undefined {
    const { retainAvailable, maximumQoS, wildcardSubscriptionAvailable } = this.#connack?.properties ?? {}
    if (retainAvailable === false) return 'retained messages'
    if (maximumQoS === 0) return 'QoS 1'
    if (wildcardSubscriptionAvailable === false) return 'subscriptions with wildcards'
    return undefined
  }

  /** The maximum number of unacknowledged QoS 1 publishes that the broker accepts. */
  get receiveMaximum(): number {
    return this.#connack?.properties?.receiveMaximum ?? 65_535
  }

  /** The maximum size of a packet in bytes; Infinity if the broker announced no limit. */
  get maximumPacketSize(): number {
    return this.#connack?.properties?.maximumPacketSize ?? Number.POSITIVE_INFINITY
  }

  /** Writes a message in this turn of the event loop. `done` receives the reason code of the PUBACK, if it arrives. */
  publish(topic: string, payload: string, options: IClientPublishOptions, done: (reason: number) => void): void {
    if (this.isDown || this.#ending) return
    this.#client.publish(topic, payload, options, (error) => {
      if (this.isDown) return
      if (!error) return done(0)
      if ('code' in error && typeof error.code === 'number') {
        return done(error.code === TOO_LARGE_STAND_IN ? PACKET_TOO_LARGE : error.code)
      }
      // Wait for the end of this callback, because mqtt.js may be iterating over the packets that `drop` clears.
      queueMicrotask(() => this.drop(errorFailure(error, true)))
    })
  }

  acknowledge(): void {
    if (this.isDown || this.#ending) return
    for (const id of this.#postponed.splice(0)) this.#client.stream.write(Buffer.from([0x40, 2, id >> 8, id & 0xff]))
  }

  /** Resolves to whether the broker granted `filter`. Stays pending if the connection ends first. */
  subscribe(filter: string, options: IClientSubscribeOptions): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.#ending) return
      this.#client.subscribe(filter, options, (error, _granted, suback) => {
        if (suback !== undefined) resolve(!error)
        else if (!this.isDown && error) queueMicrotask(() => this.drop(errorFailure(error, true)))
      })
    })
  }

  /** Resolves when the broker has answered. Stays pending if the connection ends first. */
  unsubscribe(filters: readonly string[]): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#ending) this.#client.unsubscribe([...filters], (_, unsuback) => unsuback && resolve())
    })
  }

  /**
   * Sends DISCONNECT, and waits until the broker has closed the connection. Otherwise, a new connection with the same
   * client id could overtake the DISCONNECT, and the broker would publish the will.
   */
  async end(): Promise<void> {
    if (this.isDown) return
    if (!this.#ending && this.isAccepted) {
      this.#ending = true
      // mqtt.js would first wait for all PUBACKs. On a deliberate reconnect, unacknowledged messages are resent anyway.
      this.#client.stream.write(DISCONNECT)
    } else if (!this.isAccepted) this.drop(CLOSED_BY_US)
    await this.down
  }

  /** Closes the connection immediately, without DISCONNECT. Only the first call's failure counts. */
  drop(failure: Failure): void {
    if (this.isDown) return
    this.isDown = true
    this.#client.end(true)
    this.#client.stream.destroy()
    this.#down.resolve(failure)
    this.#ended.abort()
  }
}

function clientOptions(options: ConnectionOptions) {
  const { clientId, protocol, username, password, keepaliveMs = 30_000, connectTimeoutMs = 10_000 } = options
  const { willTopic } = options
  return {
    clientId,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    protocolVersion: protocol === '5' ? (5 as const) : (4 as const),
    clean: true,
    keepalive: Math.max(1, Math.round(keepaliveMs / 1000)),
    // Ping at each interval, even with other traffic, which is cheaper than restarting a timer on each acknowledgement.
    reschedulePings: false,
    connectTimeout: connectTimeoutMs,
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
    timerVariant: 'native' as const,
    // mqtt.js would keep a Buffer for each of 65,536 numbers, about 7 MB, to avoid allocating two bytes per packet.
    writeCache: false,
    // The default logger would print the password with `DEBUG=mqttjs*`.
    log: () => undefined,
    ...(willTopic === undefined
      ? {}
      : { will: { topic: willTopic, payload: 'offline', qos: 1 as const, retain: true } }),
    // Do not set Maximum Packet Size, because the broker would discard larger commands, which must be answered.
    ...(protocol === '5' ? { properties: { sessionExpiryInterval: 0 } } : {}),
  }
}
