/** What the cluster uses of the bridge and of the parts beside it. */
import type { HubConfig } from '../config/options.ts'
import type { Role } from '../contract/schemas.ts'
import type { MqttLink } from '../mqtt/link.ts'
import type { LinkOptions } from '../mqtt/types.ts'

export interface BridgePort {
  readonly bridge: {
    readonly role: Role
    /** Leaves a hub with all of its topics to another member. */
    releaseHub(name: string): void
    fleetChanged(): void
  }
  readonly hubs: { readonly all: ReadonlyMap<string, unknown>; close(name: string): Promise<void> }
  readonly openHub: (name: string, config: HubConfig) => void
  readonly link: Pick<MqttLink, 'expect' | 'release' | 'hold' | 'refresh' | 'status'>
  /** How `link` is connected; rollouts and the leader have connections of their own, made in the same way. */
  readonly linked: LinkOptions
  /** Shows what other members publish; `undefined`: there is no page. */
  readonly feed?: { held(topic: string, payload: string | null): void } | undefined
  /** The members, or what this one serves, have changed. */
  readonly onChange: () => void
}
