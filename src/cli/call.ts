/** `hub2mqtt call`: one command to the configured broker, and the answer that comes back. */
import { randomBytes } from 'node:crypto'
import { type Clock, systemClock } from '../base/clock.ts'
import { ExpectedError, UsageError } from '../base/errors.ts'
import { type BrokerAccess, brokerAccess, brokerUrls } from '../config/broker.ts'
import { loadConfig } from '../config/load.ts'
import { findCommand } from '../contract/commands.ts'
import { peekTransaction } from '../contract/payload.ts'
import { type CommandTopic, createTopics } from '../contract/topics.ts'
import { SessionError } from '../mqtt/session.ts'
import type { Protocol } from '../mqtt/types.ts'
import { shownJson } from '../observability/controls.ts'
import { type Body, exitCodes } from './command.ts'
import { waiting } from './progress.ts'
import { type Exchange, request } from './request.ts'

interface Given {
  readonly config: string | undefined
  readonly topic: string
  readonly payload: string | undefined
  readonly timeout: number
}

export const callCommand: Body<Given> = async ({ env, print }, { config: file, topic, payload = '', timeout }) => {
  const { mqtt } = loadConfig({ file, env, requireHub: false }).config
  const urls = brokerUrls(mqtt)
  if (urls.length === 0) throw new UsageError('mqtt.embedded.port: with 0 nobody knows the port; choose one')
  const broker = brokerAccess(mqtt, urls)
  const stop = waiting('waiting for the answer')
  const calling = call({ broker, base: mqtt.base_topic, topic, payload, timeoutMs: timeout, clock: systemClock })
  const answer = await calling.finally(stop)
  print(shownJson(answer.text))
  return answer.ok ? exitCodes.ok.code : exitCodes.failed.code
}

/** No answer came; the message says why. */
export class CallError extends ExpectedError {
  override readonly name = 'CallError'
}

export interface CallAnswer {
  /** The answer as it came. */
  readonly text: string
  readonly ok: boolean
}

const NOBODY_LISTENS = 'nobody listens to commands on this broker: does hub2mqtt run, with the same base topic?'

/**
 * Sends a command and waits for its answer.
 * @throws UsageError for a topic that is no command's
 * @throws CallError if no answer comes
 */
export async function call(options: {
  readonly broker: BrokerAccess
  /** The configured base topic. */
  readonly base: string
  /** A command's topic, with the base topic or without. */
  readonly topic: string
  readonly payload: string
  /** For all of it, the connection included. */
  readonly timeoutMs: number
  readonly clock: Clock
}): Promise<CallAnswer> {
  const { broker, base, payload, timeoutMs, clock } = options
  const mark = `call-${randomBytes(8).toString('hex')}`
  const { topic, command } = locate(base, options.topic)
  const exchange = exchanges(command, payload, mark)
  // Never the configured client id: the broker would end the bridge's connection.
  const clientId = `hub2mqtt-${mark}`
  try {
    return await request({ broker, clientId, topic, exchange, correlationData: Buffer.from(mark), timeoutMs }, clock)
  } catch (error) {
    if (!(error instanceof SessionError)) throw error
    throw new CallError(error.code === 'no_subscribers' ? NOBODY_LISTENS : error.message, { cause: error })
  }
}

function exchanges(command: CommandTopic, payload: string, mark: string): Record<Protocol, Exchange<CallAnswer>> {
  const marked = withTransaction(command, payload, mark)
  const transaction = peekTransaction(Buffer.from(marked))
  return {
    // A topic below the result topic: the broker's read rules already cover it, and each call has its own.
    '5': { payload, answerTopic: `${command.result}/${mark}`, readAnswer },
    '3.1.1': {
      payload: marked,
      answerTopic: command.result,
      readAnswer(text) {
        const answer = readAnswer(text)
        return answer?.transaction === transaction ? answer : undefined
      },
    },
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

/** Under 3.1.1 all answers to a command come on one topic: a transaction identifies this one's, if the payload has room. */
function withTransaction({ target, command, argument }: CommandTopic, payload: string, mark: string): string {
  if (!findCommand(target, command, argument !== undefined)?.payload.enveloped) return payload
  try {
    const value: unknown = payload === '' ? {} : JSON.parse(payload)
    if (typeof value !== 'object' || value === null || Array.isArray(value) || 'transaction' in value) return payload
    return JSON.stringify({ ...value, transaction: mark })
  } catch {
    return payload
  }
}

function readAnswer(text: string): (CallAnswer & { readonly transaction: unknown }) | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || !('ok' in value) || !('transaction' in value)) return undefined
    return { text, ok: value.ok === true, transaction: value.transaction }
  } catch {
    return undefined
  }
}
