import { setTimeout as after } from 'node:timers/promises'
import type { Random } from '../../support/random.ts'
import type { Load } from '../load.ts'
import type { World } from '../world.ts'

export interface Scene {
  readonly world: World
  readonly random: Random
  readonly load: Load
}

/** Resources that only one of several combined faults may use at a time. */
export type Hold = 'broker' | 'bridge' | 'hub' | 'list' | 'answers'

export interface Fault {
  /** Causes the fault, and repairs it. Resolves when the fault has been repaired. */
  readonly run: (scene: Scene) => Promise<void>
  /** Whether the bridge can reach the hub during the whole fault. */
  readonly hubWell: boolean
  /** How long a message may be delayed between the bridge and the hub or broker, in milliseconds; default: 0. */
  readonly stallMs?: number
  /** Time limit from the repair until the retained messages match the hub's state, in milliseconds; default: 30 s. */
  readonly agreeMs?: number
  readonly expectedErrors?: RegExp
  /** Set if the bridge must publish neither itself nor its hub as offline during the fault. */
  readonly staysOnline?: true
  readonly holds?: readonly Hold[]
  /** Set if the fault cannot be combined, because its own checks require that there is no other fault. */
  readonly alone?: true
  /** Set if short runs leave the fault out, because it requires long waits. */
  readonly slow?: true
}

/** Returns a function that creates faults with these common properties. */
export const kindOf =
  (common: Partial<Fault>) =>
  (run: Fault['run'], more: Partial<Fault> = {}): Fault => ({ hubWell: false, ...common, run, ...more })

/** Returns a function that creates network faults at this proxy. */
export const networkOf =
  (proxy: 'brokerProxy' | 'hubProxy') =>
  (
    misbehave: (scene: Scene) => void | Promise<void>,
    [min, max]: readonly [number, number] = [600, 3000],
  ): Fault['run'] =>
  async (scene) => {
    await misbehave(scene)
    await after(scene.random.int(min, max))
    scene.world[proxy].heal()
  }

export type Faults = Readonly<Record<string, Fault>>
