/** A message on a command topic becomes one answer: refused, answered from memory, or carried out. */

import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { type Outcome, renderAnswer } from '../contract/answer.ts'
import { type BridgeControl, type Command, findCommand, type HubCommand } from '../contract/commands.ts'
import { CommandError, type ErrorCode, fromHubError } from '../contract/errors.ts'
import { decodeText, peekTransaction, type Reading } from '../contract/payload.ts'
import { commandKey } from '../contract/permissions.ts'
import type { Target } from '../contract/target.ts'
import { decodeLevel } from '../contract/templates.ts'
import type { CommandTopic, Topics } from '../contract/topics.ts'
import { HubError } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import { OPERATIONS } from '../hub/operations.ts'
import type { LinkStatus, Message, SendOptions } from '../mqtt/types.ts'
import { Audit } from './audit.ts'
import { untilTaken } from './patience.ts'
import { CommandQueue } from './queue.ts'
import { Replay, replayKey } from './replay.ts'

/** How long a command may wait inside the bridge. */
const MAX_WAIT_MS = 10_000
const MAX_WAITING = 32

/** The part of the MQTT link that answers need. */
export interface AnswerLink {
  /** Whether a message's connection is still up: what an earlier one brought is stale. */
  isCurrent(message: Message): boolean
  status(): Pick<LinkStatus, 'protocol'>
  send(topic: string, payload: string, options?: SendOptions): void
  /** What the broker shall hold under a topic; `null` for nothing. Equal to what it shall hold already: no message. */
  hold(topic: string, payload: string | null): void
}

/** One configured hub, as commands see it. */
export interface DispatchHub {
  readonly hub: Hub
  /** Commands under way at once. */
  readonly concurrency: number
}

/** A command that was answered: how it went, for those who count. */
export interface CommandEnd {
  /** As configuration names it, or `unknown`. */
  readonly command: string
  readonly outcome: 'ok' | ErrorCode
  readonly ms: number
}

