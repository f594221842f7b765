/** What the guardian asks of hubs. */
import { Guard, type GuardOptions } from '../guard/guard.ts'
import { asHubError, HubError } from '../hub/errors.ts'
import { isNewer } from '../hub/greeting.ts'
import type { Hub } from '../hub/hub.ts'
import type { HubState } from './hub-state.ts'
import type { AnswerLink } from './requests.ts'

export function createGuard({
  hubs,
  states,
  link,
  ...options
}: Pick<GuardOptions, 'live' | 'order' | 'clock' | 'log'> & {
  readonly hubs: ReadonlyMap<string, { readonly hub: Hub }>
  /** What it finds out becomes part of. */
  readonly states: ReadonlyMap<string, HubState>
  readonly link: Pick<AnswerLink, 'status'>
}): Guard {
  const read = async (name: string, app: string) => {
    try {
      await hubs.get(name)?.hub.apps.readApp(app)
      return true
    } catch (error) {
      asHubError(error)
      return false
    }
  }
  const backup = async (name: string) => {
    try {
      await hubs.get(name)?.hub.call('createBackup', {})
    } catch (error) {
      if (error instanceof HubError) throw error
      throw new Error('the bridge made a mistake.', { cause: error })
    }
  }
  const ask = async (name: string, app: string, path: string) => {
    try {
      return await hubs.get(name)?.hub.askApp(app, path)
    } catch (error) {
      // Without an answer in time the app hangs; anything else is about the hub.
      return asHubError(error).code === 'no_answer' ? null : undefined
    }
  }
  const appsOf = (name: string) => hubs.get(name)?.hub.apps.all.values() ?? []
  const takesVersion = (name: string) => {
    const status = hubs.get(name)?.hub.status
    return status !== undefined && isNewer(status)
  }
  return new Guard({
    ...options,
    onEvent: (hub, event) => states.get(hub)?.onGuardEvent(event),
    onFacts: (hub, app) => states.get(hub)?.appChanged(app),
    onAttention: (hub) => states.get(hub)?.changed(),
    read,
    takesVersion,
    shows: (name, app) => hubs.get(name)?.hub.apps.shows(app) === true,
    backup,
    ask,
    appsOf,
    isConnected: () => link.status().protocol !== null,
  })
}
