/** Types for command requests: the sender, the request's state, and its dependencies. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Limiter } from '../base/limiter.ts'
import type { Outcome } from '../contract/answer.ts'
import type { BridgeControl, Command, HubCommand } from '../contract/command.ts'
import type { ErrorCode } from '../contract/errors.ts'
import type { CommandFailedPayload } from '../contract/events.ts'
import type { GuardControl } from '../contract/guard.ts'
import type { CommandTopic, Topics } from '../contract/topics.ts'
import type { Endpoint } from '../hub/endpoints.ts'
import type { Hub } from '../hub/hub.ts'
import type { MqttLink } from '../mqtt/link.ts'
import type { LinkStatus, Message } from '../mqtt/types.ts'
import type { BridgeSettings } from './bridge-options.ts'
import type { Evidence } from './evidence.ts'

/** Who sent a command another way than over MQTT. */
export interface Requester {
  /** For the log. */
  readonly by: string
  /** Called when the command's turn comes and before each write: whether it is still wanted. Default: it always is. */
  readonly isCurrent?: (() => boolean) | undefined
  /** Called once, with what would be published otherwise; secrets are still in it. */
  readonly reply: (answer: Reply) => void
}

export interface Reply {
  readonly outcome: Outcome
  /** What would be published. */
  readonly payload: string
}

/** A command of the bridge's own. */
export interface OwnCommand extends Pick<Requester, 'by' | 'isCurrent'> {
  readonly hub: string
  readonly app: string
  readonly command: string
  readonly payload: object
}

/** One message on a command topic, and what is found out about it on its way to the answer. */
export interface Request {
  readonly message: Message
  readonly requester: Requester | undefined
  readonly topic: CommandTopic
  /** `undefined`: there is no such command. A generic call becomes the command that its input names. */
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
  /** The app that it is about, whatever it is for. */
  readonly about: string | null
  readonly command: HubCommand
  readonly by: string | null
  /** The name of the setting that it changes. */
  readonly setting: string | null
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
  /** The answer as on that topic, without its `data`, which may be for the requester only and is not kept. */
  readonly summary: () => string
}

/** A write that was refused or failed. */
export type FailedWrite = Omit<CommandFailedPayload, 'event_type' | 'at'> & { readonly hub: string }

/** One configured hub, as commands see it. */
export interface DispatchHub {
  readonly hub: Hub
  /** Commands under way at once. */
  readonly concurrency: number
}

export interface DispatcherOptions {
  readonly topics: Pick<Topics, 'parseCommand' | 'appCommand' | 'mayAnswerOn'>
  readonly hubs: ReadonlyMap<string, DispatchHub>
  readonly live: { readonly value: BridgeSettings }
  readonly link: Pick<MqttLink, 'isCurrent' | 'send' | 'hold'> & { status(): Pick<LinkStatus, 'protocol'> }
  readonly control: BridgeControl
  /** In a fleet: why a hub is not among `hubs`, for people; `undefined`: no such hub is configured. */
  readonly fleet?: { readonly isLeader: boolean; whyNotServed(hub: string): string | undefined } | undefined
  readonly evidence: Pick<Evidence, 'report' | 'history'>
  /** Where large answers of all hubs pass. */
  readonly largeReads: Limiter
  readonly clock: Clock
  readonly log: Logger
  /** Writes whatever the log's level is. */
  readonly audit: Logger
}

/** Other parts that act on commands, or are notified of them. */
export interface CommandHandlers {
  /** A write, or a generic call, begins on a hub, or ends. */
  readonly onRun?: (run: CommandRun) => void
  /** Passes a command for the guardian on. */
  readonly guard?: (hub: string, app: string, control: GuardControl) => void
  /** Puts right what others have changed on the broker. */
  readonly repair?: () => void
  /** Not called for each of a flood of refusals. */
  readonly onFailedWrite?: (failed: FailedWrite) => void
  readonly onAnswer?: ((end: CommandEnd) => void) | undefined
}
