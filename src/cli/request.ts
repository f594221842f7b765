/** One request to a service on the broker, and its answer, over a connection of their own. */
import type { IPublishPacket } from 'mqtt'
import type { Clock } from '../base/clock.ts'
import { SessionError, type SessionErrorCode, withSession } from '../mqtt/session.ts'
import type { BrokerOptions, Protocol } from '../mqtt/types.ts'

/** What a request sends under one version of MQTT, and how it recognizes its answer. */
export interface Exchange<T> {
  readonly payload: string
  /** Where the answer comes; under MQTT 5 it is sent as the response topic. */
  readonly answerTopic: string
  /** Returns undefined for a message that does not answer this request. */
  readonly readAnswer: (payload: string) => T | undefined
}

/**
 * Sends a request and waits for its answer.
 * @throws SessionError if no answer comes
 */
export async function request<T>(
  options: {
    readonly broker: BrokerOptions
    /** Another client with the same id would lose its connection. */
    readonly clientId: string
    readonly topic: string
    /** MQTT 3.1.1 has no response topics, so what is sent depends on the version that the broker speaks. */
    readonly exchange: Readonly<Record<Protocol, Exchange<T>>>
    /** Sent under MQTT 5. */
    readonly correlationData: Buffer
    /** For everything, the connection included. */
    readonly timeoutMs: number
  },
  clock: Clock,
): Promise<T> {
  const { broker, clientId, topic, exchange, correlationData, timeoutMs } = options
  const answered = Promise.withResolvers<T>()
  const refuse = (code: SessionErrorCode, message: string) => answered.reject(new SessionError(code, message))
  answered.promise.catch(() => {})
  let receive: (packet: IPublishPacket) => void = () => {}
  const session = {
    ...{ broker, clientId, timeoutMs },
    onPublish: (packet: IPublishPacket) => receive(packet),
    onNoSubscribers: () => refuse('no_subscribers', `nobody subscribes to ${topic}`),
  }
  return await withSession(session, clock, async (connection) => {
    const { protocol } = connection
    const { payload, answerTopic, readAnswer } = exchange[protocol]
    receive = (packet) => {
      const answer = readAnswer(packet.payload.toString())
      if (answer !== undefined) answered.resolve(answer)
    }
    if (!(await connection.subscribe(answerTopic, { qos: 1 }))) {
      throw new SessionError('subscription_denied', `the broker denies the subscription to ${answerTopic}`)
    }
    const messageExpiryInterval = Math.ceil(timeoutMs / 1000)
    const properties = { responseTopic: answerTopic, correlationData, messageExpiryInterval }
    connection.publish(topic, payload, { qos: 1, ...(protocol === '5' && { properties }) }, (reason) => {
      if (reason !== 0) refuse('publish_denied', `the broker denies the publish to ${topic}`)
    })
    return await answered.promise
  })
}
