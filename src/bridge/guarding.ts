/**
 * The interface between bridge and guardian: the facts to publish, the guardian's input, and its actions on a hub.
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

/** The number of devices of an app, as far as known. */
export type Links = Pick<AppLinks, 'devices' | 'devices_unavailable'>

export interface Guardian {
  /** Returns the facts to publish about an app; `null` if the guardian is off, `undefined` if not known yet. */
  factsOf(hub: string, app: string): GuardFacts | null | undefined
  /** Returns the apps that need attention; `undefined` if the guardian is off. */
  attentionOf(hub: string): readonly string[] | undefined
  /** Returns the remembered apps that were removed from the hub; `null` and `undefined` as in `factsOf`. */
  goneAppsOf(hub: string): readonly GoneApp[] | null | undefined
  /** Reads a retained message on the guardian's topics, before `begin`. `app` is empty for a topic of the hub. */
  learn(name: string, hub: string, app: string, text: string): void
  /** This bridge has become active. `anew`: the broker's data is newer than that of this process. */
  begin(anew: boolean): void
  /** This bridge is no longer active: sends no more commands, but still records the outcome of running ones. */
  standBy(): void
  reconfigured(): void
  hubAdded(name: string, port: GuardedHub): void
  hubChanged(name: string, online: boolean): void
  hubRemoved(name: string): void
  /** The broker's data belongs to another hub, which had this name before. */
  hubReplaced(name: string): void
  /** The hub's start time is known, in epoch milliseconds. */
  booted(name: string, at: number): void
  /** The numbers of an app's devices and unavailable devices were read; `null`: they are no longer known. */
  linked(name: string, app: string, links: Links | null): void
  /**
   * Apps have changed. `read`: the whole list has just been read. `silent`: the apps only became known, or only the
   * configuration or the hub has changed; apps that disappear because of that are forgotten.
   */
  appsChanged(name: string, changes: readonly Change[], read: boolean, silent: boolean): void
  /** A command to an app begins or ends. */
  ran(run: CommandRun): void
  control(hub: string, app: string, control: GuardControl): void
}

/** A command of the guardian. `isCurrent` returns whether it is still wanted; it is called before the command runs. */
export type GuardOrder = Omit<OwnCommand, 'hub'> & { readonly isCurrent: () => boolean }

/** A hub's data and functions that the guardian uses. */
export type GuardedHub = ReturnType<typeof guardedHub>

/** Functions that the guardian needs in addition to the hub and its state. */
interface Surroundings {
  readonly policy: () => CommandPolicy
  /** Runs a command as if it had arrived over MQTT. */
  readonly send: (order: GuardOrder) => Promise<Outcome>
  /** Returns the highest memory usage of an app in each minute since a `clock.elapsed()` time, oldest first. */
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
    /** Returns whether the configuration's filter includes an app. */
    shows: (app: string) => hub.apps.shows(app),
    /** Returns whether the hub is known to install a given version of an app. */
    takesVersion: () => isNewer(hub.status),
    /**
     * Reads an app again, and applies changes before it resolves. Returns whether this succeeded; it fails, for
     * example, if the hub no longer has the app.
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
     * `undefined` if the request failed for another reason.
     */
    async ask(app: string, path: string): Promise<number | null | undefined> {
      try {
        return await hub.askApp(app, path)
      } catch (error) {
        // The app does not respond if the hub does not answer in time; other errors do not concern the app.
        return asHubError(error).code === 'no_answer' ? null : undefined
      }
    },
    /** Makes a backup. Returns the reason if that fails. */
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
    /** The list of apps that need attention, or that of remembered apps, has changed. */
    onAttention: () => state.changed(),
  }
}
