/** Carries out commands on hubs: each in its turn, and only while it is permitted. */
import type { Clock } from '../base/clock.ts'
import { Limiter } from '../base/limiter.ts'
import type { Outcome } from '../contract/answer.ts'
import { type Command, effectiveCommand, type HubCommand } from '../contract/commands.ts'
import { CommandError } from '../contract/errors.ts'
import type { GuardWish } from '../contract/guard.ts'
import { lackOf, permission } from '../contract/permissions.ts'
import type { Target } from '../contract/target.ts'
import { decodeLevel } from '../contract/templates.ts'
import type { CommandTopic } from '../contract/topics.ts'
import type { Hub } from '../hub/hub.ts'
import { OPERATIONS } from '../hub/operations.ts'
import { retryRateLimited } from './retry-rate-limited.ts'

const MAX_WAITING = 32

/** One configured hub, as commands see it. */
export interface DispatchHub {
  readonly hub: Hub
  /** Commands under way at once. */
  readonly concurrency: number
}

/** A command being carried out on a hub, as others may want to know. */
export interface CommandRun {
  readonly hub: string
  /** `null` for a command that is for the whole hub. */
  readonly app: string | null
  /** The app that it is about: also of a command that is for the whole hub. */
  readonly about: string | null
  /** Who sent it, if not somebody by MQTT. */
  readonly by: string | null
  readonly command: HubCommand
  readonly phase: 'begun' | 'ended'
  /** Whether it has ended, and well. */
  readonly ok: boolean
}

export interface ExecutionOptions {
  readonly hubs: ReadonlyMap<string, DispatchHub>
  /** Why configuration refuses a command, if it does; of no input, whether it does with any. */
  readonly refuses: (command: Command, input?: unknown) => string | undefined
  readonly onRun: (run: CommandRun) => void
  /** Sends a command to an app, as another client would. */
  readonly send: (hub: string, app: string, command: string, isCurrent: () => boolean) => Promise<Outcome>
  /** Tells the guardian what is wanted of it for an app. */
  readonly guard: (hub: string, app: string, wish: GuardWish) => void
  readonly clock: Clock
  /** Aborted when the bridge ends. */
  readonly signal: AbortSignal
}

/** A command that was read. */
export interface Order {
  readonly topic: CommandTopic
  readonly command: HubCommand
  readonly input: unknown
  /** Who sent it, if not somebody by MQTT. */
  readonly by: string | null
  /** In `clock.elapsed()` milliseconds: not begun by then, it never is. */
  readonly deadline: number
  /** The same for each of its writes, as its requester wants it; `Infinity` if he does not say. */
  readonly expiresAt: number
  /** Whether the connection that brought it is still up. */
  readonly isCurrent: () => boolean
  /** Called before the hub is asked to change something. */
  readonly onWrite: () => void
}

export class Execution {
  readonly #options: ExecutionOptions
  /** By the hub itself: one that is configured anew under the same name starts with an empty queue. */
  readonly #queues = new WeakMap<DispatchHub, Limiter>()
  /** Those on which a command is under way that sends others. */
  readonly #sending = new WeakSet<DispatchHub>()

  constructor(options: ExecutionOptions) {
    this.#options = options
  }

