/** The interface between the bridge and the guardian. */
import type { Outcome } from '../contract/answer.ts'
import type { GuardEventPayload, HubEventPayload } from '../contract/events.ts'
import type { GoneApp, GuardControl } from '../contract/guard.ts'
import { type CommandPolicy, lackOf, refusalsOf } from '../contract/permissions.ts'
import type { GuardFacts } from '../contract/publications.ts'
import type { AppLinks } from '../contract/schemas.ts'
import type { App, Change } from '../hub/app.ts'
import { asHubError, HubError } from '../hub/errors.ts'
import { isNewer } from '../hub/greeting.ts'
import type { Hub } from '../hub/hub.ts'
import type { HubState } from './hub-state.ts'
import type { CommandRun, OwnCommand } from './requests.ts'

/** The number of an app's devices, and the number of unavailable devices. */
export type Links = Pick<AppLinks, 'devices' | 'devices_unavailable'>

export interface Guardian {
  /** `null` if the guardian is off, `undefined` if its facts are not available yet. */
  factsOf(hub: string, app: string): GuardFacts | null | undefined
  /** `undefined` if the guardian is off. */
  attentionOf(hub: string): readonly string[] | undefined
  /** `null` if the guardian is off, `undefined` if its list is not available yet. */
  goneAppsOf(hub: string): readonly GoneApp[] | null | undefined
  /** Called before `activate`. `app` is empty for a topic of the hub. */
  learn(name: string, hub: string, app: string, text: string): void
  /** @param restore whether the broker's data is newer than the data of this process */
  activate(restore: boolean): void
  /** Called when this bridge is no longer active. The outcomes of running commands are still recorded. */
  standBy(): void
  reconfigured(): void
  hubAdded(name: string, port: GuardedHub): void
  hubRemoved(name: string): void
  /** Like `hubRemoved`, but keeps the hub's data, because this member of a fleet may serve the hub again. */
  hubReleased(name: string): void
  /** Called if the broker's data belongs to a different hub that had this name before. */
  hubReplaced(name: string): void
  take(hub: string, input: GuardInput): void
}

/** What the bridge reports about a hub, by kind. */
export interface GuardInputs {
  readonly online: { readonly online: boolean }
  /** `at` is the hub's start time, in epoch milliseconds. */
  readonly booted: { readonly at: number }
  /** Device counts by app; `null` if an app's counts are no longer available. */
  readonly links: { readonly links: ReadonlyMap<string, Links | null> }
  /**
   * `read`: whether the whole list has just been read. `silent`: whether the apps have only just become known, or only
   * the configuration or the hub has changed. Apps that disappear silently are forgotten.
   */
  readonly apps: { readonly changes: readonly Change[]; readonly read: boolean; readonly silent: boolean }
  readonly command: { readonly run: GuardRun }
  readonly control: { readonly app: string; readonly control: GuardControl }
}
export type GuardRun = Omit<CommandRun, 'app'>

export type GuardInput = InputOf<GuardInputs>
export type InputOf<T, K extends keyof T = keyof T> = { readonly [P in K]: { readonly kind: P } & T[P] }[K]

/** `isCurrent` is called before the command runs, and returns whether the command is still necessary. */
export type GuardOrder = Omit<OwnCommand, 'hub'> & { readonly isCurrent: () => boolean }

export type GuardedHub = ReturnType<typeof guardedHub>

interface GuardedHubPorts {
  readonly policy: () => CommandPolicy
  /** Runs a command as if it had arrived over MQTT. */
  readonly send: (order: GuardOrder) => Promise<Outcome>
  /** Returns the highest memory usage in each minute since a `clock.elapsed()` time, oldest first. */
  readonly memory: (app: string, since: number) => readonly (readonly [at: number, bytes: number])[]
}

export function guardedHub(
  hub: Hub,
  state: Pick<HubState, 'sendEvent' | 'appChanged' | 'changed'>,
  { policy, send, memory }: GuardedHubPorts,
) {
  return {
    send,
    memory,
    apps: (): Iterable<App> => hub.apps.all.values(),
    shows: (app: string) => hub.apps.shows(app),
    /** Returns whether the hub is known to be able to install a given version of an app. */
    acceptsVersion: () => isNewer(hub.status),
    /** Reads an app and applies its changes. Returns `false` on failure, for example if the app was uninstalled. */
    async read(app: string): Promise<boolean> {
      try {
        await hub.apps.readApp(app)
        return true
      } catch (error) {
        asHubError(error)
        return false
      }
    },
    /** Returns the HTTP status, `null` if the app does not respond, or `undefined` after any other failure. */
    async requestApp(app: string, path: string): Promise<number | null | undefined> {
      try {
        return await hub.client.requestApp(app, path)
      } catch (error) {
        // If the hub does not answer in time, the app has not responded. Other errors do not concern the app.
        return asHubError(error).code === 'no_answer' ? null : undefined
      }
    },
    /** Creates a backup. Returns the reason if the backup fails. */
    async backup(): Promise<string | undefined> {
      // A backup is useless if the update will be refused.
      const refused = refusalsOf(hub, policy())['install']
      if (refused !== undefined) return refused
      if (hub.permits('createBackup') === 'forbidden') return lackOf({ operation: 'createBackup' })
      try {
        await hub.call('createBackup', {})
        return undefined
      } catch (error) {
        return error instanceof HubError ? error.message : 'a bug in the bridge.'
      }
    },
    onEvent: (event: GuardEventPayload | HubEventPayload) => state.sendEvent(event),
    onFacts: (app: string) => state.appChanged(app),
    onAttention: () => state.changed(),
  }
}
