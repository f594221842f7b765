/** Faults of the bridge's process, messages that earlier runs have left, and other bridges. */

import { setTimeout as after } from 'node:timers/promises'
import { until } from '../../support/until.ts'
import { WRITES } from '../commands.ts'
import { BASE, HUB, publishedApps } from '../model.ts'
import type { World } from '../world.ts'
import { type Fault, type Faults, kindOf, type Scene } from './fault.ts'

const local = kindOf({ hubWell: true, holds: ['bridge'] })

const HOUR = 3_600_000

const STANDS_BY = 'this one stands by'
const TAKES_OVER = 'this one takes over'

/** Topics of the bridge on which the harness leaves messages, like an earlier run or another client. */
const ORPHANS = ['home/app/ghost', 'home/app/ghost.two', 'home/app/gh%2Fost', 'home/app/ghost/setting/x']

async function plant(world: World, topics: readonly string[], payload: string): Promise<void> {
  for (const topic of topics) await world.plant(`${BASE}/${topic}`, payload)
}

function misconfigured(env: Readonly<Record<string, string>>): Fault['run'] {
  return async ({ world, random }) => {
    await world.bridge.stop('SIGTERM')
    world.startBridge(env)
    await world.started()
    await after(random.int(500, 3000))
    await world.bridge.stop('SIGTERM')
    world.startBridge()
  }
}

/** Returns a client id that no bridge of an earlier episode in this world has used. */
const otherClientId = (world: World) => ({ MQTT_CLIENT_ID: `beside-${world.bridge.pid}` })

function besideAnother(envIn: (world: World) => Readonly<Record<string, string>> = () => ({})): Fault['run'] {
  return async ({ world, random }) => {
    const first = world.bridge
    const second = world.startBridge(envIn(world))
    await world.started()
    await after(random.int(2000, 4000))
    await (random.chance(0.5) ? first : second).stop('SIGTERM')
    if (!second.alive) world.bridges.push(...world.bridges.splice(world.bridges.indexOf(first), 1))
  }
}

/** A bridge loses its connection to the broker or is suspended, a second bridge takes over, and the first returns. */
async function replacedForAWhile({ world, random }: Scene): Promise<void> {
  const first = world.bridge
  const absence = {
    cut: [() => world.cutOff(), () => world.brokerProxy.heal()],
    asleep: [() => first.signal('SIGSTOP'), () => first.signal('SIGCONT')],
  } as const
  const second = world.startBridge({
    MQTT_URL: `mqtt://127.0.0.1:${world.broker.port}`,
    ...otherClientId(world),
  })
  await second.untilLine(STANDS_BY)
  world.hasDirectBridge = true
  /** The first bridge may publish `online` twice when it returns, so only the log of the second shows who is active. */
  const decides = async (line: string, change: () => void) => {
    const before = second.lines.filter((one) => one.includes(line)).length
    change()
    await until(line, () => second.lines.filter((one) => one.includes(line)).length > before, 20_000)
    await after(random.int(500, 2000))
  }
  for (let left = random.int(1, 3); left > 0; left -= 1) {
    const [leave, come] = random.pick([absence.cut, absence.asleep])
    await decides(TAKES_OVER, leave)
    await decides(STANDS_BY, come)
  }
  await second.stop('SIGTERM')
  world.bridges.push(...world.bridges.splice(world.bridges.indexOf(first), 1))
}

