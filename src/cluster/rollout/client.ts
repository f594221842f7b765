/** The connection of a rollout: reads apps and records from the broker, listens to individual topics, and publishes. */
import type { IPublishPacket } from 'mqtt'
import type { Clock } from '../../base/clock.ts'
import type { Rollout, RolloutOrder } from '../../contract/rollout.ts'
import type { Topics } from '../../contract/topics.ts'
import type { Connection } from '../../mqtt/connection.ts'
import { ReadBack } from '../../mqtt/readback.ts'
import { readApp, readRollout, type TargetApp } from './record.ts'

/** Thrown if the broker does not accept a publish or a subscription; the message names its topic. */
export class DeniedError extends Error {
  override readonly name = 'DeniedError'
}

/** `from` is `process` for an answer from this process itself, `broker` for a message from any client. */
type Listener = (text: string, from: 'process' | 'broker') => void

/** Maximum size of a packet, excluding its topic and payload: fixed header, topic length, packet id and properties. */
const PACKET_OVERHEAD = 64
/** Time limit for the broker to send retained messages, in milliseconds. */
const READ_MS = 10_000
/** Number of retained messages that every broker sends without dropping any. */
const MANY = 500

export function newClient(connection: Connection, topics: Topics, clock: Clock) {
  const listeners = new Map<string, Listener>()
  let reading: ReadBack | undefined
  return { received, answered, records, apps, listen, publish }

  function received(packet: IPublishPacket): void {
    const listener = listeners.get(packet.topic)
    if (listener === undefined) reading?.received(packet)
    else listener(packet.payload.toString(), 'broker')
  }

  /** Call this when this process has sent an answer to a result topic. */
  function answered(topic: string, text: () => string): void {
    listeners.get(topic)?.(text(), 'process')
  }

  /** Returns the rollouts on the broker and their payloads, most recently changed last. @throws DeniedError */
  async function records(): Promise<Map<Rollout, string>> {
    const found: [Rollout, string][] = []
    await read(topics.fill('rollout'), (topic, text) => {
      const rollout = readRollout(topics, topic, text)
      if (rollout !== undefined) found.push([rollout, text])
    })
    return new Map(found.sort(([one], [other]) => Date.parse(one.updated_at) - Date.parse(other.updated_at)))
  }

  /** Returns at least all apps that the order may match. @throws DeniedError */
  async function apps({ app: wanted }: RolloutOrder): Promise<TargetApp[]> {
    const found = new Map<string, TargetApp>()
    const filter = topics.fill('app', /[*?]/.test(wanted) ? {} : { app: wanted })
    let before: number
    do {
      before = found.size
      await read(filter, (topic, text) => {
        const own = topics.parse(topic)
        const seen = readApp(text)
        if (own?.owner.kind !== 'app' || own.name !== 'app' || seen === undefined) return
        const { hub, app } = own.owner
        found.set(topic, { hub, app, enabled: seen.enabled })
      })
      // A broker may silently drop some of many messages, so read again until no more apps are found.
    } while (found.size > MANY && found.size > before)
    return [...found.values()]
  }

  /** Reads the retained messages that match a filter. @throws DeniedError */
  async function read(filter: string, onFound: (topic: string, text: string) => void): Promise<void> {
    const probeTopic = topics.of('bridgeProbe', {})
    let isDenied = false
    reading = new ReadBack(connection, {
      retainedFilters: [filter],
      probeTopic,
      clock,
      timeoutMs: READ_MS,
      subscribe: async (one, qos) => {
        const granted = await connection.subscribe(one, { qos })
        if (one === filter) isDenied = !granted
        return granted
      },
      onFound,
    })
    const { probe } = await reading.run()
    reading = undefined
    if (isDenied) throw new DeniedError(`the broker does not let this user read ${filter}`)
    if (probe !== 'ok') throw new DeniedError(`the broker does not let this user read ${probeTopic}`)
  }

  /** Listens to a topic, including its retained message, until the returned function is called. @throws DeniedError */
  async function listen(topic: string, listener: Listener): Promise<() => void> {
    listeners.set(topic, listener)
    if (!(await connection.subscribe(topic, { qos: 1 }))) {
      listeners.delete(topic)
      throw new DeniedError(`the broker does not let this user read ${topic}`)
    }
    return () => {
      listeners.delete(topic)
      void connection.unsubscribe([topic])
    }
  }

  /**
   * Publishes. Resolves when the broker has the message; stays pending if the connection ends first. @throws
   * DeniedError
   */
  async function publish(
    topic: string,
    payload: string,
    { retain = false, expirySeconds }: { readonly retain?: boolean; readonly expirySeconds?: number } = {},
  ): Promise<void> {
    const { protocol, maximumPacketSize } = connection
    if (Buffer.byteLength(payload) + Buffer.byteLength(topic) + PACKET_OVERHEAD > maximumPacketSize) {
      throw new DeniedError(`${topic} would be larger than the broker accepts`)
    }
    const { promise, resolve } = Promise.withResolvers<number>()
    const expires = protocol === '5' && expirySeconds !== undefined
    const more = expires ? { properties: { messageExpiryInterval: expirySeconds } } : {}
    connection.publish(topic, payload, { qos: 1, retain, ...more }, resolve)
    const reason = await promise
    if (reason !== 0) throw new DeniedError(`the broker does not accept ${topic} (reason ${reason})`)
  }
}
export type Client = ReturnType<typeof newClient>
