/** The types of commands (the rows of the table in `commands.ts`) and of their context. */
import type { Clock } from '../base/clock.ts'
import type { Json } from '../base/json.ts'
import type { Endpoint } from '../hub/endpoints.ts'
import type { Hub } from '../hub/hub.ts'
import { OPERATIONS, type OperationName } from '../hub/operations.ts'
import type { Outcome } from './answer.ts'
import type { UsageHistory } from './crash.ts'
import type { GuardControl } from './guard.ts'
import type { LogLevel } from './log-levels.ts'
import type { PayloadKind } from './payload.ts'
import type { RolloutCommand, RolloutOrder } from './rollout.ts'

export interface RolloutControl {
  /** Starts a rollout. Resolves when the broker has the rollout's record. @throws CommandError */
  rollOut(transaction: string, order: RolloutOrder): Promise<Json>
  /** Ends a rollout after the steps in progress. @throws CommandError */
  cancelRollout(transaction: string): Promise<Json>
}

export interface BridgeControl {
  /** @param forMs after this time, the previous level is restored */
  setLogLevel(level: LogLevel, forMs?: number): void
  readonly rollouts: RolloutControl
}

/** An effect that several commands may have. Denying a command also denies its effects through other commands. */
export type Capability =
  | 'enable'
  | 'disable'
  | 'autoupdate'
  | 'channel'
  | 'update-app'
  | 'add-app'
  | 'read-app'
  | 'list-apps'
  | 'read-settings'

/** The context of a command on a hub. */
export interface Target {
  readonly hub: Hub
  /** The app's id; empty for a command to the whole hub. */
  readonly app: string
  /** The decoded argument from the topic; empty if the command has no argument. */
  readonly argument: string
  /** Repeats a rate-limited request (429) until the command expires. Checks the permission before each request. */
  readonly call: Hub['call']
  /** Like `call`, for an endpoint specified by its path. */
  readonly callEndpoint: (endpoint: Endpoint) => Promise<Json>
  /** Like `call`, for a read that consists of several operations. */
  readonly again: <T>(read: () => Promise<T>) => Promise<T>
  /** Sends another command to an app of the hub in the same way as a client's command. */
  readonly send: (app: string, command: string) => Promise<Outcome>
  /** The report of the app's latest crash, in Markdown; `null` if there is none. */
  readonly report: () => string | null
  readonly history: (hours: number) => Promise<UsageHistory>
  readonly guard: (control: GuardControl) => void
  /** Restores topics that other clients have changed on the broker. */
  readonly repair: () => void
  readonly clock: Clock
  /** Aborted when the bridge stops. */
  readonly signal: AbortSignal
}

interface Common<T> {
  readonly name: string
  readonly payload: PayloadKind<T>
  /** Set if the topic has one more level, which is the name of a setting. */
  readonly argument?: 'setting'
  readonly doc: string
}

export interface HubCommand<T = unknown> extends Common<T> {
  readonly target: 'app' | 'hub'
  /** `null` if the input determines the operation, or if the operation is unknown. */
  readonly operation: OperationName | null
  /**
   * Whether the command changes something on the hub. Such commands are audited, retried only after a 429, and refused
   * by `read_only`.
   */
  readonly write: boolean
  /** Set if the command is not permitted by default. */
  readonly allowed?: false
  /** The effects that other commands must not have if this command is denied. */
  readonly capabilities?: readonly Capability[]
  /** Returns the effects of an input, if they depend on the input; without an input, the effects of every input. */
  readonly capabilitiesOf?: (input: T | undefined) => readonly Capability[]
  /**
   * Set for a command that does not queue, unlike the commands that it sends. A hub runs one such command at a time.
   */
  readonly fansOut?: true
  readonly needs?: 'guard'
  /** Returns whether the command works for this input without the feature in `needs`. */
  readonly worksWithout?: (input: T) => boolean
  /** For a command to the whole hub, returns the app that the input concerns. */
  readonly about?: (input: T) => string | null
  /** Returns the endpoint that the input names. The endpoint determines operation, write, app and permission. */
  readonly reaches?: (input: T) => Endpoint
  readonly run: (target: Target, input: T) => Promise<unknown>
}

interface BridgeCommand<T = unknown> extends Common<T> {
  readonly target: 'bridge'
  /** Set if the command is logged, as writes to hubs are. */
  readonly audited?: true
  /** Whether the command changes something on hubs. If so, the command is refused by `read_only`. */
  readonly write?: true
  readonly allowed?: false
  /** Returns the app command that this command sends. Denying the app command also denies this command. */
  readonly sends?: (input: T) => RolloutCommand
  /** Set if the payload must have a transaction. */
  readonly needsTransaction?: true
  /** Set if a repeated transaction is executed again, not answered from memory, because repeating it is harmless. */
  readonly repeatable?: true
  /** Returns the data of the answer; `undefined` becomes `null`. @throws CommandError */
  // biome-ignore lint/suspicious/noConfusingVoidType: a synchronous command returns nothing.
  readonly act: (bridge: BridgeControl, input: T, transaction: string | number | null) => Promise<Json> | void
}

export type Command<T = unknown> = HubCommand<T> | BridgeCommand<T>

/** A row that keeps its literal types, except the type of its input. */
type Row<K extends Command['target'], N extends string> = (K extends 'bridge' ? BridgeCommand : HubCommand) & {
  readonly target: K
  readonly name: N
}

export function row<const K extends 'app' | 'hub', const N extends string, T>(
  target: K,
  name: N,
  rest: Omit<HubCommand<T>, 'target' | 'name' | 'write'>,
): Row<K, N>
export function row<const N extends string, T>(
  target: 'bridge',
  name: N,
  rest: Omit<BridgeCommand<T>, 'target' | 'name'>,
): Row<'bridge', N>
export function row(target: string, name: string, rest: Pick<Partial<HubCommand>, 'operation' | 'doc'>): unknown {
  const { operation } = rest
  if (operation === undefined) return { target, name, ...rest }
  return { target, name, ...rest, write: operation === null || OPERATIONS[operation].method !== 'GET' }
}
