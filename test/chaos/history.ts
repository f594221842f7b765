/** The history of an episode contains only what can be observed from outside the bridge. */
import type { Seen } from '../support/observer.ts'
import type { ProxiedLink } from '../support/tcp-proxy.ts'

/** Separates the parts of a token: a transaction that several commands share, and the number of the copy. */
export const COPY = '#'

/** A command that the client has sent. Each copy has its own entry. */
export interface Sent {
  /** The time at which the client sent the command, in epoch milliseconds. */
  readonly at: number
  readonly topic: string
  /** The correlation data, which the answer repeats. It may consist of a transaction, `COPY` and a number. */
  readonly token: string
  /** The request to the hub that the command causes; `null` if it cannot be distinguished from other requests. */
  readonly hubRequest: string | null
  readonly write: boolean
  /** `bad`: must be rejected; `retained`: must be rejected although its content is valid. */
  readonly kind: 'good' | 'bad' | 'retained'
  /** Epoch milliseconds after which the command must not reach the hub. */
  readonly expiresAt: number | null
  /** Whether no bridge was connected when the command was sent. */
  readonly offline: boolean
}

export interface HubRequest {
  readonly at: number
  /** A request in the notation of `Sent.hubRequest`; `null` if the request changes nothing. */
  readonly hubRequest: string | null
  readonly status: number | undefined
  readonly executed: boolean
}

export interface Denial {
  /** The time from which the bridge applied the denial, in epoch milliseconds. */
  readonly from: number
  to?: number
  /** Matches the requests of the denied commands, in the notation of `Sent.hubRequest`. */
  readonly hubRequest: RegExp
}

export interface Life {
  /** The time at which the process was started, in epoch milliseconds. */
  readonly startedAt: number
  readonly endedAt: number | undefined
  readonly lines: readonly string[]
  readonly errors: readonly string[]
  /** How the process ended, such as `code 0` or `signal SIGKILL`; `undefined` while the process is running. */
  readonly end: string | undefined
  /** The expected end; `undefined` if the process must still be running. */
  readonly expectedEnd: string | undefined
  /** The time from the signal to the end, in milliseconds. */
  readonly endedWithinMs: number | undefined
}

export interface AppName {
  readonly name: string
  readonly at: number
  /** Whether the hub sent no event, so that only its list shows the name. */
  readonly silent: boolean
}

export interface History {
  readonly sent: readonly Sent[]
  /** Commands of earlier episodes that may still reach the hub. Their results are not judged. */
  readonly earlier: readonly Sent[]
  /** The messages that a client with a direct connection to the broker received. */
  readonly seen: readonly Seen[]
  readonly hubRequests: readonly HubRequest[]
  readonly lives: readonly Life[]
  readonly links: readonly ProxiedLink[]
  readonly onlineAt: readonly number[]
  /** Secrets, which must not appear anywhere. */
  readonly canaries: readonly string[]
  /** App id → the names of the app, in the order in which they were set. */
  readonly names: ReadonlyMap<string, readonly AppName[]>
  /** The longest time for which the fault or a busy machine might have delayed a message, in milliseconds. */
  readonly stallMs: number
  /** The longest time for which the harness itself was suspended, in milliseconds; part of `stallMs`. */
  readonly lagMs: number
  /** Messages in `seen` that the harness itself published on topics of the bridge. */
  readonly planted: ReadonlySet<Seen>
  readonly denials: readonly Denial[]
  /** When the bridge's clock jumped ahead, and by how many milliseconds. */
  readonly jumps: readonly { readonly at: number; readonly by: number }[]
  /** Whether the bridge's wall clock was wrong for some time, so that expiries are not judged. */
  readonly wallClockStepped: boolean
  /** The reasons why events may have been lost without a bug in the bridge. */
  readonly excuses: ReadonlySet<string>
  readonly expectedErrors: readonly RegExp[]
  /** Whether the bridge had no reason to publish itself or its hub as offline. */
  readonly staysOnline: boolean
  /** Apps that were published again although the hub no longer had them. */
  readonly returned: readonly string[]
  /** Violations that were found while the episode was running. */
  readonly live: readonly Violation[]
  /** Whether the bridge could reach the hub during the whole episode. */
  readonly hubWasWell: boolean
}

/** Checkers that run during the episode, in `watch.ts` and in the faults. */
export type LiveChecker =
  | 'false ok'
  | 'wiped'
  | 'foreign touched'
  | 'key shown'
  | 'kept offline'
  | 'event lost'
  | 'not answered'
  | 'executed unasked'
  | 'not repaired'

export interface Violation {
  readonly checker: string
  readonly what: string
}