  /** Resolves to the data of the answer. @throws CommandError or HubError */
  async run(order: Order): Promise<unknown> {
    const { hubs, onRun } = this.#options
    const { topic, command, input, deadline } = order
    const name = topic.hub ?? ''
    const bridged = hubs.get(name)
    if (bridged === undefined) throw new CommandError('unknown_hub')
    const { hub } = bridged
    const argument = decodeArgument(topic)
    this.#check(hub, order)
    if (command.fansOut) return await this.#runSending(bridged, order)
    return await this.#queueOf(bridged).run({ lane: laneOf(hub, order), deadline }, async ({ isLate }) => {
      this.#check(hub, order)
      const about = topic.app ?? command.about?.(input) ?? null
      const app = command.reaches === undefined ? (topic.app ?? null) : about
      const run = { hub: name, app, about, by: order.by, command: effectiveCommand(command, input) }
      onRun({ ...run, phase: 'begun', ok: false })
      let ok = false
      try {
        const data = await command.run(this.#target(hub, order, argument, isLate), input)
        ok = true
        return data
      } finally {
        onRun({ ...run, phase: 'ended', ok })
      }
    })
  }

  /** In a place of the queue it would keep out what it sends. */
  async #runSending(bridged: DispatchHub, order: Order): Promise<unknown> {
    if (this.#sending.has(bridged)) throw new CommandError('busy', 'The same is under way on this hub already.')
    this.#sending.add(bridged)
    try {
      return await order.command.run(
        this.#target(bridged.hub, order, '', () => false),
        order.input,
      )
    } finally {
      this.#sending.delete(bridged)
    }
  }

  #queueOf(hub: DispatchHub): Limiter {
    const { clock } = this.#options
    const refusal = (why: 'busy' | 'expired') => new CommandError(why)
    const queue =
      this.#queues.get(hub) ?? new Limiter({ clock, slots: hub.concurrency, maxWaiting: MAX_WAITING, refusal })
    this.#queues.set(hub, queue)
    return queue
  }

  #target(hub: Hub, order: Order, argument: string, isLate: () => boolean): Target {
    const { clock, signal } = this.#options
    const { topic, deadline, expiresAt, onWrite, isCurrent } = order
    const check = () => this.#check(hub, order)
    let begun = false
    const beginWrite = () => {
      // A read that went before may have taken its time, and rights.
      if ((!begun && isLate()) || clock.elapsed() >= expiresAt) throw new CommandError('expired')
      check()
      begun = true
      onWrite()
    }
    const again: Target['again'] = (read) => retryRateLimited(read, { clock, deadline, signal, check })
    // Asked when the request leaves: until then it may wait for a connection, and for the hub to show who it is.
    const call: Target['call'] = (name, parameters) =>
      again(() => hub.call(name, parameters, OPERATIONS[name].method === 'GET' ? undefined : beginWrite))
    const callEndpoint: Target['callEndpoint'] = (endpoint) =>
      again(() => hub.callEndpoint(endpoint, endpoint.method === 'GET' ? undefined : beginWrite))
    const app = topic.app ?? ''
    const isWanted = () => isCurrent() && clock.elapsed() < expiresAt
    const send: Target['send'] = (id, name) => this.#options.send(topic.hub ?? '', id, name, isWanted)
    const guard: Target['guard'] = (wish) => this.#options.guard(topic.hub ?? '', app, wish)
    return { hub, app, argument, call, callEndpoint, again, send, guard, clock, signal }
  }

  /** What must hold when a command comes in, when its turn comes, and before each of its writes. */
  #check(hub: Hub, { topic, command, input, isCurrent }: Order): void {
    if (this.#options.signal.aborted || !isCurrent()) throw new CommandError('expired')
    const refusal = this.#options.refuses(command, input)
    if (refusal !== undefined) throw new CommandError('not_allowed', refusal)
    if (!hub.status.online) throw new CommandError('hub_unreachable', 'The hub is offline.')
    const known = typeof topic.app === 'string' && mayExist(hub, topic.app)
    if (command.target === 'app' && !known) throw new CommandError('unknown_app')
    if (isHidden(hub, command, input)) throw new CommandError('unknown_app')
    const actual = effectiveCommand(command, input)
    const permitted = permission(hub, actual)
    if (permitted === 'unsupported') throw new CommandError('unsupported')
    if (permitted === 'forbidden') throw new CommandError('forbidden', lackOf(actual))
  }
}

/** While the list could not be read, the hub itself must say which apps it has. */
function mayExist({ apps }: Hub, id: string): boolean {
  return apps.all.has(id) || (!apps.complete && apps.shows(id))
}

/** Whether a call is for an app that there is not; one that is to be installed need only be shown. */
function isHidden(hub: Hub, command: HubCommand, input: unknown): boolean {
  const endpoint = command.reaches?.(input)
  if (endpoint === undefined || endpoint.app === null) return false
  return endpoint.operation === 'installFromAppStore' ? !hub.apps.shows(endpoint.app) : !mayExist(hub, endpoint.app)
}

/** A call to an app waits with the commands of the app. */
function laneOf(hub: Hub, { topic, command, input }: Order): string {
  const app = topic.app ?? command.reaches?.(input).app ?? ''
  return topic.app !== undefined || mayExist(hub, app) ? app : ''
}

function decodeArgument({ argument }: CommandTopic): string {
  if (argument === undefined) return ''
  const text = argument.includes('/') ? undefined : decodeLevel(argument)
  if (text === undefined || text === '') throw new CommandError('invalid_payload', 'The topic names no setting.')
  return text
}
