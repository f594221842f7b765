/** Types of command requests: the requester, the state of a request, and the dependencies of the dispatcher. */
import type { Logger } from 'pino'
import type { Limiter } from '../base/limiter.ts'
import type { Outcome } from '../contract/answer.ts'
import type { BridgeControl, Command, HubCommand } from '../contract/command.ts'
import type { ErrorCode } from '../contract/errors.ts'
import type { CommandFailedPayload } from '../contract/events.ts'
import type { GuardControl } from '../contract/guard.ts'
import type { CommandTopic } from '../contract/topics.ts'
import type { Endpoint } from '../hub/endpoints.ts'
import type { Hub } from '../hub/hub.ts'
import type { MqttLink } from '../mqtt/link.ts'
import type { LinkStatus, Message } from '../mqtt/types.ts'
import type { BridgeOptions, FleetSide } from './bridge-options.ts'
import type { Evidence } from './evidence.ts'

/** The sender of a command that did not arrive over MQTT. */
export interface Requester {
  /** The sender's name in the log. */
  readonly by: string
  /** Returns whether the command is still wanted. Called before each of its steps. Default: always `true`. */
  readonly isCurrent?: (() => boolean) | undefined
  /** Called once with the answer, which may contain secrets. */
  readonly reply: (answer: Reply) => void
}

export interface Reply {
  readonly outcome: Outcome
  /** The payload that the bridge would publish over MQTT. */
  readonly payload: string
}

/** A command of the bridge itself. */
export interface OwnCommand extends Pick<Requester, 'by' | 'isCurrent'> {
  readonly hub: string
  readonly app: string
  readonly command: string
  readonly payload: object
}

/** A command, and the results of its steps so far. */
export interface Request {
  readonly message: Message
  readonly requester: Requester | undefined
  readonly topic: CommandTopic
  /** `undefined` if there is no such command. Once its input is read, a generic call becomes the matching command. */
  command: Command | undefined
  /** The endpoint that a generic call names. */
  endpoint?: Endpoint
  transaction: string | number | null
  /** Latest time at which the command may start, in `clock.elapsed()` milliseconds. */
  deadline: number
  /** Latest time at which a write may be sent, in `clock.elapsed()` milliseconds; `Infinity` without an expiry time. */
  expiresAt: number
  /** Whether the answer comes from memory. */
  replayed: boolean
  /** Whether a request to change something was sent to the hub. */
  asked: boolean
}

/** A write or generic call that runs on a hub, as reported to other parts. */
export interface CommandRun {
  readonly hub: string
  /** `null` for a command to the whole hub. */
  readonly app: string | null
  /** The app that the command concerns, even if the command is addressed to the hub. */
  readonly about: string | null
  readonly command: HubCommand
  readonly by: string | null
  /** The name of the setting that the command changes; `null` for other commands. */
  readonly setting: string | null
  readonly phase: 'begun' | 'ended'
  /** Whether the command has ended successfully. */
  readonly ok: boolean
}

/** The outcome of an answered command, for statistics. */
export interface CommandEnd {
  /** The command's name; `unknown` if there is no such command, which limits the number of metric labels. */
  readonly command: string
  readonly outcome: 'ok' | ErrorCode
  /** Milliseconds from the command's arrival to its answer. */
  readonly ms: number
  /** The command's result topic, even if the answer was sent to another topic. */
  readonly result: string
  /** Renders the answer without `data`, which may be meant only for the requester. */
  readonly summary: () => string
}

/** A write that was refused or that failed. */
export type FailedWrite = Omit<CommandFailedPayload, 'event_type' | 'at'> & { readonly hub: string }

/** A configured hub, as the dispatcher uses it. */
export interface DispatchHub {
  readonly hub: Hub
  /** Maximum number of concurrent commands. */
  readonly concurrency: number
}

export interface DispatcherOptions extends Pick<BridgeOptions, 'topics' | 'live' | 'clock'> {
  readonly hubs: ReadonlyMap<string, DispatchHub>
  readonly link: Pick<MqttLink, 'isCurrent' | 'send' | 'hold'> & { status(): Pick<LinkStatus, 'protocol'> }
  readonly control: BridgeControl
  readonly fleet?: Pick<FleetSide, 'isLeader' | 'whyNotServed'> | undefined
  readonly evidence: Pick<Evidence, 'report' | 'history'>
  readonly largeReads: Limiter
  readonly log: Logger
  /** Logs regardless of the log level. */
  readonly audit: Logger
}

/** Functions of other parts that execute commands or are notified of them. */
export interface CommandHandlers {
  /** A write or generic call begins or ends on a hub. */
  readonly onRun?: (run: CommandRun) => void
  readonly guard?: (hub: string, app: string, control: GuardControl) => void
  /** Restores what other clients have changed on the broker. */
  readonly repair?: () => void
  /** If many writes are refused within a minute, not called for each of them. */
  readonly onFailedWrite?: (failed: FailedWrite) => void
  readonly onAnswer?: ((end: CommandEnd) => void) | undefined
}
