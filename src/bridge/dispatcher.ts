/** A message on a command topic becomes one answer: refused, answered from memory, or carried out. */

import type { Logger } from 'pino'
import { nearest } from '../base/nearest.ts'
import { type AnswerHead, type Outcome, renderAnswer } from '../contract/answer.ts'
import {
  type BridgeControl,
  COMMANDS,
  type Command,
  effectiveCommand,
  findCommand,
  MAX_NAME_LENGTH,
} from '../contract/commands.ts'
import { CommandError, ERROR_CODES, type ErrorCode, fromHubError } from '../contract/errors.ts'
import { decodeText, peekTransaction, type Reading } from '../contract/payload.ts'
import { commandKey } from '../contract/permissions.ts'
import type { CommandTopic, Topics } from '../contract/topics.ts'
import { HubError } from '../hub/errors.ts'
import type { LinkStatus, Message, SendOptions } from '../mqtt/types.ts'
import { Audit } from './audit.ts'
import { Execution, type ExecutionOptions, type Order } from './execution.ts'
import { Replay, replayKey } from './replay.ts'

/** How long a command may wait inside the bridge. */
const MAX_WAIT_MS = 10_000

/** The part of the MQTT link that answers need. */
export interface AnswerLink {
  /** Whether a message's connection is still up: what an earlier one brought is stale. */
  isCurrent(message: Message): boolean
  status(): Pick<LinkStatus, 'protocol'>
  send(topic: string, payload: string, options?: SendOptions): void
  /** What the broker shall hold under a topic; `null` for nothing. Equal to what it shall hold already: no message. */
  hold(topic: string, payload: string | null): void
}

/** A command that was answered: how it went, for those who count. */
export interface CommandEnd {
  /** As configuration names it, or `unknown`. */
  readonly command: string
  readonly outcome: 'ok' | ErrorCode
  readonly ms: number
  /** The topic of its result, wherever the answer went. */
  readonly result: string
  /** The answer as on that topic, but for its `data`, which may hold what is for the requester only, and is not kept. */
  readonly summary: () => string
}

/** No connection has brought what the bridge sends to itself. */
const NO_CONNECTION = -1

/** A command of the bridge's own, as if it had come over MQTT. */
export function ownMessage(topic: string, payload: object, receivedAt: number): Message {
  const text = Buffer.from(JSON.stringify(payload))
  return { topic, payload: text, retain: false, dup: false, qos: 1, receivedAt, connection: NO_CONNECTION }
}

/** Who sent a command another way than over MQTT. */
export interface Requester {
  /** For the log. */
  readonly by: string
  /** Asked when the command's turn comes and before each write: whether it is still wanted. Default: it always is. */
  readonly isCurrent?: () => boolean
  /** Called once, with what would be published otherwise; secrets are still in it. */
  readonly reply: (answer: Reply) => void
}

export interface Reply {
  readonly outcome: Outcome
  /** What would be published. */
  readonly payload: string
  readonly code: 'ok' | ErrorCode
}

/** A write that was refused or failed. */
export interface FailedWrite {
  readonly hub: string
  /** `null` for a command that is for the whole hub, or for no app that there could be. */
  readonly app: string | null
  readonly command: string
  readonly code: ErrorCode
  readonly transaction: string | number | null
}

export interface DispatcherOptions extends Omit<ExecutionOptions, 'signal' | 'send'> {
  readonly topics: Pick<Topics, 'parseCommand' | 'appCommand'>
  readonly link: AnswerLink
  readonly control: BridgeControl
  /** Whether commands on a topic are this bridge's to answer; default: all are. */
  readonly answers?: ((topic: CommandTopic) => boolean) | undefined
  /** Why a hub is not among `hubs`, for people; `undefined`: no such hub is configured. */
  readonly whyNotServed?: ((hub: string) => string | undefined) | undefined
  /** Whether an answer may be sent to the topic that its requester wants. */
  readonly mayAnswerOn: (topic: string) => boolean
  /** Not called for each of a flood of refusals. */
  readonly onFailedWrite: (failed: FailedWrite) => void
  readonly onAnswer?: (end: CommandEnd) => void
  readonly log: Logger
  /** Writes whatever the log's level is. */
  readonly audit: Logger
}