export const PROCESS_FAULTS: Faults = {
  'bridge killed': local(async ({ world, random }) => {
    for (let left = random.int(1, 2); left > 0; left -= 1) {
      await world.bridge.stop('SIGKILL')
      await after(random.int(0, 1500))
      world.startBridge()
      await after(random.int(100, 2500))
    }
  }),
  'bridge replaced for a while': local(replacedForAWhile, { alone: true }),
  'bridge ended': local(async ({ world, random }) => {
    await world.bridge.stop(random.pick(['SIGTERM', 'SIGINT'] as const))
    await after(random.int(0, 1500))
    world.startBridge()
  }),
  'bridge ended in any phase': local(async ({ world, random }) => {
    for (let left = random.int(2, 4); left > 0; left -= 1) {
      await world.bridge.stop(random.pick(['SIGTERM', 'SIGINT'] as const))
      world.startBridge()
      // Wait: a bridge that is still starting has no signal handler, so a signal would terminate it.
      await world.started()
      await after(random.int(0, 700))
    }
  }),
  'bridge ended while the broker hangs': local(
    async ({ world, random }) => {
      world.broker.signal('SIGSTOP')
      await after(random.int(0, 1500))
      await world.bridge.stop('SIGTERM')
      world.broker.signal('SIGCONT')
      world.startBridge()
    },
    { stallMs: 6500, holds: ['bridge', 'broker'] },
  ),
  'bridge ended while the hub hangs': local(
    async ({ world, random }) => {
      world.hubProxy.pause()
      await after(random.int(0, 1500))
      await world.bridge.stop('SIGTERM')
      world.hubProxy.heal()
      world.startBridge()
    },
    { stallMs: 6500 },
  ),
  'bridge suspended': local(
    async ({ world, random }) => {
      world.bridge.signal('SIGSTOP')
      await after(random.int(300, 6000))
      world.bridge.signal('SIGCONT')
    },
    { stallMs: 6500 },
  ),
  // The suspension is longer than a command may wait. With a long keep-alive, the connection survives the suspension.
  'bridge suspended for long': local(
    async ({ world, random, load }) => {
      if (random.chance(0.5)) {
        await world.bridge.stop('SIGTERM')
        const since = Date.now()
        world.startBridge({ MQTT_KEEPALIVE: '60s' })
        // Do not use `calm`, which could fail: under load, the retained messages may never match the hub's state.
        await until('online', () => world.realtimeIsUp && (world.watch.onlineAt.at(-1) ?? 0) > since, 30_000)
      }
      world.bridge.signal('SIGSTOP')
      for (let left = 60; left > 0; left -= 1) {
        const subject = load.subject()
        if (subject !== undefined) await load.issue(WRITES.set(subject))
      }
      await after(random.int(12_000, 14_000))
      world.bridge.signal('SIGCONT')
    },
    { hubWell: false, slow: true },
  ),
  'clock jumps': local(async ({ world, random }) => {
    world.wallClockStepped = true
    for (const by of [random.pick([-1, 1]) * random.int(1, 48) * HOUR, 0]) {
      world.bridge.send({ clockBy: by })
      await after(random.int(300, 2000))
    }
  }),
  'started before broker and hub': local(async ({ world, random }) => {
    await world.bridge.stop('SIGTERM')
    const [brokerDown, hubDown] = random.pick([
      [true, false],
      [false, true],
      [true, true],
    ] as const)
    world.brokerProxy.refuse(brokerDown)
    world.hubProxy.refuse(hubDown)
    if (hubDown) world.hubProxy.reset()
    world.startBridge()
    await after(random.int(500, 3000))
    if (random.chance(0.5)) world.brokerProxy.heal()
    await after(random.int(0, 1500))
    world.brokerProxy.heal()
    world.hubProxy.heal()
  }),
  'log broken': local(async ({ world, random }) => {
    world.bridge.output('break')
    await after(random.int(500, 2000))
    // The log of this bridge can no longer be read, so another bridge replaces it.
    await world.bridge.stop('SIGTERM')
    world.startBridge()
  }),
  'log stalled': local(async ({ world, random }) => {
    world.bridge.output('stall')
    await after(random.int(500, 3000))
    world.bridge.output('resume')
  }),
  'orphans planted': local(async ({ world, random }) => {
    await world.bridge.stop(random.pick(['SIGTERM', 'SIGKILL'] as const))
    await plant(world, ORPHANS, random.pick(['{}', 'online', '{"id":"ghost"}']))
    world.startBridge()
  }),
  'orphans planted at a reconnect': local(async ({ world, random }) => {
    world.cutOff()
    await after(random.int(50, 500))
    await plant(world, ORPHANS, '{}')
    world.brokerProxy.heal()
  }),
  'states forged': local(async ({ world, random }) => {
    const apps = [...world.hub.apps.keys()].filter((id) => /^[\w.]+$/.test(id))
    world.cutOff()
    await plant(
      world,
      [`${HUB}/state`, `${HUB}/info`, ...apps.slice(0, random.int(1, 5)).map((id) => `${HUB}/app/${id}`)],
      '{"forged":true}',
    )
    world.brokerProxy.heal()
  }),
  'retained on event topics': local(async ({ world, random }) => {
    const [app] = publishedApps
    const live = random.chance(0.5)
    if (!live) {
      world.cutOff()
    }
    await plant(world, [`${HUB}/event`, `${HUB}/app/${app}/event`, `${HUB}/app/ghost/event`], '{"forged":true}')
    await plant(world, ['bridge/presence', 'bridge/probe'], random.pick(['{}', 'x']))
    world.brokerProxy.heal()
  }),
  'started with names that do not resolve': local(
    misconfigured({ HUB_URL: 'http://hub.invalid', MQTT_URL: 'mqtt://broker.invalid' }),
  ),
  'started with wrong credentials': local(
    misconfigured({ HUB_API_KEY: 'not-the-key', MQTT_PASSWORD: 'not-the-password' }),
  ),
  'started with the wrong key': local(misconfigured({ HUB_API_KEY: 'not-the-key' })),
  'two bridges with different client ids': local(besideAnother(otherClientId)),
  'two bridges': local(besideAnother(), { agreeMs: 80_000, slow: true }),
}
