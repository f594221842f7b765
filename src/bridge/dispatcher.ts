/** A message on a command topic becomes one answer: refused, answered from memory, or carried out. */

import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { type Outcome, renderAnswer } from '../contract/answer.ts'
import { type BridgeControl, type Command, findCommand, type HubCommand, type Target } from '../contract/commands.ts'
import { CommandError, type ErrorCode, fromHubError } from '../contract/errors.ts'
import { decodeText, peekTransaction, type Reading } from '../contract/payload.ts'
import { commandKey } from '../contract/permissions.ts'
import { decodeLevel } from '../contract/templates.ts'
import type { CommandTopic, Topics } from '../contract/topics.ts'
import { HubError } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import { OPERATIONS } from '../hub/operations.ts'
import type { Message, SendOptions } from '../mqtt/types.ts'
import { CommandQueue } from './queue.ts'
import { Replay, replayKey } from './replay.ts'

/** How long a command may wait inside the bridge. */
const MAX_WAIT_MS = 10_000
const MAX_WAITING = 32

/** The part of the MQTT link that answers need. */
export interface AnswerLink {
  /** Whether a message's connection is still up: what an earlier one brought is stale. */
  isCurrent(message: Message): boolean
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

export interface DispatcherOptions {
  readonly topics: Topics
  readonly hubs: ReadonlyMap<string, DispatchHub>
  readonly link: AnswerLink
  readonly control: BridgeControl
  /** Whether configuration allows a command. */
  readonly allows: (command: Command) => boolean
  readonly onRun: (run: CommandRun) => void
  readonly onAnswer?: (end: CommandEnd) => void
  readonly clock: Clock
  readonly log: Logger
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
}

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #replay: Replay
  /** By the hub itself: one that is configured anew under the same name starts with an empty queue. */
  readonly #queues = new WeakMap<DispatchHub, CommandQueue>()

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#replay = new Replay(options.clock)
  }

  /** Takes in one message of the command filters; it never throws, and always answers a command. */
  receive(message: Message): void {
    const topic = this.#options.topics.parseCommand(message.topic)
    // Nothing retained is how a retained command is cleared, by us or by others.
    if (topic === undefined || (message.retain && message.payload.length === 0)) return
    const command = findCommand(topic.target, topic.command, topic.argument !== undefined)
    void this.#handle({ message, topic, command, transaction: null, replayed: false })
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
      const input = reading.input()
      if (command.target === 'bridge') {
        command.act(this.#options.control, input)
        return { ok: true, data: null }
      }
      return { ok: true, data: await this.#onHub(request, command, input, deadline) }
    } catch (error) {
      return this.#failed(error, command.target !== 'bridge' && command.write)
    }
  }

  /** Waits for the command's turn and carries it out. */
  async #onHub(request: Request, command: HubCommand, input: unknown, deadline: number): Promise<unknown> {
    const { hubs, onRun } = this.#options
    const { topic } = request
    const name = topic.hub ?? ''
    const bridged = hubs.get(name)
    if (bridged === undefined) throw new CommandError('unknown_hub')
    const { hub } = bridged
    const app = topic.app ?? ''
    const target = { hub, app, argument: decodeArgument(topic) }
    this.#check(hub, command, request)
    return await this.#queueOf(bridged).run(app, deadline, async () => {
      this.#check(hub, command, request)
      const run = { hub: name, app: topic.app ?? null, command }
      onRun({ ...run, phase: 'begun' })
      try {
        return await this.#carryOut(command, target, input)
      } finally {
        onRun({ ...run, phase: 'ended' })
      }
    })
  }

  #queueOf(hub: DispatchHub): CommandQueue {
    const { concurrency } = hub
    const queue =
      this.#queues.get(hub) ?? new CommandQueue({ concurrency, maxWaiting: MAX_WAITING }, this.#options.clock)
    this.#queues.set(hub, queue)
    return queue
  }

  /** Runs a command; where a write was sent and not answered, one look at the hub may tell what became of it. */
  async #carryOut(command: HubCommand, target: Target, input: unknown): Promise<unknown> {
    try {
      return await command.run(target, input)
    } catch (error) {
      if (!(error instanceof HubError && error.code === 'no_answer') || command.verify === undefined) throw error
      const done = await command.verify(target, input).catch(() => undefined)
      if (done) return null
      const found = done === undefined ? error.message : `${error.message} A look at the hub finds it not done so far.`
      throw new CommandError('outcome_unknown', found, { cause: error })
    }
  }

  #failed(error: unknown, write: boolean): Outcome {
    if (error instanceof CommandError) return { ok: false, error }
    if (error instanceof HubError) return { ok: false, error: fromHubError(error, write) }
    this.#options.log.error({ err: error }, 'a command failed by a mistake of the bridge')
    return { ok: false, error: new CommandError('hub_failed', 'The bridge made a mistake; its log says which.') }
  }

  /** What must hold when a command comes in, and still when its turn comes. */
  #check(hub: Hub, command: HubCommand, { message, topic }: Request): void {
    if (!this.#options.link.isCurrent(message)) throw new CommandError('expired')
    if (!hub.status.online) throw new CommandError('hub_unreachable', 'The hub is offline.')
    const known = typeof topic.app === 'string' && mayExist(hub, topic.app)
    if (command.target === 'app' && !known) throw new CommandError('unknown_app')
    const permitted = hub.permits(command.operation)
    if (permitted === 'unsupported') throw new CommandError('unsupported')
    if (permitted === 'forbidden') {
      throw new CommandError('forbidden', `The API key lacks ${OPERATIONS[command.operation].scope}.`)
    }
  }

  #answer({ message, topic, command: row, transaction, replayed }: Request, outcome: Outcome): void {
    const { topics, link, clock, log, onAnswer } = this.#options
    const { command, hub, app = null } = topic
    const ms = clock.elapsed() - message.receivedAt
    const duration_ms = Math.round(ms)
    const head = { command, hub, app, transaction, duration_ms, ...(replayed && { replayed }) }
    const code = outcome.ok ? 'ok' : outcome.error.code
    onAnswer?.({ command: nameOf(row), outcome: code, ms })
    log[isAudited(row) ? 'info' : 'debug'](
      { command, hub, app, transaction, outcome: code, duration_ms, replayed },
      'command',
    )
    const { responseTopic, correlationData } = message
    const to = responseTopic !== undefined && topics.mayAnswerOn(responseTopic) ? responseTopic : topic.result
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
  }
}

/** The command's name among those that there are: what somebody made up would be a new name each time. */
function nameOf(command: Command | undefined): string {
  return command === undefined ? 'unknown' : commandKey(command)
}

/** Writes, and what was not even a command, are told in the log; reads are not. */
function isAudited(command: Command | undefined): boolean {
  return command === undefined || (command.target !== 'bridge' && command.write)
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
