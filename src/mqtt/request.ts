/** One request to a service on the broker, and its answer, over a connection of their own. */
import type { Clock } from '../base/clock.ts'
import { CLOSED_BY_US, Connection } from './connection.ts'
import type { Failure } from './failure.ts'
import { Login } from './login.ts'
import { streamOpener } from './stream.ts'
import type { BrokerOptions, Protocol } from './types.ts'

export interface RequestOptions<T> {
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
}

/** What a request sends under one version of MQTT, and how it recognizes its answer. */
export interface Exchange<T> {
  readonly payload: string
  /** Where the answer comes; under MQTT 5 it is sent as the response topic. */
  readonly answerTopic: string
  /** Returns undefined for a message that does not answer this request. */
  readonly readAnswer: (payload: string) => T | undefined
}

export type RequestErrorCode = 'no_connection' | 'subscription_denied' | 'publish_denied' | 'no_subscribers' | 'timeout'

/** The request has no answer; the message says why. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly code: RequestErrorCode

  constructor(code: RequestErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * Sends a request and waits for its answer.
 * @throws RequestError if no answer comes
 */
export async function request<T>(options: RequestOptions<T>, clock: Clock): Promise<T> {
  const { broker, timeoutMs } = options
  const login = new Login(broker)
  const late = Promise.withResolvers<never>()
  late.promise.catch(() => {})
  const cancel = clock.after(timeoutMs, () =>
    late.reject(new RequestError('timeout', `no answer within ${timeoutMs} ms`)),
  )
  try {
    for (;;) {
      const outcome = await attempt(options, login, late.promise)
      if ('answer' in outcome) return outcome.answer
      if (!(await login.retry(outcome.failure))) throw noConnection(outcome.failure)
    }
  } finally {
    cancel()
  }
}

const noConnection = ({ code, detail }: Failure) =>
  new RequestError('no_connection', `no connection to the MQTT broker (${code}): ${detail}`)

/** One connection: the answer, or why the connection failed. */
async function attempt<T>(
  { broker, clientId, topic, exchange, correlationData, timeoutMs }: RequestOptions<T>,
  login: Login,
  late: Promise<never>,
): Promise<{ readonly answer: T } | { readonly failure: Failure }> {
  const { credentials, protocol } = login
  const { payload, answerTopic, readAnswer } = exchange[protocol]
  const answered = Promise.withResolvers<{ answer: T }>()
  const refused = Promise.withResolvers<never>()
  const refuse = (code: RequestErrorCode, message: string) => refused.reject(new RequestError(code, message))
  const connection = new Connection(await streamOpener(broker), {
    ...credentials,
    clientId,
    protocol,
    keepaliveMs: broker.keepaliveMs,
    connectTimeoutMs: broker.connectTimeoutMs,
    onPublish: (packet) => {
      const answer = readAnswer(packet.payload.toString())
      if (answer !== undefined) answered.resolve({ answer })
    },
    onNoSubscribers: () => refuse('no_subscribers', `nobody subscribes to ${topic}`),
  })
  const send = async () => {
    await connection.accepted
    if (!(await connection.subscribe(answerTopic, { qos: 1 }))) {
      return refuse('subscription_denied', `the broker denies the subscription to ${answerTopic}`)
    }
    const messageExpiryInterval = Math.ceil(timeoutMs / 1000)
    const properties = { responseTopic: answerTopic, correlationData, messageExpiryInterval }
    connection.publish(topic, payload, { qos: 1, ...(protocol === '5' && { properties }) }, (reason) => {
      if (reason !== 0) refuse('publish_denied', `the broker denies the publish to ${topic}`)
    })
  }
  const failed = connection.down.then((failure) => ({ failure }))
  try {
    void send()
    return await Promise.race([answered.promise, refused.promise, failed, late])
  } finally {
    connection.drop(CLOSED_BY_US)
  }
}
