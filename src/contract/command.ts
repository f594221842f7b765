/** What a command is, a row of the table in `commands.ts`, and what it works with. */
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
  /** Begins a rollout. Resolves when the broker has its record. @throws CommandError */
  rollOut(transaction: string, order: RolloutOrder): Promise<Json>
  /** Ends a rollout after the steps that are under way. @throws CommandError */
  cancelRollout(transaction: string): Promise<Json>
}

/** What a command may do to the bridge itself. */
export interface BridgeControl {
  /** With a time, the level before follows after it. */
  setLogLevel(level: LogLevel, forMs?: number): void
  readonly rollouts: RolloutControl
}

/**
 * What commands do, for their rights: a configuration that denies a command denies what it does, by whichever command. A
 * command that is not in this list does what its name says, and no other command does the same.
 */
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

/** What a command on a hub works with. */
export interface Target {
  readonly hub: Hub
  /** The app's id; empty for a command that is for the whole hub. */
  readonly app: string
  /** The decoded argument of the topic; empty if the row has none. */
  readonly argument: string
  /**
   * Runs an operation of the hub, and again if the hub puts it off (429), as long as the command may begin. As
   * each request leaves it is asked again whether the command is permitted.
   */
  readonly call: Hub['call']
  /** The same for what is named by its path. */
  readonly callEndpoint: (endpoint: Endpoint) => Promise<Json>
  /** The same for a read that is more than one operation. */
  readonly again: <T>(read: () => Promise<T>) => Promise<T>
  /** Sends a command of its own to an app of the hub, as any other client would. */
  readonly send: (app: string, command: string) => Promise<Outcome>
  /** The evidence of the app's latest crash as a text; `null`: there is none. */
  readonly report: () => string | null
  /** What the app has used in the last hours. */
  readonly history: (hours: number) => UsageHistory
  /** Passes a command for the guardian on. */
  readonly guard: (control: GuardControl) => void
  /** Puts right what others have changed on the broker. */
  readonly repair: () => void
  readonly clock: Clock
  /** Aborted when the bridge ends. */
  readonly signal: AbortSignal
}

interface Common<T> {
  readonly name: string
  readonly payload: PayloadKind<T>
  /** Whether the topic ends in one more level, the name of a setting. */
  readonly argument?: 'setting'
  /** For people: one sentence. */
  readonly doc: string
}

export interface HubCommand<T = unknown> extends Common<T> {
  readonly target: 'app' | 'hub'
  /** `null`: its input says which, or it is unknown. */
  readonly operation: OperationName | null
  /** Changes something on the hub: never repeated, audited, refused if only reading is allowed. By its operation. */
  readonly write: boolean
  /** Whether it may be used unless configuration says otherwise (default true). */
  readonly allowed?: false
  /** What no command may do if this one is denied. */
  readonly capabilities?: readonly Capability[]
  /** What it does, if not its `capabilities`; without an input, what it does with any. */
  readonly capabilitiesOf?: (input: T | undefined) => readonly Capability[]
  /** It waits for no turn: it sends other commands, which do. One at a time on a hub. */
  readonly fansOut?: true
  /** The part of the bridge that the command requires. */
  readonly needs?: 'guard'
  /** The app that it is about, of a command that is for the whole hub. */
  readonly about?: (input: T) => string | null
  /** What an input names by its path: that decides about operation, write, app and rights. */
  readonly reaches?: (input: T) => Endpoint
  readonly run: (target: Target, input: T) => Promise<unknown>
}

interface BridgeCommand<T = unknown> extends Common<T> {
  readonly target: 'bridge'
  /** Whether it is logged, as every write is. */
  readonly audited?: true
  /** Changes something on hubs: refused if only reading is allowed. */
  readonly write?: true
  /** Whether it may be used unless configuration says otherwise (default true). */
  readonly allowed?: false
  /** The app's command that it sends: denying that one denies this one. */
  readonly sends?: (input: T) => RolloutCommand
  /** Harmless a second time: a repetition is executed, not answered from memory. */
  readonly repeatable?: true
  /** Returns the data of the answer; nothing: `null`. @throws CommandError */
  // biome-ignore lint/suspicious/noConfusingVoidType: an act that ends at once returns nothing.
  readonly act: (bridge: BridgeControl, input: T, transaction: string | number | null) => Promise<Json> | void
}

export type Command<T = unknown> = HubCommand<T> | BridgeCommand<T>

/** A row with its literals kept for the types that follow from the table. The type of its input stays inside of it. */
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
