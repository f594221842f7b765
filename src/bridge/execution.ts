/** Carries out commands on hubs: each in its turn, and only while it is permitted. */
import type { Clock } from '../base/clock.ts'
import type { Command, HubCommand } from '../contract/commands.ts'
import { CommandError } from '../contract/errors.ts'
import type { GuardWish } from '../contract/guard.ts'
import type { Target } from '../contract/target.ts'
import { decodeLevel } from '../contract/templates.ts'
import type { CommandTopic } from '../contract/topics.ts'
import type { Hub } from '../hub/hub.ts'
import { OPERATIONS } from '../hub/operations.ts'
import { untilTaken } from './patience.ts'
import { CommandQueue } from './queue.ts'

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
}

export interface ExecutionOptions {
  readonly hubs: ReadonlyMap<string, DispatchHub>
  /** Why configuration refuses a command, if it does; of no input, whether it does with any. */
  readonly refuses: (command: Command, input?: unknown) => string | undefined
  readonly onRun: (run: CommandRun) => void
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
  /** The same for each of its writes, as its asker wants it; `Infinity` if he does not say. */
  readonly expiresAt: number
  /** Whether the connection that brought it is still up. */
  readonly isCurrent: () => boolean
  /** Called before the hub is asked to change something. */
  readonly onWrite: () => void
}

export class Execution {
  readonly #options: ExecutionOptions
  /** By the hub itself: one that is configured anew under the same name starts with an empty queue. */
  readonly #queues = new WeakMap<DispatchHub, CommandQueue>()

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
    return await this.#queueOf(bridged).run(topic.app ?? '', deadline, async (isLate) => {
      this.#check(hub, order)
      const app = topic.app ?? null
      const run = { hub: name, app, about: app ?? command.about?.(input) ?? null, by: order.by, command }
      onRun({ ...run, phase: 'begun' })
      try {
        return await command.run(this.#target(hub, order, argument, isLate), input)
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

  #target(hub: Hub, order: Order, argument: string, isLate: () => boolean): Target {
    const { clock, signal } = this.#options
    const { topic, deadline, expiresAt, onWrite } = order
    const check = () => this.#check(hub, order)
    let begun = false
    const beginWrite = () => {
      // A read that went before may have taken its time, and rights.
      if ((!begun && isLate()) || clock.elapsed() >= expiresAt) throw new CommandError('expired')
      check()
      begun = true
      onWrite()
    }
    const again: Target['again'] = (read) => untilTaken(read, { clock, deadline, signal, check })
    // Asked when the request leaves: until then it may wait for a connection, and for the hub to show who it is.
    const call: Target['call'] = (name, parameters) =>
      again(() => hub.call(name, parameters, OPERATIONS[name].method === 'GET' ? undefined : beginWrite))
    const app = topic.app ?? ''
    const guard: Target['guard'] = (wish) => this.#options.guard(topic.hub ?? '', app, wish)
    return { hub, app, argument, call, again, guard, clock, signal }
  }

  /** What must hold when a command comes in, when its turn comes, and before each of its writes. */
  #check(hub: Hub, { topic, command, input, isCurrent }: Order): void {
    if (!isCurrent()) throw new CommandError('expired')
    const refusal = this.#options.refuses(command, input)
    if (refusal !== undefined) throw new CommandError('not_allowed', refusal)
    if (!hub.status.online) throw new CommandError('hub_unreachable', 'The hub is offline.')
    const known = typeof topic.app === 'string' && mayExist(hub, topic.app)
    if (command.target === 'app' && !known) throw new CommandError('unknown_app')
    const permitted = hub.permits(command.operation)
    if (permitted === 'unsupported') throw new CommandError('unsupported')
    if (permitted === 'forbidden') {
      throw new CommandError('forbidden', `The API key lacks ${OPERATIONS[command.operation].scope}.`)
    }
  }
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
