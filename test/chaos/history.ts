/** What happened, as seen from outside the bridge. The checkers know nothing else. */
import type { Seen } from '../support/observer.ts'
import type { ProxiedLink } from '../support/tcp-proxy.ts'

/** In a token, after a transaction that several commands share. */
export const COPY = '#'

/** A command as the client sent it; every copy of the same one is an entry of its own. */
export interface Sent {
  /** Epoch milliseconds, when the broker had it. */
  readonly at: number
  readonly topic: string
  /** Goes as correlation data, and comes back with the answer; perhaps a transaction, `COPY` and a number. */
  readonly token: string
  /** Which request at the hub it asks for; null: none that could be told from others. */
  readonly asks: string | null
  readonly write: boolean
  /** `bad`: it must be refused; `retained`: refused whatever it asks for. */
  readonly kind: 'good' | 'bad' | 'retained'
  /** Epoch milliseconds after which it must not reach the hub. */
  readonly expiresAt: number | null
  /** Whether the broker took it with nothing connected through the bridge's proxy. */
  readonly away: boolean
}

/** A request as the hub saw it. */
export interface Asked {
  readonly at: number
  /** In the words of `Sent.asks`; null for what changes nothing. */
  readonly asks: string | null
  readonly status: number | undefined
  readonly executed: boolean
}

/** Commands that configuration refused for a while. */
export interface Denial {
  /** Epoch milliseconds: when the bridge had taken it over. */
  readonly from: number
  /** When it was lifted. */
  to?: number
  /** In the words of `Sent.asks`. */
  readonly asks: RegExp
}

/** A process of the bridge, from its start to its end. */
export interface Life {
  /** Epoch milliseconds. */
  readonly startedAt: number
  readonly endedAt: number | undefined
  /** What it wrote, line by line, on both outputs. */
  readonly lines: readonly string[]
  readonly errors: readonly string[]
  /** How it ended, if it has: `code 0`, `signal SIGKILL`. */
  readonly end: string | undefined
  /** How it had to end; undefined: not at all. */
  readonly wantedEnd: string | undefined
  /** From the signal to the end, in milliseconds. */
  readonly endedWithinMs: number | undefined
}

export interface History {
  readonly sent: readonly Sent[]
  /** Commands of an earlier episode that may reach the hub in this one; what becomes of them is not judged. */
  readonly earlier: readonly Sent[]
  /** As a client sees it that is connected to the broker directly. */
  readonly seen: readonly Seen[]
  readonly asked: readonly Asked[]
  readonly lives: readonly Life[]
  /** The bridge's connections to the broker. */
  readonly links: readonly ProxiedLink[]
  /** When it said that it was online. */
  readonly onlineAt: readonly number[]
  /** The marks of what is secret, and must be nowhere. */
  readonly canaries: readonly string[]
  /** Apps' names over time: each is replaced by the next. */
  readonly names: ReadonlyMap<string, readonly { readonly name: string; readonly at: number }[]>
  /** How long the fault, or a busy machine, may have held up a command on its way, in milliseconds. */
  readonly stallMs: number
  /** Of that, the machine: how long it kept the harness from doing anything at a time. */
  readonly lagMs: number
  /** Messages among those seen that were the harness's own, on topics of the bridge. */
  readonly planted: ReadonlySet<Seen>
  readonly denials: readonly Denial[]
  /** When the bridge's time jumped ahead, and by how many milliseconds. */
  readonly jumps: readonly { readonly at: number; readonly by: number }[]
  /** Whether the bridge's wall clock was wrong for a while: then it cannot tell when a command expires. */
  readonly wallClockStepped: boolean
  /** Why events may have been lost by others than the bridge, if so. */
  readonly excuses: ReadonlySet<string>
  /** Error lines that the fault calls for. */
  readonly tells: readonly RegExp[]
  /** Whether the bridge had no reason at all to call itself or its hub offline. */
  readonly staysOnline: boolean
  /** Apps that came back though the hub did not have them any more. */
  readonly returned: readonly string[]
  /** What was wrong at the moment when it was seen. */
  readonly live: readonly Violation[]
  /** Whether only the broker's side was at fault, so that the bridge knew all along what the hub said. */
  readonly hubWasWell: boolean
}

/** In the place of one that nobody needs to look at any more. */
export const NO_HISTORY: History = {
  sent: [],
  earlier: [],
  seen: [],
  asked: [],
  lives: [],
  links: [],
  onlineAt: [],
  canaries: [],
  names: new Map(),
  planted: new Set(),
  denials: [],
  jumps: [],
  wallClockStepped: false,
  excuses: new Set(),
  tells: [],
  staysOnline: false,
  live: [],
  returned: [],
  stallMs: 0,
  lagMs: 0,
  hubWasWell: false,
}

/** Checkers that look on while it happens, in `watch.ts` and in the faults themselves. */
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

/** Something that must not be. */
export interface Violation {
  readonly checker: string
  readonly what: string
}
