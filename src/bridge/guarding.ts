/** The guardian's place in the bridge: what it hears of, and the way that its commands take. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Live } from '../config/options.ts'
import type { Outcome } from '../contract/answer.ts'
import type { Topics } from '../contract/topics.ts'
import { BY, Guard, type GuardOptions, type GuardOrder } from '../guard/guard.ts'
import { asHubError, HubError } from '../hub/errors.ts'
import { isNewer } from '../hub/greeting.ts'
import type { Hub } from '../hub/hub.ts'
import type { LinkStatus } from '../mqtt/types.ts'
import type { Dispatcher } from './dispatcher.ts'
import { ownMessage } from './requests.ts'

export interface GuardingOptions extends Pick<GuardOptions, 'onEvent' | 'onFacts' | 'onAttention'> {
  readonly topics: Topics
  readonly live: Live
  readonly hubs: ReadonlyMap<string, { readonly hub: Hub }>
  readonly link: { status(): Pick<LinkStatus, 'protocol'> }
  readonly dispatcher: () => Pick<Dispatcher, 'receive'>
  readonly clock: Clock
  readonly log: Logger
}

export function createGuard({ topics, hubs, link, dispatcher, ...options }: GuardingOptions): Guard {
  const order = ({ hub, app, command, payload, isCurrent }: GuardOrder) =>
    new Promise<Outcome>((resolve) => {
      const message = ownMessage(topics.appCommand(hub, app, command), payload, options.clock.elapsed())
      dispatcher().receive(message, { by: BY, isCurrent, reply: ({ outcome }) => resolve(outcome) })
    })
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
    order,
    read,
    takesVersion,
    shows: (name, app) => hubs.get(name)?.hub.apps.shows(app) === true,
    backup,
    ask,
    appsOf,
    isConnected: () => link.status().protocol !== null,
  })
}
