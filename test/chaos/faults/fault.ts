/** A fault in the bridge's environment. */
import type { Random } from '../../support/random.ts'
import type { Load } from '../load.ts'
import type { World } from '../world.ts'

export interface Scene {
  readonly world: World
  readonly random: Random
  readonly load: Load
}

/** Resources that only one fault at a time can use. */
export type Hold = 'broker' | 'bridge' | 'hub' | 'list' | 'answers'

export interface Fault {
  /** Causes the fault, waits, and repairs it; resolves after the repair. */
  readonly run: (scene: Scene) => Promise<void>
  /** Whether the bridge can reach the hub all the time. */
  readonly hubWell: boolean
  /** How long a message may be delayed between bridge and hub or broker, in milliseconds; default 0. */
  readonly stallMs?: number
  /** How long after the repair the broker must agree with the hub, in milliseconds; default 30 s. */
  readonly agreeMs?: number
  /** Error lines that the bridge may log. */
  readonly expectedErrors?: RegExp
  /** Whether neither the bridge nor the hub may be published as offline during the fault. */
  readonly staysOnline?: true
  /** The resources that no other fault may use at the same time. */
  readonly holds?: readonly Hold[]
  /** Whether the fault cannot be combined, because its own checks expect that there is no other fault. */
  readonly alone?: true
  /** Whether the contract requires long waits: short runs leave the kind out. */
  readonly slow?: true
}

/** Defines kinds of fault with common properties. */
export const kindOf =
  (common: Partial<Fault>) =>
  (run: Fault['run'], more: Partial<Fault> = {}): Fault => ({ hubWell: false, ...common, run, ...more })

export type Faults = Readonly<Record<string, Fault>>
