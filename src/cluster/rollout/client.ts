/** The connection of a rollout: reads apps and records from the broker, listens to single topics, and publishes. */
import type { IPublishPacket } from 'mqtt'
import type { Clock } from '../../base/clock.ts'
import type { Rollout, RolloutOrder } from '../../contract/rollout.ts'
import type { Topics } from '../../contract/topics.ts'
import type { Connection } from '../../mqtt/connection.ts'
import { ReadBack } from '../../mqtt/readback.ts'
import { type KnownApp, readApp, readRollout } from './record.ts'

/** The broker refuses a publish or a subscription; the message names it. */
export class DeniedError extends Error {
  override readonly name = 'DeniedError'
}

/** `from`: this process answered itself, or the broker passed the message on, from any client. */
type Listener = (text: string, from: 'process' | 'broker') => void

/** Fixed header, topic length, packet id and properties: an upper bound for our packets, without topic and payload. */
const PACKET_OVERHEAD = 64
/** How long the broker may take to send what it holds. */
const READ_MS = 10_000
/** Any broker sends this many retained messages at once. */
const MANY = 500

export function newClient(connection: Connection, topics: Topics, clock: Clock) {
  const listeners = new Map<string, Listener>()
  let reading: ReadBack | undefined
  return { received, answered, records, apps, listen, publish }

  /** Call it with each message. */
  function received(packet: IPublishPacket): void {
    const listener = listeners.get(packet.topic)
    if (listener === undefined) reading?.received(packet)
    else listener(packet.payload.toString(), 'broker')
  }

  /** Call it when this process has answered a command on its result topic. */
  function answered(topic: string, text: () => string): void {
    listeners.get(topic)?.(text(), 'process')
  }

  /** The rollouts on the broker, each with its text, the most recently changed one last. @throws DeniedError */
  async function records(): Promise<Map<Rollout, string>> {
    const found: [Rollout, string][] = []
    await read(topics.filterOf('rollout'), (topic, text) => {
      const rollout = readRollout(topics, topic, text)
      if (rollout !== undefined) found.push([rollout, text])
    })
    return new Map(found.sort(([one], [other]) => Date.parse(one.updated_at) - Date.parse(other.updated_at)))
  }

  /** The apps that an order may match, and perhaps others. @throws DeniedError */
  async function apps({ app: wanted }: RolloutOrder): Promise<KnownApp[]> {
    const found = new Map<string, KnownApp>()
    const filter = topics.filterOf('app', /[*?]/.test(wanted) ? {} : { app: wanted })
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
      // A broker may silently drop some of a large number of messages.
    } while (found.size > MANY && found.size > before)
    return [...found.values()]
  }

  /** Passes on the retained messages of a filter. @throws DeniedError */
  async function read(filter: string, onFound: (topic: string, text: string) => void): Promise<void> {
    const probeTopic = topics.of('bridgeProbe', {})
    let isDenied = false
    reading = new ReadBack(connection, {
      heldFilters: [filter],
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

  /** Listens until the returned function is called, beginning with the retained message. @throws DeniedError */
  async function listen(topic: string, listener: Listener): Promise<() => void> {
    listeners.set(topic, listener)
    if (!(await connection.subscribe(topic, { qos: 1 }))) {
      listeners.delete(topic)
      throw new DeniedError(`the broker does not let this user read ${topic}`)
    }
    return () => {
      listeners.delete(topic)
      connection.unsubscribe([topic])
    }
  }

  /** Resolves when the broker has the message; never if the connection ends first. @throws DeniedError */
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
