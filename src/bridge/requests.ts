import type { Logger } from 'pino'
import type { Limiter } from '../base/limiter.ts'
import type { Outcome } from '../contract/answer.ts'
import type { BridgeControl, Command, HubCommand, Target } from '../contract/command.ts'
import type { ErrorCode } from '../contract/errors.ts'
import type { CommandFailedPayload } from '../contract/events.ts'
import type { CommandTopic } from '../contract/topics.ts'
import type { Endpoint } from '../hub/endpoints.ts'
import type { Hub } from '../hub/hub.ts'
import type { MqttLink } from '../mqtt/link.ts'
import type { LinkStatus, Message } from '../mqtt/types.ts'
import type { BridgeOptions, FleetSide } from './bridge-options.ts'
import type { Evidence } from './evidence.ts'
import type { HubState } from './hub-state.ts'

export interface Requester {
  /** The name of the requester in the log. */
  readonly by: string
  /** Returns whether the command is still needed. Called before each step; default: `true`. */
  readonly isCurrent?: (() => boolean) | undefined
  /** Called once with the answer, which may contain secrets. */
  readonly reply: (answer: Reply) => void
}

export interface Reply {
  readonly outcome: Outcome
  /** The answer as the bridge would publish it over MQTT. */
  readonly payload: string
}

export interface OwnCommand extends Pick<Requester, 'by' | 'isCurrent'> {
  readonly hub: string
  readonly app: string
  readonly command: string
  readonly payload: object
}

export interface Request {
  readonly message: Message
  readonly requester: Requester | undefined
  readonly topic: CommandTopic
  /** `undefined` if no such command exists. The input of a generic call selects its operation. */
  command: Command | undefined
  endpoint?: Endpoint
  transaction: string | number | null
  /** The latest time to start the command, in `clock.elapsed()` milliseconds. */
  deadline: number
  /** The latest time to send a write, in `clock.elapsed()` milliseconds; Infinity without an expiry time. */
  expiresAt: number
  replayed: boolean
  /** Whether a request to change something was sent to the hub. */
  writeSent: boolean
}

export interface CommandRun {
  /** `null` for a command to the whole hub. */
  readonly app: string | null
  /** The app that the command concerns, even if the command is addressed to the hub. */
  readonly about: string | null
  readonly command: HubCommand
  readonly by: string | null
  /** The setting that the command changes, if any. */
  readonly setting: string | null
  /** Whether the command starts or restarts the app. */
  readonly starts: boolean
  readonly phase: 'begun' | 'ended'
  readonly ok: boolean
}

export interface CommandEnd {
  /** `unknown` if there is no such command, which limits the number of metric labels. */
  readonly command: string
  readonly outcome: 'ok' | ErrorCode
  /** Milliseconds from the arrival of the command to the answer. */
  readonly ms: number
  /** The command's result topic, even if the answer was sent to a different topic. */
  readonly result: string
  /** Renders the answer without `data`, which may be meant only for the requester. */
  readonly summary: () => string
}

export type FailedWrite = Omit<CommandFailedPayload, 'event_type' | 'at'>

export interface DispatchHub {
  readonly hub: Hub
  readonly concurrency: number
}

export interface DispatcherOptions extends Pick<BridgeOptions, 'topics' | 'live' | 'clock'> {
  readonly hubs: ReadonlyMap<string, DispatchHub>
  /** The states of the hubs, which receive the progress and the failures of commands. */
  readonly states: ReadonlyMap<string, Pick<HubState, 'onRun' | 'onFailedWrite' | 'control'>>
  readonly handlers: { readonly onAnswer?: (end: CommandEnd) => void }
  readonly repair: Target['repair']
  readonly link: Pick<MqttLink, 'isCurrent' | 'send' | 'hold'> & { status(): Pick<LinkStatus, 'protocol'> }
  readonly control: BridgeControl
  readonly fleet?: Pick<FleetSide, 'isLeader' | 'whyNotServed'> | undefined
  readonly evidence: Pick<Evidence, 'report' | 'history'>
  readonly largeReads: Limiter
  readonly log: Logger
  /** Logs regardless of the log level. */
  readonly audit: Logger
}
