/** One decision about a hub: its context, its input, and what follows. */
import type { GuardedHub } from '../bridge/guarding.ts'
import type { CommandRun } from '../bridge/requests.ts'
import type { Outcome } from '../contract/answer.ts'
import type { GuardEventPayload, GuardEventType, HubEventPayload } from '../contract/events.ts'
import type { GoneApp, GuardControl, HistoryEntry, Reason } from '../contract/guard.ts'
import type { Change } from '../hub/app.ts'
import type { Decisions } from './decisions.ts'
import { GoneApps } from './gone.ts'
import type { SavedStates } from './saved-states.ts'
import type { GuardConfig, Patterns, WebProbe } from './settings.ts'
import type { WatchedApp } from './watched-app.ts'

/** The requester of the guardian's commands, for the log and for itself. */
export const BY = 'guard'

/** What every decision depends on. */
export interface Context {
  /** In `elapsed` milliseconds, as all times of the state: no clock that is set moves them. One look for one decision. */
  readonly now: number
  /** The same moment in epoch milliseconds. */
  readonly wall: number
  /** What is added to `elapsed` for the time that others read and write. */
  readonly offset: number
  readonly config: GuardConfig
  readonly patterns: Patterns
  readonly decisions: Decisions
  /** Whether this bridge is the one that acts. */
  readonly isActive: boolean
  /** The same, while the guardian is on. */
  readonly isActing: boolean
  /** Whether the broker is there. */
  readonly isConnected: () => boolean
  /** What earlier runs have left of all hubs. */
  readonly saved: SavedStates
  /** The end of the current quiet hours, which follow the system clock; computed once, if asked. */
  readonly quietUntil: () => number | undefined
  /** Whether the window of updates is open, and no hub has one under way; asked only for an update that is due. */
  readonly mayUpdate: () => boolean
}

/** When a hub has started: in `elapsed` milliseconds, and in epoch milliseconds as it says itself. */
export interface Boot {
  readonly at: number
  readonly said: number
}

/** Crashes of apps of a hub that follow each other closely: several mean that the hub or the internet is the cause. */
export interface Storm {
  readonly isOn: boolean
  /** By app: when it crashed last, and how often. */
  readonly crashes: ReadonlyMap<string, { readonly at: number; readonly times: number }>
}

export const CALM: Storm = { isOn: false, crashes: new Map() }

/** When a storm is over if no further app crashes; `undefined`: there is none. */
export function stormUntil({ isOn, crashes }: Storm, within: number): number | undefined {
  return isOn ? Math.max(...[...crashes.values()].map(({ at }) => at)) + within : undefined
}

/** Changed in place, as its apps are: a copy of a thousand for each event would cost more than the event. */
export class WatchedHub {
  readonly name: string
  readonly port: GuardedHub
  readonly apps = new Map<string, WatchedApp>()
  readonly gone: GoneApps
  /** What the broker is to hold of those; `undefined`: what it holds is not known yet. */
  goneApps: readonly GoneApp[] | undefined
  /** Whether its list has been read. */
  isRead = false
  online = false
  wasOnline = false
  backAt: number | null = null
  /** When the hub itself has started. */
  boot: Boot | undefined
  storm: Storm = CALM
  /** Times of the guardian's restarts within the window, and until when the log does not say again that apps wait. */
  restarts: readonly number[] = []
  saidUntil = Number.NEGATIVE_INFINITY
  /** The guardian does one thing at a time on a hub: a restart or an update. */
  restarting: WatchedApp | null = null
  update: Update | null = null
  /** Whether it has installed another version than the one that was named. */
  ignoresVersion = false
  /** Ids of apps. */
  attention: readonly string[] = []
  /** Until when everything that was due has been followed. */
  checkedAt = Number.NEGATIVE_INFINITY
  /** When something is due without anything happening. */
  wakeAt = Number.POSITIVE_INFINITY
  /** The timer for that. */
  alarm: { readonly at: number; readonly cancel: () => void } | undefined

  constructor(name: string, port: GuardedHub) {
    this.name = name
    this.port = port
    this.gone = new GoneApps(port.shows)
  }
}

