/**
 * Runs the steps of a command: find the command, read the payload, refuse an expired command, answer a repeated command
 * from memory, read the input, check the permission, wait in the queue, check again, run, and answer.
 */
import { within } from '../base/clock.ts'
import { isRecord } from '../base/json.ts'
import { Limiter } from '../base/limiter.ts'
import { nearest } from '../base/nearest.ts'
import type { Outcome } from '../contract/answer.ts'
import type { Command, HubCommand, Target } from '../contract/command.ts'
import { COMMANDS, effectiveCommand, findCommand, isAudited, MAX_NAME_LENGTH } from '../contract/commands.ts'
import { CommandError, ERROR_CODES, fromHubError } from '../contract/errors.ts'
import { decodeText, peekTransaction, type Reading } from '../contract/payload.ts'
import { lackOf, permission, policyOf, refusedBy } from '../contract/permissions.ts'
import { decodeLevel } from '../contract/templates.ts'
import type { CommandTopic } from '../contract/topics.ts'
import { retryRateLimited } from '../hub/client.ts'
import { HubError } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import { OPERATIONS } from '../hub/operations.ts'
import type { Message } from '../mqtt/types.ts'
import { Answers } from './answers.ts'
import { usageHistory } from './hub-history.ts'
import { Replay, replayKey } from './replay.ts'
import type { CommandRun, DispatcherOptions, DispatchHub, OwnCommand, Request, Requester } from './requests.ts'

const MAX_WAIT_MS = 10_000
/** Maximum number of waiting commands for each app, and for the hub itself. */
const MAX_WAITING = 32
/** How long `stop` waits for running commands. Supervisors wait longer than this and the link's timeout together. */
const ANSWER_MS = 1500
/** How long `stop` waits for the answers to aborted commands. */
const ABORTED_MS = 300
/** The connection number of the bridge's own commands, which do not arrive over MQTT. */
const NO_CONNECTION = -1

