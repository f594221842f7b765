/** The guardian as the bridge knows it: what it publishes about apps, what it is notified of, and what it may do on a hub. */
import type { Outcome } from '../contract/answer.ts'
import type { GuardEventPayload, HubEventPayload } from '../contract/events.ts'
import type { GoneApp, GuardControl } from '../contract/guard.ts'
import type { GuardFacts } from '../contract/publications.ts'
import type { App, Change } from '../hub/app.ts'
import { asHubError, HubError } from '../hub/errors.ts'
import { isNewer } from '../hub/greeting.ts'
import type { Hub } from '../hub/hub.ts'
import type { HubState } from './hub-state.ts'
import type { CommandRun, OwnCommand } from './requests.ts'

export interface Guardian {
  /** What is published of an app; `null` once the guardian is turned off, `undefined` while nothing is known. */
  factsOf(hub: string, app: string): GuardFacts | null | undefined
  /** Apps that need attention; `undefined` while the guardian is off. */
  attentionOf(hub: string): readonly string[] | undefined
  /** Apps of a hub that are gone and remembered; as with `factsOf`. */
  goneAppsOf(hub: string): readonly GoneApp[] | null | undefined
  /** Takes in what the broker holds of the guardian's topics, before `begin`. `app`: empty for a topic of the hub. */
  learn(name: string, hub: string, app: string, text: string): void
  /** This bridge is the one that acts from now on. `anew`: what the broker holds is newer than what is known here. */
  begin(anew: boolean): void
  /** Begins nothing more, as another bridge acts, or none. What becomes of commands under way is still written down. */
  standBy(): void
  reconfigured(): void
  hubAdded(name: string, port: GuardedHub): void
  hubChanged(name: string, online: boolean): void
  hubRemoved(name: string): void
  /** The hub says when it has started, in epoch milliseconds. */
  booted(name: string, at: number): void
  /** How many devices of an app are unavailable; `null`: not known. */
  linked(
    name: string,
    app: string,
    links: { readonly devices: number | null; readonly devices_unavailable: number | null } | null,
  ): void
  /**
   * Apps have changed; `read`: the whole list has just been read. `silent`: nothing happened to them, but the
   * configuration or the hub is another one. What was known of apps that are gone thereby is forgotten.
   */
  appsChanged(name: string, changes: readonly Change[], read: boolean, silent: boolean): void
  /** A command to an app begins or ends. */
  ran(run: CommandRun): void
  /** What a command wants of it. */
  control(hub: string, app: string, control: GuardControl): void
}

/** A command of the guardian's own. `isCurrent` is asked when its turn comes: whether it is still wanted. */
export type GuardOrder = Omit<OwnCommand, 'hub'> & { readonly isCurrent: () => boolean }

/** A hub as the guardian sees it: what it reads, requests and publishes there. */
export interface GuardedHub {
  /** The apps as far as they are known. */
  readonly apps: () => Iterable<App>
  /** Whether configuration shows an app. */
  readonly shows: (app: string) => boolean
  /** Whether the hub installs a version that is named, as far as is known. */
  readonly takesVersion: () => boolean
  /**
   * Reads an app anew; what that changes is known before the answer. Returns whether it could be read, which it cannot
   * if the hub no longer has it.
   */
  readonly read: (app: string) => Promise<boolean>
  /**
   * Asks an app's own web API with GET. Returns the HTTP status; `null` if the app does not answer, and `undefined` if
   * that says nothing of the app.
   */
  readonly ask: (app: string, path: string) => Promise<number | null | undefined>
  /** The memory of an app since a time in `clock.elapsed()` milliseconds, oldest first: the most of each minute. */
  readonly memory: (app: string, since: number) => readonly (readonly [at: number, bytes: number])[]
  /** Makes a backup. Returns why there is none. */
  readonly backup: () => Promise<string | undefined>
  /** Carries out a command like one that came by MQTT. */
  readonly send: (order: GuardOrder) => Promise<Outcome>
  readonly onEvent: (event: GuardEventPayload | HubEventPayload) => void
  /** What is published of an app has changed. */
  readonly onFacts: (app: string) => void
  /** Which apps need attention, or are remembered, has changed. */
  readonly onAttention: () => void
}

export function guardedHub(
  hub: Hub,
  state: Pick<HubState, 'sendEvent' | 'appChanged' | 'changed'>,
  { send, memory }: Pick<GuardedHub, 'send' | 'memory'>,
): GuardedHub {
  return {
    apps: () => hub.apps.all.values(),
    shows: (app) => hub.apps.shows(app),
    takesVersion: () => isNewer(hub.status),
    async read(app) {
      try {
        await hub.apps.readApp(app)
        return true
      } catch (error) {
        asHubError(error)
        return false
      }
    },
    async ask(app, path) {
      try {
        return await hub.askApp(app, path)
      } catch (error) {
        // Without an answer in time the app hangs; anything else is about the hub.
        return asHubError(error).code === 'no_answer' ? null : undefined
      }
    },
    async backup() {
      try {
        await hub.call('createBackup', {})
        return undefined
      } catch (error) {
        return error instanceof HubError ? error.message : 'the bridge made a mistake.'
      }
    },
    send,
    memory,
    onEvent: (event) => state.sendEvent(event),
    onFacts: (app) => state.appChanged(app),
    onAttention: () => state.changed(),
  }
}
