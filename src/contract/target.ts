/** What a command on a hub works with. */
import type { Clock } from '../base/clock.ts'
import type { Json } from '../base/json.ts'
import type { Endpoint } from '../hub/endpoints.ts'
import type { Hub } from '../hub/hub.ts'
import type { Outcome } from './answer.ts'
import type { GuardControl } from './guard.ts'

export interface Target {
  readonly hub: Hub
  /** The app's id; empty for a command that is for the whole hub. */
  readonly app: string
  /** The decoded argument of the topic; empty if the row has none. */
  readonly argument: string
  /**
   * Runs an operation of the hub, and again where the hub puts it off (429), as long as the command may begin. As
   * each request leaves it is asked again whether the command is permitted.
   */
  readonly call: Hub['call']
  /** The same for what is named by its path. */
  readonly callEndpoint: (endpoint: Endpoint) => Promise<Json>
  /** The same for a read that is more than one operation. */
  readonly again: <T>(read: () => Promise<T>) => Promise<T>
  /** Sends a command of its own to an app of the hub, as any other client would. */
  readonly send: (app: string, command: string) => Promise<Outcome>
  /** Passes a command for the guardian on. */
  readonly guard: (control: GuardControl) => void
  /** Puts right what others have changed on the broker. */
  readonly repair: () => void
  readonly clock: Clock
  /** Aborted when the bridge ends. */
  readonly signal: AbortSignal
}
