/** One decision about a hub, with its context, its input and its results. */
import type { GuardedHub, GuardInputs, InputOf as InputIn } from '../bridge/guarding.ts'
import type { Outcome } from '../contract/answer.ts'
import type { GuardEventPayload, GuardEventType, HubEventPayload } from '../contract/events.ts'
import type { GoneApp, HistoryEntry, Reason } from '../contract/guard.ts'
import type { Decisions } from './decisions.ts'
import { newGoneApps } from './gone.ts'
import type { SavedStates } from './saved-states.ts'
import type { GuardConfig, Patterns, WebProbe } from './settings.ts'
import type { WatchedApp } from './watched-app.ts'

/** The name of the guardian as the requester of its commands, which also appears in the log. */
export const BY = 'guard'

export interface Context {
  /** The time of the decision in `elapsed` milliseconds, which do not depend on the system clock. */
  readonly now: number
  /** The same time in epoch milliseconds. */
  readonly wall: number
  /** The difference between epoch milliseconds and `elapsed` time. */
  readonly offset: number
  readonly config: GuardConfig
  readonly patterns: Patterns
  readonly decisions: Decisions
  readonly isActive: boolean
  /** Whether this bridge is active and the guardian is on. */
  readonly isActing: boolean
  readonly isConnected: () => boolean
  readonly saved: SavedStates
  /** The end of the current quiet hours; computed once, on demand. */
  readonly quietUntil: () => number | undefined
  /** Whether the update window is open and no hub is being updated; called only if an update is due. */
  readonly mayUpdate: () => boolean
}

/** When a hub started: `at` in `elapsed` milliseconds; `reportedAt` in epoch milliseconds, as the bridge reports it. */
export interface Boot {
  readonly at: number
  readonly reportedAt: number
}

/** Crashes of several apps of a hub in quick succession, probably caused by the hub or the internet connection. */
export interface Storm {
  readonly isOn: boolean
  /** The time of the latest counted crash and the number of counted crashes, by app. */
  readonly crashes: ReadonlyMap<string, { readonly at: number; readonly times: number }>
}

export const CALM: Storm = { isOn: false, crashes: new Map() }

/** Returns when a storm ends if no further crash is counted; `undefined` if there is no storm. */
export function stormUntil({ isOn, crashes }: Storm, within: number): number | undefined {
  return isOn ? Math.max(...[...crashes.values()].map(({ at }) => at)) + within : undefined
}

/** A hub and its apps are mutable, because copying a thousand apps for each event would take too long. */
export class WatchedHub {
  readonly name: string
  readonly port: GuardedHub
  readonly apps = new Map<string, WatchedApp>()
  readonly gone: ReturnType<typeof newGoneApps>
  /** The published list of apps that disappeared; `undefined` until the hub's list has been read. */
  goneApps: readonly GoneApp[] | undefined
  isRead = false
  online = false
  /** Whether the hub has ever been offline, including at the start of the bridge. */
  wasAway = false
  backAt: number | null = null
  /** When the hub last went offline; `Infinity` if it has not. */
  offlineAt = Number.POSITIVE_INFINITY
  boot: Boot | undefined
  storm: Storm = CALM
  /** Times of the guardian's restarts in the window. Until `loggedUntil`, the warning is not logged again. */
  restarts: readonly number[] = []
  loggedUntil = Number.NEGATIVE_INFINITY
  /** The app that is being restarted; `null` if none. A hub has at most one restart or update at a time. */
  restarting: WatchedApp | null = null
  update: Update | null = null
  /** Whether the hub has installed a version other than the requested version. */
  ignoresVersion = false
  attention: readonly string[] = []
  /** The guardian has handled everything that was due by this time. */
  checkedAt = Number.NEGATIVE_INFINITY
  /** When an action is next due without further input. */
  wakeAt = Number.POSITIVE_INFINITY
  alarm: { readonly at: number; readonly cancel: () => void } | undefined

  constructor(name: string, port: GuardedHub) {
    this.name = name
    this.port = port
    this.gone = newGoneApps(port.shows)
  }
}

export interface Update {
  readonly watched: WatchedApp
  readonly from: string | null
  readonly to: string | null
  /** The version to install; `null` to install the newest version, which may be newer than `to`. */
  readonly named: string | null
  /** Until this time, no other app of the hub is restarted. */
  readonly aloneUntil: number
  /** Time limit for the hub to report the new version; `null` until the hub has answered the install. */
  deadline: number | null
  /** The hub's reason for a failure. */
  refusal: string | null
}

export type Order = { readonly watched: WatchedApp; readonly payload: object } & (
  | {
      readonly command: 'restart'
      readonly why: Reason
      readonly entry: HistoryEntry
      readonly event: 'restarted' | 'retried'
      readonly readAt: number
    }
  | { readonly command: 'install'; readonly update: Update }
  | { readonly command: 'update' }
)

interface Inputs extends GuardInputs {
  readonly activate: { readonly restore: boolean }
  /** `wasOn` and `isOn` show whether the guardian was on before the configuration changed, and is on now. */
  readonly configured: { readonly wasOn: boolean; readonly isOn: boolean }
  /** An app has crashed while the guardian is off. */
  readonly crashed: { readonly app: string }
  readonly schedule: { readonly fits: (app: string) => boolean }
  readonly wake: object
  /** The results of effects. */
  readonly read: { readonly watched: WatchedApp; readonly isRead: boolean }
  readonly requested: { readonly watched: WatchedApp; readonly isGood: boolean | undefined }
  readonly backup: { readonly update: Update; readonly failure: string | undefined }
  readonly outcome: { readonly order: Order; readonly outcome: Outcome }
}
export type InputOf<K extends keyof Inputs> = InputIn<Inputs, K>
export type Input = InputOf<keyof Inputs>

export type Effect =
  | { readonly kind: 'read'; readonly watched: WatchedApp }
  | { readonly kind: 'request'; readonly watched: WatchedApp; readonly web: WebProbe }
  | { readonly kind: 'backup'; readonly update: Update }
  | { readonly kind: 'order'; readonly order: Order }
  | { readonly kind: 'log'; readonly level: 'info' | 'warn'; readonly details: object; readonly text: string }

export interface Decision {
  readonly events: (GuardEventPayload | HubEventPayload)[]
  /** Apps whose published state has changed. */
  readonly facts: Set<string>
  /** Whether the list of apps that need attention, or the list of apps that disappeared, has changed. */
  attention: boolean
  readonly effects: Effect[]
}

export interface Turn extends Context, Decision {
  readonly hub: WatchedHub
  /** Whether due times may have changed. */
  hasMoved: boolean
}

export type Details = Partial<Pick<GuardEventPayload, 'message' | 'from' | 'to'>>

export function emit(turn: Turn, app: string, event_type: GuardEventType, reason: Reason, details: Details = {}): void {
  turn.events.push({ event_type, app, changed: [], at: new Date(turn.wall).toISOString(), reason, ...details })
}

export function versions(from: string | null, to: string | null): Details {
  return { ...(from !== null && { from }), ...(to !== null && { to }) }
}

export const mayAct = ({ isActing, isConnected }: Context) => isActing && isConnected()