interface Order {
  readonly request: Request
  readonly bridged: DispatchHub
  readonly command: HubCommand
  readonly input: unknown
  readonly argument: string
  /** The app that the command concerns, even if its topic does not name it; `null` if there is none. */
  readonly about: string | null
}

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #replay: Replay
  readonly #answers: Answers
  /** Keyed by the hub object, so that a hub that is configured again under the same name has an empty queue. */
  readonly #queues = new WeakMap<DispatchHub, Limiter>()
  /** Hubs on which a command that sends other commands is running. */
  readonly #sending = new WeakSet<DispatchHub>()
  readonly #ending = new AbortController()
  readonly #answered = Promise.withResolvers<void>()
  #running = 0

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#replay = new Replay(options.clock)
    this.#answers = new Answers(options)
  }

  get isBusy(): boolean {
    return this.#running > 0
  }

  /** Makes waiting and new commands expire. Waits for running commands, and aborts them after a time limit. */
  async stop(): Promise<void> {
    const { clock, hubs } = this.#options
    this.#ending.abort()
    this.#answers.stop()
    if (this.#running === 0) return
    const answered = this.#answered.promise
    await within(clock, ANSWER_MS, answered)
    if (!this.isBusy) return
    for (const { hub } of hubs.values()) void hub.endCalls()
    await within(clock, ABORTED_MS, answered)
  }

  /** Never throws. Answers every command, except those that a different member of the fleet answers. */
  receive(message: Message, requester?: Requester): void {
    const { topics, fleet } = this.#options
    const topic = topics.parseCommand(message.topic)
    // Ignore an empty retained message, which only clears a retained command.
    if (topic === undefined || (message.retain && message.payload.length === 0)) return
    if (requester === undefined && fleet !== undefined && !this.#isOurs(topic, fleet.isLeader)) return
    const command = findCommand(topic.target, topic.command, topic.argument !== undefined)
    const unparsed = { transaction: null, deadline: 0, expiresAt: Number.POSITIVE_INFINITY }
    void this.#handle({ message, requester, topic, command, ...unparsed, replayed: false, writeSent: false })
  }

  /** Returns whether this member answers: it serves the hub, or it is the leader and no configured hub is addressed. */
  #isOurs({ hub }: CommandTopic, isLeader: boolean): boolean {
    const { hubs, live } = this.#options
    if (hub !== null && hubs.has(hub)) return true
    return isLeader && (hub === null || !Object.hasOwn(live.value.hubs, hub))
  }

  /** Sends a command of the bridge itself in the same way as a client's command. */
  send({ hub, app, command, payload, by, isCurrent }: OwnCommand): Promise<Outcome> {
    const { topics, clock } = this.#options
    const sent = {
      payload: Buffer.from(JSON.stringify(payload)),
      receivedAt: clock.elapsed(),
      connection: NO_CONNECTION,
    }
    const message: Message = { topic: topics.appCommand(hub, app, command), retain: false, dup: false, qos: 1, ...sent }
    return new Promise((resolve) => {
      this.receive(message, { by, isCurrent, reply: ({ outcome }) => resolve(outcome) })
    })
  }

  async #handle(request: Request): Promise<void> {
    let outcome: Outcome
    this.#running += 1
    try {
      const row = this.#find(request)
      const reading = row.payload.read(decodeText(request.message.payload))
      request.transaction = reading.transaction
      const command = row.target === 'bridge' || row.reaches === undefined ? row : effective(request, row, reading)
      this.#expire(request, reading)
      outcome = await this.#deduplicate(request, command, () => this.#execute(request, command, reading))
    } catch (error) {
      outcome = this.#failed(error, false)
      // A raw value has no envelope: its key `transaction` is data, which must not be published or logged.
      if (!request.command?.payload.emptyIsValue) request.transaction ??= peekTransaction(request.message.payload)
    }
    this.#answers.give(request, outcome)
    this.#running -= 1
    if (this.#running === 0 && this.#ending.signal.aborted) this.#answered.resolve()
  }

  #find({ message, topic, command }: Request): Command {
    const { hubs, link, fleet } = this.#options
    if (message.retain) {
      link.hold(message.topic, null)
      throw new CommandError('retained')
    }
    if (topic.hub !== null && !hubs.has(topic.hub))
      throw new CommandError('unknown_hub', fleet?.whyNotServed(topic.hub))
    if (command === undefined) throw new CommandError('unknown_command', suggestion(topic))
    // If some inputs of a command need no feature (`worksWithout`), authorize the command once its input is known.
    if (command.target === 'bridge' || command.worksWithout === undefined) this.#authorize(command)
    return command
  }

  /** Without `input`, refuses the command only if no input is permitted. @throws CommandError */
  #authorize(command: Command, input?: unknown): void {
    const refusal = refusedBy(policyOf(this.#options.live.value), command, input)
    if (refusal !== undefined) throw new CommandError('not_allowed', refusal)
  }

  #expire(request: Request, reading: Reading<unknown>): void {
    const { clock } = this.#options
    const { receivedAt, expiresInMs = Number.POSITIVE_INFINITY } = request.message
    const now = clock.elapsed()
    const requestedExpiry =
      reading.expiresAt === null ? Number.POSITIVE_INFINITY : now + reading.expiresAt - clock.now()
    request.expiresAt = Math.min(receivedAt + expiresInMs, requestedExpiry)
    request.deadline = Math.min(receivedAt + MAX_WAIT_MS, request.expiresAt)
    if (request.deadline <= now) throw new CommandError('expired')
  }

  #deduplicate(request: Request, command: Command, run: () => Promise<Outcome>): Promise<Outcome> {
    const { message, requester, transaction } = request
    const isWrite = isAudited(command)
    const isMarked = transaction !== null || message.correlationData !== undefined
    // The broker redelivers only messages with a QoS above 0. A redelivered read without a transaction or correlation
    // data runs again.
    const mayReturn = isMarked || (isWrite && message.qos > 0 && requester === undefined)
    const isRepeatable = command.target === 'bridge' && command.repeatable === true
    if (!mayReturn || isRepeatable) return run()
    const { text, consult } = replayKey(message, transaction)
    const earlier = consult ? this.#replay.recall(text) : undefined
    request.replayed = earlier !== undefined
    if (earlier !== undefined) return earlier
    if (isWrite && !this.#replay.hasRoom) throw new CommandError('busy', FULL)
    const running = run()
    this.#replay.remember(text, running, isWrite ? () => request.writeSent : undefined)
    return running
  }

  /** Never rejects, because a failure is remembered like any other outcome. */
  async #execute(request: Request, command: Command, reading: Reading<unknown>): Promise<Outcome> {
    const { message, requester, topic, transaction } = request
    const { hubs, link, control } = this.#options
    try {
      // Under MQTT 3.1.1, refuse an empty value, because it looks like a message that clears a retained message.
      const isEmpty = command.payload.emptyIsValue && requester === undefined && message.payload.length === 0
      if (isEmpty && link.status().protocol === '3.1.1') throw new CommandError('invalid_payload', EMPTY)
      const argument = topic.argument === undefined ? '' : readArgument(topic.argument)
      const input = reading.input()
      let data: unknown
      if (command.target === 'bridge') {
        this.#authorize(command, input)
        data = await command.act(control, input, transaction)
      } else {
        const bridged = hubs.get(topic.hub ?? '')
        if (bridged === undefined) throw new CommandError('unknown_hub')
        const about = topic.app ?? command.about?.(input) ?? null
        data = await this.#carryOut({ request, bridged, command, input, argument, about })
      }
      return { ok: true, json: JSON.stringify(data ?? null) }
    } catch (error) {
      return this.#failed(error, command.target !== 'bridge' && command.write)
    }
  }

  /** Resolves to the data of the answer. @throws {CommandError | HubError} */
  async #carryOut(order: Order): Promise<unknown> {
    const { request, bridged, command, about } = order
    this.#check(order)
    if (command.fansOut) return await this.#fanOut(order)
    // A command to the hub that concerns an app waits in the same queue as the app's commands.
    return await this.#queueOf(bridged).run({ lane: about ?? '', deadline: request.deadline }, async ({ isLate }) => {
      this.#check(order)
      // Reads change nothing, so the hub's state needs no notification.
      return command.write || command.reaches ? await this.#runNotifying(order, isLate) : await this.#run(order, isLate)
    })
  }

  #queueOf(hub: DispatchHub): Limiter {
    const { clock } = this.#options
    const refusal = (why: 'busy' | 'expired') => new CommandError(why)
    const queue =
      this.#queues.get(hub) ?? new Limiter({ clock, slots: hub.concurrency, maxWaiting: MAX_WAITING, refusal })
    this.#queues.set(hub, queue)
    return queue
  }

  /** Called when the command arrives, when it leaves the queue, and before each of its requests. */
  #check({ request, bridged: { hub }, command, input }: Order): void {
    const { topic, endpoint } = request
    if (this.#ending.signal.aborted || !this.#isCurrent(request)) throw new CommandError('expired')
    // A reload may have removed the hub. A hub that another member has taken over is still configured.
    const { hubs, live } = this.#options
    const name = topic.hub ?? ''
    if (!hubs.has(name) && !Object.hasOwn(live.value.hubs, name)) throw new CommandError('unknown_hub')
    this.#authorize(command, input)
    if (!hub.status.online) throw new CommandError('hub_unreachable', 'The hub is offline.')
    const app = endpoint === undefined ? topic.app : endpoint.app
    if (app !== null && !mayReach(hub, app, command)) throw new CommandError('unknown_app')
    const permitted = permission(hub, command)
    if (permitted === 'unsupported') throw new CommandError('unsupported')
    if (permitted === 'forbidden') throw new CommandError('forbidden', lackOf(command))
  }

  #isCurrent({ message, requester }: Request): boolean {
    return requester === undefined ? this.#options.link.isCurrent(message) : requester.isCurrent?.() !== false
  }

  /** Runs outside the queue. In the queue, the command would block the commands that it sends. */
  async #fanOut(order: Order): Promise<unknown> {
    const { bridged } = order
    if (this.#sending.has(bridged)) throw new CommandError('busy', 'This command is already running on this hub.')
    this.#sending.add(bridged)
    try {
      return await this.#run(order, () => false)
    } finally {
      this.#sending.delete(bridged)
    }
  }

  async #runNotifying(order: Order, isLate: () => boolean): Promise<unknown> {
    const { request, command, input, about } = order
    const { hub, app = null } = request.topic
    const { operation } = command
    const setting = operation === 'setAppSetting' || operation === 'unsetAppSetting' ? settingOf(order) : null
    // The command `enabled` has the operation `enableApp`, but its input `false` disables the app.
    const starts = operation === 'restartApp' || (operation === 'enableApp' && input !== false)
    const by = request.requester?.by ?? null
    const run = { app: command.reaches === undefined ? app : about, about, by, command, setting, starts }
    // The hub may be removed while the command runs.
    const notify = (phase: CommandRun['phase'], ok: boolean) =>
      this.#options.states.get(hub ?? '')?.onRun({ ...run, phase, ok })
    notify('begun', false)
    let ok = false
    try {
      const data = await this.#run(order, isLate)
      ok = true
      return data
    } finally {
      notify('ended', ok)
    }
  }

  #run(order: Order, isLate: () => boolean): Promise<unknown> {
    const { request, bridged, command, input, argument } = order
    const { clock, states, evidence, largeReads, repair } = this.#options
    const { hub } = bridged
    const { signal } = this.#ending
    const [name, app] = [request.topic.hub ?? '', request.topic.app ?? '']
    const check = () => this.#check(order)
    // Called just before a write is sent, because it may have waited for a connection and for a check of the hub's id.
    const beforeWrite = () => {
      // The command's earlier requests may have taken a long time, and permissions may have changed.
      if ((!request.writeSent && isLate()) || clock.elapsed() >= request.expiresAt) throw new CommandError('expired')
      check()
      request.writeSent = true
    }
    // Check before each retry too, because a read that several commands share does not check each command.
    const again: Target['again'] = (read) =>
      retryRateLimited(read, { clock, deadline: request.deadline, signal, check })
    const isCurrent = () => this.#isCurrent(request) && clock.elapsed() < request.expiresAt
    const target: Target = {
      hub,
      app,
      argument,
      again,
      call: (operation, parameters) =>
        again(() => hub.call(operation, parameters, OPERATIONS[operation].method === 'GET' ? check : beforeWrite)),
      callEndpoint: (endpoint) =>
        again(() => hub.callEndpoint(endpoint, endpoint.method === 'GET' ? check : beforeWrite)),
      send: (id, sent) => this.send({ hub: name, app: id, command: sent, payload: {}, by: 'update-all', isCurrent }),
      report: () => evidence.report(name, app),
      history: (hours) => {
        const own = evidence.history(name, app, hours)
        return usageHistory({ hub, app, hours, own, largeReads, clock, deadline: request.deadline })
      },
      guard: (control) => states.get(name)?.control(app, control),
      repair,
      clock,
      signal,
    }
    return command.run(target, input)
  }

  #failed(error: unknown, write: boolean): Outcome {
    if (error instanceof CommandError) return { ok: false, error }
    if (error instanceof HubError) return { ok: false, error: fromHubError(error, write) }
    this.#options.log.error({ err: error }, 'a command failed because of a bug in the bridge')
    return { ok: false, error: new CommandError('hub_failed', 'A bug in the bridge; see its log.') }
  }
}

