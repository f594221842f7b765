/** Who sends commands, over MQTT or another way, and what is known of one when it runs and when it has its answer. */
import type { Outcome } from '../contract/answer.ts'
import type { Command, HubCommand } from '../contract/commands.ts'
import type { ErrorCode } from '../contract/errors.ts'
import type { CommandTopic } from '../contract/topics.ts'
import type { Endpoint } from '../hub/endpoints.ts'
import type { Message } from '../mqtt/types.ts'

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
}

/** No connection has brought what the bridge sends to itself. */
const NO_CONNECTION = -1

/** A command of the bridge's own, as if it had come over MQTT. */
export function ownMessage(topic: string, payload: object, receivedAt: number): Message {
  const text = Buffer.from(JSON.stringify(payload))
  return { topic, payload: text, retain: false, dup: false, qos: 1, receivedAt, connection: NO_CONNECTION }
}

/** One message on a command topic, and what is found out about it on its way to the answer. */
export interface Request {
  readonly message: Message
  readonly requester: Requester | undefined
  readonly topic: CommandTopic
  /** `undefined`: there is no such command. As soon as its input is known, what it is with that. */
  command: Command | undefined
  /** What a generic call names. */
  endpoint?: Endpoint
  transaction: string | number | null
  /** In `clock.elapsed()` milliseconds: not begun by then, it never is. */
  deadline: number
  /** The same for each of its writes, as its requester wants it; `Infinity` if he does not say. */
  expiresAt: number
  /** Whether the answer is from memory. */
  replayed: boolean
  /** Whether the hub was asked to change something. */
  asked: boolean
}

/** A write, or a generic call, being carried out on a hub, as others may want to know. */
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

/** A command that was answered: how it went, for those who count. */
export interface CommandEnd {
  /** As configuration names it, or `unknown`: a label of its own for each made-up name would have no bound. */
  readonly command: string
  readonly outcome: 'ok' | ErrorCode
  /** From its arrival to its answer. */
  readonly ms: number
  /** The topic of its result, wherever the answer went. */
  readonly result: string
  /** The answer as on that topic, but for its `data`, which may hold what is for the requester only, and is not kept. */
  readonly summary: () => string
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