/** An update under way. */
export interface Update {
  readonly watched: WatchedApp
  readonly from: string | null
  readonly to: string | null
  /** The version that the hub is asked to install; `null`: the newest, which may be newer than the one held. */
  readonly named: string | null
  /** Until when the hub may report another version; `null`: its install has no answer yet. */
  deadline: number | null
  /** Why there will be none, if the hub has said so. */
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

/** A command of any requester that begins or ends on a hub. */
export type GuardRun = Omit<CommandRun, 'app' | 'ok'>

/** What happens, by kind. */
interface Inputs {
  /** Apps have changed; `read`: the whole list has just been read; `silent`: nothing happened to the apps. */
  readonly apps: { readonly changes: readonly Change[]; readonly read: boolean; readonly silent: boolean }
  /** This bridge acts from now on. `anew`: what the broker holds is newer than what is known here. */
  readonly begin: { readonly anew: boolean }
  /** Configuration is another one; `wasOn` and `isOn`: whether it asked and asks for the guardian. */
  readonly configured: { readonly wasOn: boolean; readonly isOn: boolean }
  readonly online: { readonly online: boolean }
  /** The hub has said when it has started, in epoch milliseconds. */
  readonly booted: { readonly at: number }
  /** How many devices of an app there are, and are unavailable; `null`: not known. */
  readonly links: { readonly watched: WatchedApp; readonly links: Links | null }
  /** An app has crashed while the guardian is off. */
  readonly crashed: { readonly app: string }
  readonly command: { readonly watched: WatchedApp; readonly run: GuardRun }
  readonly control: { readonly watched: WatchedApp; readonly control: GuardControl }
  /** Restarts are due at a time that configuration names. */
  readonly schedule: { readonly fits: (app: string) => boolean }
  /** Time has gone by. */
  readonly wake: object
  /** The ends of effects. */
  readonly read: { readonly watched: WatchedApp; readonly isRead: boolean }
  readonly asked: { readonly watched: WatchedApp; readonly isGood: boolean | undefined }
  readonly backup: { readonly update: Update; readonly failure: string | undefined }
  readonly outcome: { readonly order: Order; readonly outcome: Outcome }
}
/** The devices of an app, as far as they are known. */
export interface Links {
  readonly devices: number | null
  readonly devices_unavailable: number | null
}
export type InputOf<K extends keyof Inputs> = { readonly [P in K]: { readonly kind: P } & Inputs[P] }[K]
export type Input = InputOf<keyof Inputs>

export type Effect =
  /** To read an app anew: what is known of it may be an hour old. */
  | { readonly kind: 'read'; readonly watched: WatchedApp }
  /** To ask an app's own web API. */
  | { readonly kind: 'ask'; readonly watched: WatchedApp; readonly web: WebProbe }
  | { readonly kind: 'backup'; readonly update: Update }
  | { readonly kind: 'order'; readonly order: Order }
  | { readonly kind: 'log'; readonly level: 'info' | 'warn'; readonly details: object; readonly text: string }

/** What follows, in the order in which it is to be done. */
export interface Decision {
  readonly events: (GuardEventPayload | HubEventPayload)[]
  /** Apps whose published state has changed. */
  readonly facts: Set<string>
  /** Whether other apps of the hub need attention or are remembered. */
  attention: boolean
  readonly effects: Effect[]
}

export interface Turn extends Context, Decision {
  readonly hub: WatchedHub
  /** Whether what is due may have changed. */
  hasMoved: boolean
}

/** What else belongs to an event. */
export type Details = Partial<Pick<GuardEventPayload, 'message' | 'from' | 'to'>>

export function tell(turn: Turn, app: string, event_type: GuardEventType, reason: Reason, details: Details = {}): void {
  turn.events.push({ event_type, app, changed: [], at: new Date(turn.wall).toISOString(), reason, ...details })
}

/** An event names only versions that are known. */
export function versions(from: string | null, to: string | null): Details {
  return { ...(from !== null && { from }), ...(to !== null && { to }) }
}

/** Whether the guardian may begin something. */
export const mayAct = ({ isActing, isConnected }: Context) => isActing && isConnected()

export const isBusy = ({ restarting, update }: WatchedHub) => restarting !== null || update !== null
