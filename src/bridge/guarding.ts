/**
 * The interface between bridge and guardian: the facts to publish, the guardian's inputs, and its actions on a hub.
 */
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

/** The devices of an app, as far as they are known. */
export type Links = Pick<AppLinks, 'devices' | 'devices_unavailable'>

export interface Guardian {
  /** The published facts about an app; `null` once the guardian is turned off, `undefined` if not known yet. */
  factsOf(hub: string, app: string): GuardFacts | null | undefined
  /** Apps that need attention; `undefined` while the guardian is off. */
  attentionOf(hub: string): readonly string[] | undefined
  /** The hub's apps that are gone and remembered; `null` and `undefined` as for `factsOf`. */
  goneAppsOf(hub: string): readonly GoneApp[] | null | undefined
  /** Learns a retained message on the guardian's topics, before `begin`. `app` is empty for a topic of the hub. */
  learn(name: string, hub: string, app: string, text: string): void
  /** This bridge has become active. `anew`: the broker's data is newer than this process's. */
  begin(anew: boolean): void
  /** Starts nothing more: this bridge is no longer active. Still records the outcome of running commands. */
  standBy(): void
  reconfigured(): void
  hubAdded(name: string, port: GuardedHub): void
  hubChanged(name: string, online: boolean): void
  hubRemoved(name: string): void
  /** The broker's data is about another hub, which had this name before. */
  hubReplaced(name: string): void
  /** The hub's start time, in epoch milliseconds. */
  booted(name: string, at: number): void
  /** Number of an app's devices, and how many are unavailable; `null` if not known. */
  linked(name: string, app: string, links: Links | null): void
  /**
   * Apps have changed. `read`: the whole list has just been read. `silent`: nothing happened to the apps, but
   * the configuration or the hub has changed; apps that disappear because of that are forgotten.
   */
  appsChanged(name: string, changes: readonly Change[], read: boolean, silent: boolean): void
  /** A command to an app begins or ends. */
  ran(run: CommandRun): void
  control(hub: string, app: string, control: GuardControl): void
}

/** A command of the guardian. `isCurrent` says whether it is still wanted, and is called when its turn comes. */
export type GuardOrder = Omit<OwnCommand, 'hub'> & { readonly isCurrent: () => boolean }

/** A hub as the guardian uses it: what it reads, sends and publishes there. */
export type GuardedHub = ReturnType<typeof guardedHub>

/** What the guardian needs beyond the hub and its state. */
interface Surroundings {
  readonly policy: () => CommandPolicy
  /** Runs a command as if it had arrived over MQTT. */
  readonly send: (order: GuardOrder) => Promise<Outcome>
  /** The memory of an app since a time in `clock.elapsed()` milliseconds, oldest first: the maximum of each minute. */
  readonly memory: (app: string, since: number) => readonly (readonly [at: number, bytes: number])[]
}

export function guardedHub(
  hub: Hub,
  state: Pick<HubState, 'sendEvent' | 'appChanged' | 'changed'>,
  { policy, send, memory }: Surroundings,
) {
  return {
    send,
    memory,
    apps: (): Iterable<App> => hub.apps.all.values(),
    /** Whether the configuration shows an app. */
    shows: (app: string) => hub.apps.shows(app),
    /** Whether the hub can install a given version, as far as known. */
    takesVersion: () => isNewer(hub.status),
    /**
     * Reads an app again, and applies changes before it resolves. Returns whether it could be read; it cannot be if the
     * hub no longer has the app.
     */
    async read(app: string): Promise<boolean> {
      try {
        await hub.apps.readApp(app)
        return true
      } catch (error) {
        asHubError(error)
        return false
      }
    },
    /**
     * Sends a GET request to an app's own web API. Returns the HTTP status, `null` if the app does not respond, or
     * `undefined` if the failure is not the app's.
     */
    async ask(app: string, path: string): Promise<number | null | undefined> {
      try {
        return await hub.askApp(app, path)
      } catch (error) {
        // If there is no answer in time, the app hangs; any other error is about the hub.
        return asHubError(error).code === 'no_answer' ? null : undefined
      }
    },
    /** Makes a backup. Returns the reason if there is none. */
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
    /** The published facts about an app have changed. */
    onFacts: (app: string) => state.appChanged(app),
    /** The list of apps that need attention, or of remembered apps, has changed. */
    onAttention: () => state.changed(),
  }
}
