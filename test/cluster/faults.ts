import { setTimeout as after } from 'node:timers/promises'
import type { Fleet } from '../support/fleet.ts'
import type { Nats, NatsNode } from '../support/nats.ts'
import type { Random } from '../support/random.ts'
import type { TcpProxy } from '../support/tcp-proxy.ts'
import type { Member } from './members.ts'
import type { RosterLog } from './roster-log.ts'

export interface Scene {
  readonly fleet: Fleet
  readonly members: readonly Member[]
  readonly nats: Nats
  readonly roster: RosterLog
  readonly random: Random
}

type FleetFault = (scene: Scene) => Promise<void>

const HOUR_MS = 3_600_000
/** The JetStream stream of the default bucket, which all members share. */
const STREAM = 'KV_hub2mqtt'

const memberOf = ({ members, random }: Scene) => random.pick(members)
const nodeOf = ({ nats, random }: Scene) => nats.node(random.int(0, nats.nodes.length - 1))

/** For some time, makes the proxies' connections hang, or closes them and refuses new ones. */
async function cut(proxies: readonly TcpProxy[], { random }: Scene, [least, most] = [1_000, 12_000]): Promise<void> {
  const hangs = random.chance(0.5)
  for (const proxy of proxies) {
    if (hangs) proxy.pause()
    else proxy.cut()
  }
  await after(random.int(least, most))
  for (const proxy of proxies) {
    proxy.heal()
    if (hangs && random.chance(0.5)) proxy.reset()
  }
}

/** Kills a NATS node and a member at the same time. */
async function killed(scene: Scene, node: NatsNode): Promise<void> {
  await ended(scene, 'SIGKILL', () => node.kill())
  await node.restart()
}

async function ended(scene: Scene, signal: NodeJS.Signals, also: () => Promise<void> = async () => {}): Promise<void> {
  const member = memberOf(scene)
  await Promise.all([member.process.stop(signal), also()])
  await after(scene.random.int(0, 9_000))
  member.run()
}

export const FLEET_FAULTS: Readonly<Record<string, FleetFault>> = {
  'member killed': (scene) => ended(scene, 'SIGKILL'),
  'member stopped': (scene) => ended(scene, 'SIGTERM'),
  'member suspended': async (scene) => {
    const stopped = memberOf(scene).process
    stopped.signal('SIGSTOP')
    await after(scene.random.int(500, 12_000))
    stopped.signal('SIGCONT')
  },
  'member suspended repeatedly': async (scene) => {
    const stopped = memberOf(scene).process
    for (let left = scene.random.int(4, 12); left > 0; left -= 1) {
      stopped.signal('SIGSTOP')
      await after(scene.random.int(100, 1_500))
      stopped.signal('SIGCONT')
      await after(scene.random.int(10, 300))
    }
  },
  'cut off from NATS': (scene) => cut(memberOf(scene).nats, scene),
  'cut off from the broker': (scene) => cut([memberOf(scene).broker], scene),
  'long cut off from the broker': (scene) => cut([memberOf(scene).broker], scene, [12_000, 25_000]),
  'cut off from both': (scene) => {
    const { nats, broker } = memberOf(scene)
    return cut([...nats, broker], scene)
  },
  'wall clock steps': async (scene) => {
    const member = memberOf(scene).process
    member.send({ clockBy: scene.random.pick([-1, 1]) * scene.random.int(1, 48) * HOUR_MS })
    await after(scene.random.int(500, 6_000))
    member.send({ clockBy: 0 })
  },
  'NATS node killed': async (scene) => {
    const node = nodeOf(scene)
    await node.kill()
    await after(scene.random.int(500, 9_000))
    await node.restart()
  },
  'NATS node hangs': async (scene) => {
    const node = nodeOf(scene)
    node.stop()
    await after(scene.random.int(500, 9_000))
    node.cont()
  },
  'NATS leader and member killed': async (scene) => killed(scene, (await scene.nats.leaderOf(STREAM)) ?? nodeOf(scene)),
  'NATS node and member killed': (scene) => killed(scene, nodeOf(scene)),
}
