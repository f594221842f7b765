/** `hub2mqtt call`: one command to the configured broker, and the answer that comes back. */
import { randomBytes } from 'node:crypto'
import { type IPublishPacket, MqttClient } from 'mqtt'
import type { Clock } from '../base/clock.ts'
import type { BrokerAccess } from '../config/broker-access.ts'
import { findCommand } from '../contract/commands.ts'
import { peekTransaction } from '../contract/payload.ts'
import { type CommandTopic, createTopics } from '../contract/topics.ts'
import { errorFailure, type Failure } from '../mqtt/failure.ts'
import { streamOpener } from '../mqtt/stream.ts'
import type { Protocol } from '../mqtt/types.ts'
import { UsageError } from './given.ts'

/** No answer came; the message says why. */
export class CallError extends Error {
  override readonly name = 'CallError'
}

class Down extends Error {
  readonly failure: Failure

  constructor(failure: Failure) {
    super(failure.detail)
    this.failure = failure
  }
}

export interface CallOptions {
  readonly broker: BrokerAccess
  /** The configured base topic. */
  readonly base: string
  /** A command's topic, with the base topic or without. */
  readonly topic: string
  readonly payload: string
  /** For all of it, the connection included. */
  readonly timeoutMs: number
  readonly clock: Clock
}

export interface CallAnswer {
  /** The answer as it came. */
  readonly text: string
  readonly ok: boolean
}

interface Request {
  readonly topic: string
  readonly command: CommandTopic
  readonly payload: string
  /** Sets this call apart from all others. */
  readonly mark: string
  readonly expirySeconds: number
}

const NO_SUBSCRIBERS = 16

/**
 * Sends a command and waits for its answer.
 * @throws UsageError for a topic that is no command's
 * @throws CallError if no answer comes
 */
export async function call({ broker, base, topic, payload, timeoutMs, clock }: CallOptions): Promise<CallAnswer> {
  const mark = `call-${randomBytes(8).toString('hex')}`
  const request = { ...locate(base, topic), payload, mark, expirySeconds: Math.ceil(timeoutMs / 1000) }
  const protocols: readonly Protocol[] = broker.protocol === 'auto' ? ['5', '3.1.1'] : [broker.protocol ?? '5']
  const late = Promise.withResolvers<never>()
  late.promise.catch(() => {})
  const cancel = clock.after(timeoutMs, () => late.reject(new CallError(`no answer within ${timeoutMs} ms`)))
  try {
    return await attempt(broker, protocols, request, late.promise)
  } finally {
    cancel()
  }
}

async function attempt(
  broker: BrokerAccess,
  [protocol = '5', ...others]: readonly Protocol[],
  request: Request,
  late: Promise<never>,
): Promise<CallAnswer> {
  const opener = await streamOpener(broker)
  const client = new MqttClient(opener, clientOptions(broker, protocol, request.mark))
  const down = Promise.withResolvers<never>()
  down.promise.catch(() => {})
  const fail = (failure: Failure) => down.reject(new Down(failure))
  client.on('error', (error) => fail(errorFailure(error, client.connected)))
  // mqtt.js passes on only those errors of the stream that have a code.
  client.stream.on('error', (error) => fail(errorFailure(error, client.connected)))
  client.on('close', () => fail({ code: 'closed', detail: 'the broker closed the connection' }))
  try {
    return await Promise.race([exchange(client, protocol, request), down.promise, late])
  } catch (error) {
    if (!(error instanceof Down)) throw error
    const { code, detail } = error.failure
    if (code === 'protocol' && others.length > 0) return await attempt(broker, others, request, late)
    throw new CallError(`no connection to the MQTT broker (${code}): ${detail}`)
  } finally {
    client.end(true)
    client.stream.destroy()
  }
}

async function exchange(client: MqttClient, protocol: Protocol, request: Request): Promise<CallAnswer> {
  const { topic, command, mark } = request
  if (!client.connected) await new Promise<void>((resolve) => client.once('connect', () => resolve()))
  const five = protocol === '5'
  // Below the result topic: whoever may read answers may read this one, and no two calls share it.
  const answerTopic = five ? `${command.result}/${mark}` : command.result
  const payload = five ? request.payload : marked(request)
  const transaction = peekTransaction(Buffer.from(payload))
  const answered = new Promise<CallAnswer>((resolve) => {
    client.on('message', (_topic, _payload, packet) => {
      const answer = readAnswer(packet)
      if (answer !== undefined && (five || answer.transaction === transaction)) resolve(answer)
    })
  })
  const unheard = new Promise<never>((_, reject) => {
    client.on('packetreceive', (packet) => {
      if (packet.cmd === 'puback' && packet.reasonCode === NO_SUBSCRIBERS)
        reject(new CallError('nobody listens to commands on this broker: does hub2mqtt run, with the same base topic?'))
    })
  })
  unheard.catch(() => {})
  await subscribe(client, answerTopic)
  const properties = {
    responseTopic: answerTopic,
    correlationData: Buffer.from(mark),
    messageExpiryInterval: request.expirySeconds,
  }
  await publish(client, topic, payload, five ? { properties } : {})
  return await Promise.race([answered, unheard])
}

async function subscribe(client: MqttClient, filter: string): Promise<void> {
  try {
    await client.subscribeAsync(filter, { qos: 1 })
  } catch {
    throw new CallError(`the broker denies the subscription to ${filter}`)
  }
}

async function publish(client: MqttClient, topic: string, payload: string, options: object): Promise<void> {
  try {
    await client.publishAsync(topic, payload, { qos: 1, retain: false, ...options })
  } catch {
    throw new CallError(`the broker denies the publish to ${topic}`)
  }
}

/** The whole topic of a command, given with the base topic or without. */
function locate(base: string, given: string): { topic: string; command: CommandTopic } {
  const topics = createTopics(base)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what a topic must not hold.
  const candidates = /[+#\u0000]/.test(given) ? [] : [given, `${base}/${given}`]
  for (const topic of candidates) {
    const command = topics.parseCommand(topic)
    if (command !== undefined) return { topic, command }
  }
  throw new UsageError('expected the topic of a command, such as home/app/com.athom.hue/cmd/restart')
}

/** Under 3.1.1 all answers to a command come on one topic; a transaction, where one can be had, tells them apart. */
function marked({ payload, mark, command: { target, command, argument } }: Request): string {
  if (!findCommand(target, command, argument !== undefined)?.payload.enveloped) return payload
  try {
    const value: unknown = payload === '' ? {} : JSON.parse(payload)
    if (typeof value !== 'object' || value === null || Array.isArray(value) || 'transaction' in value) return payload
    return JSON.stringify({ ...value, transaction: mark })
  } catch {
    return payload
  }
}

function readAnswer({ payload }: IPublishPacket): (CallAnswer & { transaction: unknown }) | undefined {
  const text = payload.toString()
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || !('ok' in value) || !('transaction' in value)) return undefined
    return { text, ok: value.ok === true, transaction: value.transaction }
  } catch {
    return undefined
  }
}

function clientOptions({ username, password }: BrokerAccess, protocol: Protocol, clientId: string) {
  return {
    // Never the configured one: the broker would end the bridge's connection.
    clientId: `hub2mqtt-${clientId}`,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    protocolVersion: protocol === '5' ? (5 as const) : (4 as const),
    clean: true,
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
    // Else `DEBUG=mqttjs*` would print the password.
    log: () => undefined,
  }
}
