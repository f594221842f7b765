/** One way in which the world around the bridge goes wrong, and is mended again. */
import type { Random } from '../../support/random.ts'
import type { Load } from '../load.ts'
import type { World } from '../world.ts'

export interface Scene {
  readonly world: World
  readonly random: Random
  readonly load: Load
}

/** What only one fault at a time can take hold of. */
export type Hold = 'broker' | 'bridge' | 'hub' | 'list' | 'answers'

export interface Fault {
  /** Breaks something, waits, mends it: when it resolves, nothing is broken any more. */
  readonly run: (scene: Scene) => Promise<void>
  /** Whether the bridge can see all along what the hub says. */
  readonly hubWell: boolean
  /** How long a message may be held up between bridge and hub or broker, in milliseconds; default 0. */
  readonly stallMs?: number
  /** Within what time of the mending all must be right again, in milliseconds; default 30 s. */
  readonly agreeMs?: number
  /** Error lines that the bridge is right to log. */
  readonly tells?: RegExp
  /** Whether neither the bridge nor the hub may be called offline meanwhile. */
  readonly staysOnline?: true
  /** What no other fault may take hold of at the same time. */
  readonly holds?: readonly Hold[]
  /** Whether it judges by what holds only while all else is well: never together with others. */
  readonly alone?: true
  /** Waits that the contract itself makes long: such a kind is not for a short run. */
  readonly slow?: true
}

/** Kinds of fault that have something in common. */
export const kindOf =
  (common: Partial<Fault>) =>
  (run: Fault['run'], more: Partial<Fault> = {}): Fault => ({ hubWell: false, ...common, run, ...more })

export type Faults = Readonly<Record<string, Fault>>
