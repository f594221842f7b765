/** The guardian's place in the bridge: what it hears of, and the way that its commands take. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Live } from '../config/options.ts'
import type { Outcome } from '../contract/answer.ts'
import type { CommandPolicy } from '../contract/permissions.ts'
import type { Topics } from '../contract/topics.ts'
import { Guard, type GuardOrder } from '../guard/guard.ts'
import { isGuarded } from '../guard/settings.ts'
import { BY } from '../guard/turn.ts'
import { asHubError, HubError } from '../hub/errors.ts'
import { isNewer } from '../hub/greeting.ts'
import type { Hub } from '../hub/hub.ts'
import type { LinkStatus } from '../mqtt/types.ts'
import { type Dispatcher, ownMessage } from './dispatcher.ts'
import type { HubState } from './hub-state.ts'

export interface GuardingOptions {
  readonly topics: Topics
  readonly live: Live
  readonly hubs: ReadonlyMap<string, { readonly hub: Hub }>
  /** What it finds out becomes part of. */
  readonly states: ReadonlyMap<string, HubState>
  readonly link: { status(): Pick<LinkStatus, 'protocol'> }
  readonly dispatcher: () => Pick<Dispatcher, 'receive'>
  readonly clock: Clock
  readonly log: Logger
}

export function createGuard({ topics, hubs, states, link, dispatcher, ...options }: GuardingOptions): Guard {
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

/** By the configuration, which is replaced as a whole; each command asks several times. */
const policies = new WeakMap<Live['value'], CommandPolicy>()

/** What configuration allows, the guardian's command included where it is on. */
export function policyOf({ value }: Live): CommandPolicy {
  const known = policies.get(value)
  if (known !== undefined) return known
  const policy = { ...value.commands, guarded: isGuarded(value) }
  policies.set(value, policy)
  return policy
}
