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
  /** The name for the log. */
  readonly by: string
  /** Whether the command is still wanted: called when its turn comes and before each write. Default: always true. */
  readonly isCurrent?: (() => boolean) | undefined
  /** Called once with the answer; secrets are not removed from it. */
  readonly reply: (answer: Reply) => void
}

export interface Reply {
  readonly outcome: Outcome
  /** The payload that would be published. */
  readonly payload: string
}

/** A command of the bridge itself. */
export interface OwnCommand extends Pick<Requester, 'by' | 'isCurrent'> {
  readonly hub: string
  readonly app: string
  readonly command: string
  readonly payload: object
}

/** One message on a command topic, and the results of the steps so far. */
export interface Request {
  readonly message: Message
  readonly requester: Requester | undefined
  readonly topic: CommandTopic
  /** `undefined` if there is no such command. A generic call becomes the command that its input names. */
  command: Command | undefined
  /** The endpoint that a generic call names. */
  endpoint?: Endpoint
  transaction: string | number | null
  /** Time limit for starting the command, in `clock.elapsed()` milliseconds. */
  deadline: number
  /** Time limit for each of its writes, in `clock.elapsed()` milliseconds; `Infinity` if the requester sets none. */
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
  /** The name of the setting that it changes. */
  readonly setting: string | null
  readonly phase: 'begun' | 'ended'
  /** Whether it has ended successfully. */
  readonly ok: boolean
}

/** The outcome of an answered command, for statistics. */
export interface CommandEnd {
  /** Its name in the configuration, or `unknown`: made-up names would create an unlimited number of labels. */
  readonly command: string
  readonly outcome: 'ok' | ErrorCode
  /** Time from its arrival to its answer. */
  readonly ms: number
  /** The command's result topic, wherever the answer was sent. */
  readonly result: string
  /** The answer without its `data`, which may be meant for the requester only and is not kept. */
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
  /** Writes regardless of the log level. */
  readonly audit: Logger
}

/** Other parts that act on commands or are notified of them. */
export interface CommandHandlers {
  /** A write or generic call begins or ends on a hub. */
  readonly onRun?: (run: CommandRun) => void
  readonly guard?: (hub: string, app: string, control: GuardControl) => void
  /** Restores what other clients have changed on the broker. */
  readonly repair?: () => void
  /** Not called for every refusal in a flood. */
  readonly onFailedWrite?: (failed: FailedWrite) => void
  readonly onAnswer?: ((end: CommandEnd) => void) | undefined
}
