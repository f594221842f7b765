/** Coordinates this bridge with other bridges on its broker: serves its share of a fleet's hubs, and runs rollouts. */
import type { Bridge } from '../bridge/bridge.ts'
import type { Hubs } from '../config/open-hubs.ts'
import type { HubConfig, Live } from '../config/options.ts'
import { policyOf, rolloutRefusal } from '../contract/permissions.ts'
import type { MqttLink } from '../mqtt/link.ts'
import type { Credentials, LinkOptions } from '../mqtt/types.ts'
import type { Membership } from './fleet.ts'
import { Rollouts, type RolloutsOptions } from './rollout/rollouts.ts'

export interface ClusterOptions extends Pick<RolloutsOptions, 'topics' | 'broker' | 'clock' | 'log' | 'random'> {
  readonly live: Live & { readonly natsCredentials: () => Credentials }
}

export interface BridgePort {
  readonly bridge: Bridge
  readonly hubs: Hubs
  readonly openHub: (name: string, config: HubConfig) => void
  readonly link: Pick<MqttLink, 'expect' | 'release' | 'hold' | 'refresh' | 'status'>
  /** Options of `link`, also used for the separate connections of rollouts and of the leader. */
  readonly linked: LinkOptions
  /** Shows messages from other members on the page; `undefined` without a page. */
  readonly feed?: { held(topic: string, payload: string | null): void } | undefined
  /** Called when the members, or the hubs that this member serves, have changed. */
  readonly onChange: () => void
}

/** Creates the rollouts. With a membership, also loads the code of fleets and creates the fleet member. */
export async function openCluster(options: ClusterOptions, membership: Membership | undefined) {
  const { live, log, ...rest } = options
  const fleet = membership && (await import('./fleet-member.ts')).fleetMember(membership, options)
  let port: BridgePort | undefined
  const rollouts = new Rollouts({
    ...rest,
    log: log.child({ part: 'rollout' }),
    clientId: () => `${port?.linked.clientId}-rollout`,
    serves: (hub) => fleet === undefined || port?.hubs.all.has(hub) === true,
    otherLeader: () => {
      const { speaker, member } = fleet?.status() ?? {}
      return fleet?.isLeader || speaker === member ? undefined : (speaker ?? undefined)
    },
    refusal: (command) => rolloutRefusal(policyOf(live.value), command),
  })
  return {
    fleet,
    rollouts,

    start(given: BridgePort, hubs: Live['value']['hubs']): void {
      port = given
      if (fleet !== undefined) fleet.start(port, rollouts)
      else for (const [name, config] of Object.entries(hubs)) port.openHub(name, config)
    },

    /**
     * Starts rollouts immediately, because a client may request a rollout as soon as the bridge publishes `online`. Call
     * this also after a reload, which may allow rollouts.
     */
    roleChanged(isOnline: boolean): void {
      if (port === undefined) return
      const isLeader = fleet?.isLeader ?? true
      if (isOnline && isLeader) rollouts.start(port.link)
      else if (port.bridge.role === 'standby' || !isLeader) rollouts.stop()
    },

    /** Call this with each retained message that the link reads when it connects. */
    readBack(topic: string, payload: string): void {
      fleet?.receive(topic, payload)
      rollouts.readBack(topic, payload)
    },

    /** Leaves the fleet while the link is still connected, and closes the rollout's connection. */
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all([fleet?.[Symbol.asyncDispose](), rollouts[Symbol.asyncDispose]()])
    },
  }
}
