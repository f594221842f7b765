/** `hub2mqtt call`: sends one command to the configured broker and prints the answer. */

import { randomBytes } from 'node:crypto'
import type { IPublishPacket } from 'mqtt'
import * as v from 'valibot'
import { type Clock, systemClock } from '../base/clock.ts'
import { UsageError } from '../base/errors.ts'
import { isRecord } from '../base/json.ts'
import { readJson } from '../base/read-json.ts'
import { brokerAccess, brokerUrls } from '../config/broker.ts'
import { loadConfig } from '../config/load.ts'
import { findCommand } from '../contract/commands.ts'
import { peekTransaction } from '../contract/payload.ts'
import { type CommandTopic, createTopics } from '../contract/topics.ts'
import { SessionError, type SessionErrorCode, withSession } from '../mqtt/session.ts'
import type { BrokerOptions } from '../mqtt/types.ts'
import { shownJson } from '../observability/controls.ts'
import { type Body, type ConfigFlag, exitCodes } from './command.ts'
import { waiting } from './progress.ts'

type Flags = ConfigFlag & { readonly topic: string; readonly payload: string | undefined; readonly timeout: number }

export const callCommand: Body<Flags> = async ({ env, print }, { config: file, topic, payload = '', timeout }) => {
  const { mqtt } = loadConfig({ file, env, requireHub: false }).config
  const urls = brokerUrls(mqtt)
  if (urls.length === 0)
    throw new UsageError('mqtt.embedded.port: with 0, the port changes at each start; choose a fixed port')
  const broker = brokerAccess(mqtt, urls)
  const stop = waiting('waiting for the answer')
  const calling = call({ broker, base: mqtt.base_topic, topic, payload, timeoutMs: timeout, clock: systemClock })
  const answer = await calling.finally(stop)
  print(shownJson(answer.text))
  return answer.ok ? exitCodes.ok.code : exitCodes.failed.code
}

const NO_BRIDGE = 'no bridge receives commands on this broker: is hub2mqtt running, with the same base topic?'

/** Sends a command. @throws UsageError if the topic is not a command topic; SessionError if no answer arrives */
export async function call(options: {
  readonly broker: BrokerOptions
  readonly base: string
  /** The topic of the command, with or without the base topic. */
  readonly topic: string
  readonly payload: string
  /** Time limit in total, including the time to connect. */
  readonly timeoutMs: number
  readonly clock: Clock
}): Promise<Answer> {
  const { broker, base, timeoutMs, clock } = options
  const mark = `call-${randomBytes(8).toString('hex')}`
  const { topic, command } = locate(base, options.topic)
  const marked = withTransaction(command, options.payload, mark)
  const transaction = peekTransaction(Buffer.from(marked))
  const answered = Promise.withResolvers<Answer>()
  const refuse = (code: SessionErrorCode, message: string) => answered.reject(new SessionError(code, message))
  answered.promise.catch(() => {})
  let receive: (packet: IPublishPacket) => void = () => {}
  const session = {
    // Do not use the configured client id, or the broker would close the bridge's connection.
    ...{ broker, clientId: `hub2mqtt-${mark}`, timeoutMs },
    onPublish: (packet: IPublishPacket) => receive(packet),
    onNoSubscribers: () => refuse('no_subscribers', NO_BRIDGE),
  }
  return await withSession(session, clock, async (connection) => {
    // MQTT 3.1.1 has no response topics. Without them, the transaction identifies the answer.
    const hasOwnTopic = connection.protocol === '5'
    // Each call has its own topic below the result topic, where the broker's rules already permit reading.
    const answerTopic = hasOwnTopic ? `${command.result}/${mark}` : command.result
    receive = ({ payload }) => {
      const answer = readAnswer(payload.toString())
      if (answer !== undefined && (hasOwnTopic || answer.transaction === transaction)) answered.resolve(answer)
    }
    if (!(await connection.subscribe(answerTopic, { qos: 1 }))) {
      throw new SessionError('subscription_denied', `the broker denies the subscription to ${answerTopic}`)
    }
    const messageExpiryInterval = Math.ceil(timeoutMs / 1000)
    const properties = { responseTopic: answerTopic, correlationData: Buffer.from(mark), messageExpiryInterval }
    const [payload, more] = hasOwnTopic ? [options.payload, { properties }] : [marked, {}]
    connection.publish(topic, payload, { qos: 1, ...more }, (reason) => {
      if (reason !== 0) refuse('publish_denied', `the broker denies the publish to ${topic}`)
    })
    return await answered.promise
  })
}

function locate(base: string, given: string): { topic: string; command: CommandTopic } {
  const topics = createTopics(base)
  // Brokers close the connection of a client that publishes to a topic with control characters.
  const candidates = /[+#\p{Cc}]/u.test(given) ? [] : [given, `${base}/${given}`]
  for (const topic of candidates) {
    const command = topics.parseCommand(topic)
    if (command !== undefined) return { topic, command }
  }
  throw new UsageError('expected the topic of a command, such as home/app/com.athom.hue/cmd/restart')
}

/**
 * Adds a transaction, if the payload can contain one. Under MQTT 3.1.1, the transaction identifies the answer. The rest
 * of the payload is left as it is written, because `JSON.stringify` would change large numbers.
 */
function withTransaction({ target, command, argument }: CommandTopic, payload: string, mark: string): string {
  if (!findCommand(target, command, argument !== undefined)?.payload.enveloped) return payload
  const text = payload === '' ? '{}' : payload
  const value = readJson(v.unknown(), text)
  if (!isRecord(value) || 'transaction' in value) return payload
  const first = `{"transaction":${JSON.stringify(mark)}`
  return `${first}${Object.keys(value).length === 0 ? '' : ','}${text.trimStart().slice(1)}`
}

type Answer = { readonly text: string; readonly ok: boolean; readonly transaction: unknown }

/** Parses an answer. Returns `undefined` if the message is not an answer. */
function readAnswer(text: string): Answer | undefined {
  const value = readJson(v.unknown(), text)
  if (!isRecord(value) || !('ok' in value) || !('transaction' in value)) return undefined
  return { text, ok: value['ok'] === true, transaction: value['transaction'] }
}
