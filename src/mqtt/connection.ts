/** One connection, from CONNECT to the end: a thin skin over one mqtt.js client that is never used twice. */
import type { Duplex } from 'node:stream'
import {
  type IClientPublishOptions,
  type IClientSubscribeOptions,
  type IConnackPacket,
  type IPublishPacket,
  MqttClient,
} from 'mqtt'
import { errorFailure, type Failure, reasonFailure } from './failure.ts'
import type { Credentials, LinkOptions, Protocol } from './types.ts'

/** Larger messages are not wanted; under MQTT 5 the broker is told so and withholds them. */
const maximumPacketSize = 1024 * 1024

export interface ConnectionOptions extends Credentials {
  readonly link: LinkOptions
  readonly protocol: Protocol
  /** Counts connections from 1. */
  readonly number: number
  readonly onPublish: (packet: IPublishPacket, connection: Connection) => void
}

export class Connection {
  readonly protocol: Protocol
  readonly number: number
  /** Resolves to undefined at a CONNACK that accepts; never, if there is none. */
  readonly accepted: Promise<undefined>
  /** Resolves once, when the connection is over or could not be made. */
  readonly down: Promise<Failure>
  readonly #client: MqttClient
  readonly #down = Promise.withResolvers<Failure>()
  readonly #accepted = Promise.withResolvers<undefined>()
  #connack: IConnackPacket | undefined
  #failure: Failure | undefined

  constructor(openStream: () => Duplex, options: ConnectionOptions) {
    this.protocol = options.protocol
    this.number = options.number
    this.accepted = this.#accepted.promise
    this.down = this.#down.promise
    const client = new MqttClient(openStream, clientOptions(options))
    this.#client = client
    client.on('connect', (connack) => {
      this.#connack = connack
      this.#accepted.resolve(undefined)
    })
    client.on('message', (_topic, _payload, packet) => {
      if (this.#failure === undefined) options.onPublish(packet, this)
    })
    client.on('error', (error) => this.drop(errorFailure(error, this.#connack !== undefined)))
    // mqtt.js passes on only those errors of the stream that have a code.
    client.stream.on('error', (error: Error) => this.drop(errorFailure(error, this.#connack !== undefined)))
    client.on('disconnect', ({ reasonCode = 0, properties }) => {
      const detail = `the broker ended the connection with reason ${reasonCode}`
      this.drop(reasonFailure(reasonCode, properties?.reasonString ? `${detail}: ${properties.reasonString}` : detail))
    })
    client.on('close', () => this.drop({ code: 'closed', detail: 'the connection was closed by the other side' }))
  }

  get isDown(): boolean {
    return this.#failure !== undefined
  }

  get isAccepted(): boolean {
    return this.#connack !== undefined
  }

  /** QoS 1 publishes that the broker takes without having acknowledged one. */
  get receiveMaximum(): number {
    return this.#connack?.properties?.receiveMaximum ?? 65_535
  }

  /** The largest packet that the broker takes, in bytes; Infinity if it did not say. */
  get maximumPacketSize(): number {
    return this.#connack?.properties?.maximumPacketSize ?? Number.POSITIVE_INFINITY
  }

  /** Writes in this turn of the event loop; `done` gets PUBACK's reason code. It is not called once the connection is down. */
  publish(topic: string, payload: string, options: IClientPublishOptions, done: (reason: number) => void): void {
    if (this.#failure !== undefined) return
    this.#client.publish(topic, payload, options, (error) => {
      if (this.#failure !== undefined) return
      if (!error) return done(0)
      if ('code' in error && typeof error.code === 'number') return done(error.code)
      this.#dropSoon(errorFailure(error, true))
    })
  }

  /** Whether the broker granted `filter`. Pending for ever once the connection is down. */
  subscribe(filter: string, options: IClientSubscribeOptions): Promise<boolean> {
    return new Promise((resolve) => {
      this.#client.subscribe(filter, options, (error, _granted, suback) => {
        if (suback !== undefined) resolve(!error)
        else if (this.#failure === undefined && error) this.#dropSoon(errorFailure(error, true))
      })
    })
  }

  /**
   * For a failure that mqtt.js tells of while it goes through all that is outgoing: ended in the midst of that, it
   * would empty the list under its own feet and throw.
   */
  #dropSoon(failure: Failure): void {
    queueMicrotask(() => this.drop(failure))
  }

  unsubscribe(filters: readonly string[]): void {
    this.#client.unsubscribe([...filters], () => undefined)
  }

  /** Sends DISCONNECT, so that the will is forgotten, and waits for the broker to close its side. */
  async end(): Promise<void> {
    if (this.#failure !== undefined) return
    // mqtt.js would wait for these before it says anything; who ends a connection has waited already.
    if (Object.keys(this.#client.outgoing).length > 0) this.drop({ code: 'closed', detail: 'closed by us' })
    else this.#client.end(false)
    await this.down
  }

  /** Ends the connection at once, without a word to the broker; of several calls the first decides. */
  drop(failure: Failure): void {
    if (this.#failure !== undefined) return
    this.#failure = failure
    this.#client.end(true)
    this.#client.stream.destroy()
    this.#down.resolve(failure)
  }
}

function clientOptions({ link, protocol, username, password }: ConnectionOptions) {
  return {
    clientId: link.clientId,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    protocolVersion: protocol === '5' ? (5 as const) : (4 as const),
    clean: true,
    keepalive: Math.max(1, Math.round((link.keepaliveMs ?? 30_000) / 1000)),
    // A ping each interval, whatever the traffic: cheaper than winding a timer at every acknowledgement.
    reschedulePings: false,
    connectTimeout: link.connectTimeoutMs ?? 10_000,
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
    timerVariant: 'native' as const,
    // Else a Buffer for each of 65,536 numbers is made and kept: some 7 MB, to save two bytes a packet.
    writeCache: false,
    // Else `DEBUG=mqttjs*` would print the password.
    log: () => undefined,
    will: { topic: link.stateTopic, payload: 'offline', qos: 1 as const, retain: true },
    ...(protocol === '5' ? { properties: { sessionExpiryInterval: 0, maximumPacketSize } } : {}),
  }
}