/** A command being carried out on a hub, as others may want to know. */
export interface CommandRun {
  readonly hub: string
  /** `null` for a command that is for the whole hub. */
  readonly app: string | null
  readonly command: HubCommand
  readonly phase: 'begun' | 'ended'
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

export interface DispatcherOptions {
  readonly topics: Pick<Topics, 'parseCommand'>
  readonly hubs: ReadonlyMap<string, DispatchHub>
  readonly link: AnswerLink
  readonly control: BridgeControl
  /** Whether configuration allows a command; of no input, whether it does with any. */
  readonly allows: (command: Command, input?: unknown) => boolean
  /** Whether an answer may be sent to the topic that its asker wants. */
  readonly mayAnswerOn: (topic: string) => boolean
  readonly onRun: (run: CommandRun) => void
  /** Not called for each of a flood of refusals. */
  readonly onFailedWrite: (failed: FailedWrite) => void
  readonly onAnswer?: (end: CommandEnd) => void
  readonly clock: Clock
  readonly log: Logger
  /** Writes whatever the log's level is. */
  readonly audit: Logger
}

/** One message on a command topic, and what is found out about it on its way to the answer. */
interface Request {
  readonly message: Message
  readonly topic: CommandTopic
  /** `undefined`: there is no such command. */
  readonly command: Command | undefined
  transaction: string | number | null
  /** Whether the answer is from memory. */
  replayed: boolean
  /** Whether the hub was asked to change something. */
  asked: boolean
}

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #replay: Replay
  readonly #audit: Audit
  readonly #ending = new AbortController()
  /** By the hub itself: one that is configured anew under the same name starts with an empty queue. */
  readonly #queues = new WeakMap<DispatchHub, CommandQueue>()

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#replay = new Replay(options.clock)
    this.#audit = new Audit(options.clock, options.audit)
  }

  /** Ends what only waits. */
  stop(): void {
    this.#ending.abort()
    this.#audit.stop()
  }

  /** Takes in one message of the command filters; it never throws, and always answers a command. */
  receive(message: Message): void {
    const topic = this.#options.topics.parseCommand(message.topic)
    // Nothing retained is how a retained command is cleared, by us or by others.
    if (topic === undefined || (message.retain && message.payload.length === 0)) return
    const command = findCommand(topic.target, topic.command, topic.argument !== undefined)
    void this.#handle({ message, topic, command, transaction: null, replayed: false, asked: false })
  }

  async #handle(request: Request): Promise<void> {
    const { message } = request
    let outcome: Outcome
    try {
      if (message.retain) {
        this.#options.link.hold(message.topic, null)
        throw new CommandError('retained')
      }
      const command = this.#permitted(request)
      const reading = command.payload.read(decodeText(message.payload))
      request.transaction = reading.transaction
      const deadline = this.#deadline(message, reading)
      const key = replayKey(message, reading.transaction)
      const known = key.consult ? this.#replay.recall(key.text) : undefined
      request.replayed = known !== undefined
      const running = known ?? this.#execute(request, command, reading, deadline)
      if (known === undefined) this.#replay.remember(key.text, running)
      outcome = await running
    } catch (error) {
      outcome = this.#failed(error, false)
      request.transaction ??= peekTransaction(message.payload)
    }
    this.#answer(request, outcome)
  }

  /** The command, if there is one and configuration permits it. */
  #permitted({ topic, command }: Request): Command {
    const { hubs, allows } = this.#options
    if (command === undefined) throw new CommandError('unknown_command')
    if (topic.hub !== null && !hubs.has(topic.hub)) throw new CommandError('unknown_hub')
    if (!allows(command)) throw new CommandError('not_allowed')
    return command
  }

  /** When the command must have begun, in `clock.elapsed()` milliseconds. */
  #deadline({ receivedAt, expiresInMs }: Message, { expiresAt }: Reading<unknown>): number {
    const { clock } = this.#options
    const deadline = Math.min(
      receivedAt + Math.min(MAX_WAIT_MS, expiresInMs ?? Number.POSITIVE_INFINITY),
      expiresAt === null ? Number.POSITIVE_INFINITY : clock.elapsed() + expiresAt - clock.now(),
    )
    if (deadline <= clock.elapsed()) throw new CommandError('expired')
    return deadline
  }

  /** Never rejects: what failed is an outcome too, and one to remember. */
  async #execute(request: Request, command: Command, reading: Reading<unknown>, deadline: number): Promise<Outcome> {
    try {
      if (command.payload.emptyIsValue) this.#refuseClearing(request.message)
      const input = reading.input()
      if (command.target === 'bridge') {
        command.act(this.#options.control, input)
        return NOTHING
      }
      return { ok: true, json: JSON.stringify((await this.#onHub(request, command, input, deadline)) ?? null) }
    } catch (error) {
      return this.#failed(error, command.target !== 'bridge' && command.write)
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

  /** Waits for the command's turn and carries it out. */
  async #onHub(request: Request, command: HubCommand, input: unknown, deadline: number): Promise<unknown> {
    const { hubs, onRun } = this.#options
    const { topic } = request
    const name = topic.hub ?? ''
    const bridged = hubs.get(name)
    if (bridged === undefined) throw new CommandError('unknown_hub')
    const { hub } = bridged
    const check = () => this.#check(hub, command, request, input)
    const target = this.#target(hub, request, deadline, check)
    check()
    return await this.#queueOf(bridged).run(target.app, deadline, async () => {
      check()
      const run = { hub: name, app: topic.app ?? null, command }
      onRun({ ...run, phase: 'begun' })
      try {
        return await command.run(target, input)
      } finally {
        onRun({ ...run, phase: 'ended' })
      }
    })
  }

  #target(hub: Hub, request: Request, deadline: number, check: () => void): Target {
    const { clock } = this.#options
    const { signal } = this.#ending
    const again: Target['again'] = (read) => untilTaken(read, { clock, deadline, signal, check })
    const begin = () => {
      // A read that went before may have taken its time, and rights.
      if (!request.asked && clock.elapsed() >= deadline) throw new CommandError('expired')
      check()
      request.asked = true
    }
    const call: Target['call'] = (name, parameters) =>
      again(async () => {
        if (OPERATIONS[name].method !== 'GET') begin()
        return await hub.call(name, parameters)
      })
    const { topic } = request
    return { hub, app: topic.app ?? '', argument: decodeArgument(topic), call, again, clock, signal }
  }

  #queueOf(hub: DispatchHub): CommandQueue {
    const { concurrency } = hub
    const queue =
      this.#queues.get(hub) ?? new CommandQueue({ concurrency, maxWaiting: MAX_WAITING }, this.#options.clock)
    this.#queues.set(hub, queue)
    return queue
  }

  #failed(error: unknown, write: boolean): Outcome {
    if (error instanceof CommandError) return { ok: false, error }
    if (error instanceof HubError) return { ok: false, error: fromHubError(error, write) }
    this.#options.log.error({ err: error }, 'a command failed by a mistake of the bridge')
    return { ok: false, error: new CommandError('hub_failed', 'The bridge made a mistake; its log says which.') }
  }

  /** What must hold when a command comes in, and still when its turn comes. */
  #check(hub: Hub, command: HubCommand, { message, topic }: Request, input: unknown): void {
    if (!this.#options.link.isCurrent(message)) throw new CommandError('expired')
    if (!this.#options.allows(command, input)) throw new CommandError('not_allowed')
    if (!hub.status.online) throw new CommandError('hub_unreachable', 'The hub is offline.')
    const known = typeof topic.app === 'string' && mayExist(hub, topic.app)
    if (command.target === 'app' && !known) throw new CommandError('unknown_app')
    const permitted = hub.permits(command.operation)
    if (permitted === 'unsupported') throw new CommandError('unsupported')
    if (permitted === 'forbidden') {
      throw new CommandError('forbidden', `The API key lacks ${OPERATIONS[command.operation].scope}.`)
    }
  }

  #answer(request: Request, outcome: Outcome): void {
    const { link, clock, mayAnswerOn, onAnswer } = this.#options
    const { message, topic, command: row, transaction, replayed } = request
    const { command, hub, app = null } = topic
    const ms = clock.elapsed() - message.receivedAt
    const duration_ms = Math.round(ms)
    const head = { command, hub, app, transaction, duration_ms, ...(replayed && { replayed }) }
    const code = outcome.ok ? 'ok' : outcome.error.code
    onAnswer?.({ command: nameOf(row), outcome: code, ms })
    const { responseTopic, correlationData } = message
    const to = responseTopic !== undefined && mayAnswerOn(responseTopic) ? responseTopic : topic.result
    const as = (result: Outcome) => ({
      payload: renderAnswer(head, result),
      options: {
        isAnswer: true,
        correlationData,
        contentType: 'application/json',
        userProperties: result.ok ? undefined : { 'error-code': result.error.code },
      },
    })
    const { payload, options } = as(outcome)
    link.send(to, payload, {
      ...options,
      ifTooLarge: () => as({ ok: false, error: new CommandError('too_large') }),
    })
    this.#tell(request, code, duration_ms)
  }

  /** Tells the log, and subscribers of a write that was not done. */
  #tell({ topic, command: row, transaction, replayed, asked }: Request, code: 'ok' | ErrorCode, duration_ms: number) {
    const { hubs, log, onFailedWrite } = this.#options
    const { command, hub, app = null } = topic
    const line = { command, hub, app, transaction, outcome: code, duration_ms, replayed }
    if (!isAudited(row)) return log.debug(line, 'command')
    const told = this.#audit.write(line, asked)
    const isFailedWrite = told && code !== 'ok' && !replayed && row?.target !== 'bridge' && row?.write === true
    if (isFailedWrite && hub !== null && hubs.has(hub)) onFailedWrite({ hub, app, command, code, transaction })
  }
}

const NOTHING: Outcome = { ok: true, json: 'null' }

/** The command's name among those that there are: what somebody made up would be a new name each time. */
function nameOf(command: Command | undefined): string {
  return command === undefined ? 'unknown' : commandKey(command)
}

/** Whether a command is told in the log: it may change something, or is not even a command. */
function isAudited(command: Command | undefined): boolean {
  if (command === undefined) return true
  return command.target === 'bridge' ? command.audited === true : command.write
}

/** While the list could not be read, the hub itself must say which apps it has. */
function mayExist({ apps }: Hub, id: string): boolean {
  return apps.all.has(id) || (!apps.complete && apps.shows(id))
}

function decodeArgument({ argument }: CommandTopic): string {
  if (argument === undefined) return ''
  const text = argument.includes('/') ? undefined : decodeLevel(argument)
  if (text === undefined || text === '') throw new CommandError('invalid_payload', 'The topic names no setting.')
  return text
}