/** One message on a command topic, and what is found out about it on its way to the answer. */
interface Request {
  readonly message: Message
  readonly requester: Requester | undefined
  readonly topic: CommandTopic
  /** `undefined`: there is no such command. As soon as its input is known, what it is with that. */
  command: Command | undefined
  /** What a generic call names, without its query and body. */
  endpoint?: string
  transaction: string | number | null
  /** Whether the answer is from memory. */
  replayed: boolean
  /** Whether the hub was asked to change something. */
  asked: boolean
}

/** When a command must have begun, and when its requester wants none of it any more. */
type Times = Pick<Order, 'deadline' | 'expiresAt'>

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #replay: Replay
  readonly #audit: Audit
  readonly #execution: Execution
  readonly #ending = new AbortController()
  /** Resolved when the dispatcher has stopped and the last command has its answer. */
  readonly #answered = Promise.withResolvers<void>()
  #underWay = 0

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#replay = new Replay(options.clock)
    this.#audit = new Audit(options.clock, options.audit)
    const send: ExecutionOptions['send'] = (...order) => this.#sendOwn(...order)
    this.#execution = new Execution({ ...options, send, signal: this.#ending.signal })
  }

  /** Whether a command waits for its turn or for its hub. */
  get isBusy(): boolean {
    return this.#underWay > 0
  }

  /** Ends what only waits; what comes from now on is `expired`. Resolves when every command has its answer. */
  stop(): Promise<void> {
    this.#ending.abort()
    this.#audit.stop()
    if (this.#underWay === 0) this.#answered.resolve()
    return this.#answered.promise
  }

  /** Takes in one message of the command filters, or one like it; it never throws, and always answers a command. */
  receive(message: Message, requester?: Requester): void {
    const topic = this.#options.topics.parseCommand(message.topic)
    // Nothing retained is how a retained command is cleared, by us or by others.
    if (topic === undefined || (message.retain && message.payload.length === 0)) return
    if (requester === undefined && this.#options.answers?.(topic) === false) return
    const command = findCommand(topic.target, topic.command, topic.argument !== undefined)
    void this.#handle({ message, requester, topic, command, transaction: null, replayed: false, asked: false })
  }

  /** A command that another one sends, with a line of its own in the log. */
  #sendOwn(hub: string, app: string, command: string, isCurrent: () => boolean): Promise<Outcome> {
    const { topics, clock } = this.#options
    return new Promise((resolve) => {
      const topic = topics.appCommand(hub, app, command)
      this.receive(ownMessage(topic, {}, clock.elapsed()), {
        by: 'update-all',
        isCurrent,
        reply: ({ outcome }) => resolve(outcome),
      })
    })
  }

  async #handle(request: Request): Promise<void> {
    const { message } = request
    let outcome: Outcome
    this.#underWay += 1
    try {
      if (message.retain) {
        this.#options.link.hold(message.topic, null)
        throw new CommandError('retained')
      }
      const command = this.#permitted(request)
      const reading = command.payload.read(decodeText(message.payload))
      request.transaction = reading.transaction
      this.#settle(request, command, reading)
      const times = this.#times(message, reading)
      const key = replayKey(message, reading.transaction)
      const isRepeatable = command.target === 'bridge' && command.repeatable === true
      // The broker sends again only what has a QoS above 0, and says so.
      const isKept = !isRepeatable && (key.consult || (message.qos > 0 && request.requester === undefined))
      const known = isKept && key.consult ? this.#replay.recall(key.text) : undefined
      request.replayed = known !== undefined
      const isWrite = isAudited(request.command)
      if (known === undefined && isKept && isWrite && !this.#replay.hasRoom) throw new CommandError('busy', FULL)
      const running = known ?? this.#execute(request, command, reading, times)
      if (known === undefined && isKept)
        this.#replay.remember(key.text, running, isWrite ? () => request.asked : undefined)
      outcome = await running
    } catch (error) {
      outcome = this.#failed(error, false)
      request.transaction ??= peekTransaction(message.payload)
    }
    this.#answer(request, outcome)
    this.#underWay -= 1
    if (this.#underWay === 0 && this.#ending.signal.aborted) this.#answered.resolve()
  }

  /** The command, if there is one and configuration permits it. */
  #permitted({ topic, command }: Request): Command {
    const { hubs, refuses, whyNotServed } = this.#options
    if (topic.hub !== null && !hubs.has(topic.hub)) throw new CommandError('unknown_hub', whyNotServed?.(topic.hub))
    if (command === undefined) throw new CommandError('unknown_command', suggestion(topic))
    const refusal = refuses(command)
    if (refusal !== undefined) throw new CommandError('not_allowed', refusal)
    return command
  }

  /** Before it is known whether the input is right, and also where the answer comes from memory: the audit tells. */
  #settle(request: Request, command: Command, reading: Reading<unknown>): void {
    if (command.target === 'bridge' || command.reaches === undefined) return
    try {
      const input = reading.input()
      const { section, item, method, path } = command.reaches(input)
      request.command = effectiveCommand(command, input)
      request.endpoint = `${method} ${section}/${item}${path}`
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
    }
  }

  #times({ receivedAt, expiresInMs }: Message, reading: Reading<unknown>): Times {
    const { clock } = this.#options
    const expiresAt = Math.min(
      receivedAt + (expiresInMs ?? Number.POSITIVE_INFINITY),
      reading.expiresAt === null ? Number.POSITIVE_INFINITY : clock.elapsed() + reading.expiresAt - clock.now(),
    )
    const deadline = Math.min(receivedAt + MAX_WAIT_MS, expiresAt)
    if (deadline <= clock.elapsed()) throw new CommandError('expired')
    return { deadline, expiresAt }
  }

  /** Never rejects: what failed is an outcome too, and one to remember. */
  async #execute(request: Request, command: Command, reading: Reading<unknown>, times: Times): Promise<Outcome> {
    try {
      if (command.payload.emptyIsValue && request.requester === undefined) this.#refuseClearing(request.message)
      if ((request.topic.argument?.length ?? 0) > MAX_NAME_LENGTH) {
        throw new CommandError('invalid_payload', `A name has at most ${MAX_NAME_LENGTH} characters.`)
      }
      const input = reading.input()
      if (command.target === 'bridge') {
        const refusal = this.#options.refuses(command, input)
        if (refusal !== undefined) throw new CommandError('not_allowed', refusal)
        const data = await command.act(this.#options.control, input, reading.transaction)
        return data === undefined ? NOTHING : { ok: true, json: JSON.stringify(data) }
      }
      const { topic, message, requester } = request
      const isCurrent = requester?.isCurrent ?? (() => requester !== undefined || this.#options.link.isCurrent(message))
      const by = requester?.by ?? null
      const onWrite = () => {
        request.asked = true
      }
      const data = await this.#execution.run({ topic, command, input, by, ...times, isCurrent, onWrite })
      return { ok: true, json: JSON.stringify(data ?? null) }
    } catch (error) {
      const { command: actual = command } = request
      return this.#failed(error, actual.target !== 'bridge' && actual.write)
    }
  }

  /** MQTT 3.1.1 does not tell an empty value from a message that clears a retained one. */
  #refuseClearing({ payload }: Message): void {
    if (payload.length > 0 || this.#options.link.status().protocol !== '3.1.1') return
    throw new CommandError(
      'invalid_payload',
      'Under MQTT 3.1.1 an empty message is no value; send "" for an empty text.',
    )
  }

  #failed(error: unknown, write: boolean): Outcome {
    if (error instanceof CommandError) return { ok: false, error }
    if (error instanceof HubError) return { ok: false, error: fromHubError(error, write) }
    this.#options.log.error({ err: error }, 'a command failed by a mistake of the bridge')
    return { ok: false, error: new CommandError('hub_failed', 'The bridge made a mistake; its log says which.') }
  }

  #answer(request: Request, outcome: Outcome): void {
    const { clock, onAnswer } = this.#options
    const { message, requester, topic, command: row, transaction, replayed } = request
    const { command, hub, app = null } = topic
    const ms = clock.elapsed() - message.receivedAt
    const duration_ms = Math.round(ms)
    const head = { command, hub, app, transaction, duration_ms, ...(replayed && { replayed }) }
    const code = outcome.ok ? 'ok' : outcome.error.code
    const summarized = outcome.ok ? NOTHING : outcome
    const summary = () => renderAnswer(head, summarized)
    onAnswer?.({ command: nameOf(row), outcome: code, ms, result: topic.result, summary })
    if (requester === undefined) this.#send(request, outcome, head)
    else requester.reply({ outcome, payload: renderAnswer(head, outcome), code })
    this.#tell(request, code, duration_ms)
  }

  #send({ message, topic }: Request, outcome: Outcome, head: AnswerHead): void {
    const { link, mayAnswerOn } = this.#options
    const { responseTopic, correlationData } = message
    const to = responseTopic !== undefined && mayAnswerOn(responseTopic) ? responseTopic : topic.result
    const as = (result: Outcome, mark = correlationData) => ({
      payload: renderAnswer(head, result),
      options: {
        isAnswer: true,
        correlationData: mark,
        contentType: 'application/json',
        userProperties: result.ok ? undefined : { 'error-code': result.error.code },
      },
    })
    const { payload, options } = as(outcome)
    const short = () => {
      const error = new CommandError('too_large')
      // What the requester has sent along may be what is too large.
      const mark = (correlationData?.length ?? 0) > MAX_SHORT_MARK ? undefined : correlationData
      return as({ ok: false, error }, mark)
    }
    const elsewhere = () => (to === topic.result ? undefined : { ...as(outcome), topic: topic.result })
    link.send(to, payload, { ...options, ifRefused: (why) => (why === 'too_large' ? short() : elsewhere()) })
  }

  /** Tells the log, and subscribers of a write that was not done. */
  #tell(request: Request, code: 'ok' | ErrorCode, duration_ms: number) {
    const { topic, command: row, requester, transaction, replayed, asked, endpoint } = request
    const { hubs, log, onFailedWrite } = this.#options
    const { command, hub, app = null } = topic
    const by = requester !== undefined && { by: requester.by }
    const line = {
      command,
      hub,
      app,
      transaction,
      outcome: code,
      duration_ms,
      replayed,
      ...by,
      ...(endpoint !== undefined && { endpoint }),
    }
    if (!isAudited(row)) return log.debug(line, 'command')
    const told = this.#audit.write(line, asked)
    const isFailedWrite = told && code !== 'ok' && !replayed && row?.target !== 'bridge' && row?.write === true
    if (isFailedWrite && hub !== null && hubs.has(hub)) onFailedWrite({ hub, app, command, code, transaction })
  }
}

/** Bytes of correlation data that a short answer carries. */
const MAX_SHORT_MARK = 256

const FULL = 'Too many writes within five minutes for another one to be remembered.'

const NOTHING: Outcome = { ok: true, json: 'null' }

/** Names the command that was perhaps meant. */
function suggestion({ target, command }: CommandTopic): string {
  const names = COMMANDS.filter((row) => row.target === target).map(({ name }) => name)
  const meant = nearest(command, names)
  return meant === undefined
    ? ERROR_CODES.unknown_command
    : `${ERROR_CODES.unknown_command.slice(0, -1)}; did you mean ${meant}?`
}

/** The command's name among those that there are: what somebody made up would be a new name each time. */
function nameOf(command: Command | undefined): string {
  return command === undefined ? 'unknown' : commandKey(command)
}

/** Whether a command is told in the log: it may change something, or is not even a command. */
function isAudited(command: Command | undefined): boolean {
  if (command === undefined) return true
  return command.target === 'bridge' ? command.audited === true : command.write
}