/** Returns the name of the setting from the topic or the payload. */
function settingOf({ argument, input }: Order): string {
  const name = isRecord(input) && argument === '' ? input['name'] : argument
  return typeof name === 'string' ? name : ''
}

const EMPTY = 'Under MQTT 3.1.1 an empty message is no value; send "" for an empty text.'
const FULL = 'Too many writes within five minutes for the bridge to remember; try again later.'

/** Returns `row` with the operation that the input of a generic call selects; unchanged if the input is invalid. */
function effective(request: Request, row: HubCommand, reading: Reading<unknown>): HubCommand {
  try {
    const input = reading.input()
    const command = effectiveCommand(row, input)
    Object.assign(request, { command, endpoint: row.reaches?.(input) })
    return command
  } catch (error) {
    if (error instanceof CommandError) return row
    throw error
  }
}

function readArgument(level: string): string {
  const text = level.includes('/') ? undefined : decodeLevel(level)
  if (text === undefined || text === '') throw new CommandError('invalid_payload', 'The topic names no setting.')
  if (text.length > MAX_NAME_LENGTH) {
    throw new CommandError('invalid_payload', `A name has at most ${MAX_NAME_LENGTH} characters.`)
  }
  return text
}

/** Returns whether an app may exist. For an install, or before the first list, only checks the filter. */
function mayReach({ apps }: Hub, id: string | undefined, { target, operation }: HubCommand): boolean {
  if (id === undefined) return false
  const mayBeNew = target === 'hub' && operation === 'installFromAppStore'
  return apps.all.has(id) || ((mayBeNew || !apps.complete) && apps.shows(id))
}

function suggestion({ target, command }: CommandTopic): string {
  const names = COMMANDS.filter((row) => row.target === target).map(({ name }) => name)
  const meant = nearest(command, names)
  return meant === undefined
    ? ERROR_CODES.unknown_command
    : `${ERROR_CODES.unknown_command.slice(0, -1)}; did you mean ${meant}?`
}
