import { setTimeout as after } from 'node:timers/promises'
import { connectAsync } from 'mqtt'
import { BASE, HUB } from '../model.ts'
import { type BrokerChanges, CLIENT_ID } from '../surroundings.ts'
import { type Fault, type Faults, kindOf, networkOf, type Scene } from './fault.ts'

const broker = kindOf({ hubWell: true, holds: ['broker'] })
const network = networkOf('brokerProxy')

/** @param keepsData whether the broker keeps its saved data */
function restart(signal: NodeJS.Signals, keepsData: boolean): Fault['run'] {
  return async ({ world, random }) => {
    await world.stopBroker(signal)
    if (!keepsData) await world.broker.forget()
    await after(random.int(100, 4000))
    await world.startBroker()
  }
}

function stricter(changes: BrokerChanges | ((scene: Scene) => BrokerChanges)): Fault['run'] {
  return async (scene) => {
    const { world, random } = scene
    await world.rebuildBroker(typeof changes === 'function' ? changes(scene) : changes)
    await after(random.int(1000, 3000))
    await world.rebuildBroker()
  }
}

export const BROKER_FAULTS: Faults = {
  'broker killed, memory lost': broker(restart('SIGKILL', false)),
  'broker killed, old memory': broker(restart('SIGKILL', true)),
  'broker restarted': broker(restart('SIGTERM', true)),
  'broker hung': broker(
    async ({ world, random }) => {
      world.broker.signal('SIGSTOP')
      await after(random.int(500, 6000))
      world.broker.signal('SIGCONT')
    },
    { stallMs: 6500 },
  ),
  'broker resets': broker(
    network(async ({ world, random }) => {
      for (let left = random.int(1, 4); left > 0; left -= 1) {
        world.brokerProxy.reset()
        await after(random.int(0, 900))
      }
    }),
  ),
  'broker cut in mid-packet': broker(network(({ world, random }) => world.brokerProxy.cutAfter(random.int(1, 3000)))),
  'broker half open': broker(
    network(({ world }) => world.brokerProxy.pause(), [500, 7000]),
    { stallMs: 7500 },
  ),
  'broker receives nothing': broker(
    network(({ world }) => world.brokerProxy.swallow('up'), [500, 7000]),
    { stallMs: 7500 },
  ),
  'nothing arrives from the broker': broker(
    network(({ world }) => world.brokerProxy.swallow('down'), [500, 7000]),
    { stallMs: 7500 },
  ),
  'broker slow': broker(
    network(({ world, random }) => world.brokerProxy.delay(random.int(50, 400))),
    { stallMs: 1000 },
  ),
  'broker connection in tiny pieces': broker(
    network(({ world, random }) => world.brokerProxy.slice(random.int(1, 9))),
    { stallMs: 500 },
  ),
  'broker refuses connections': broker(network(({ world }) => world.cutOff())),
  'broker refuses the password': broker(stricter({ withoutBridge: true }), { agreeMs: 80_000, slow: true }),
  'broker denies a topic': broker(
    stricter(({ world, random }) => {
      const app = random.pick([...world.hub.apps.keys()].filter((id) => /^[\w.]+$/.test(id)))
      const denied = [`${BASE}/${HUB}/app/${app}`, ...(random.chance(0.3) ? [`${BASE}/${HUB}/info`] : [])]
      const all = 'topic readwrite #'
      return { acl: ['user watcher', all, 'user bridge', ...denied.map((topic) => `topic deny ${topic}`), all] }
    }),
  ),
  'broker accepts only small packets': broker(stricter({ config: ['max_packet_size 420'] })),
  'broker accepts few at a time': broker(stricter({ config: ['max_inflight_messages 1', 'max_queued_messages 5'] })),
  'client id taken over': broker(
    async ({ world, random }) => {
      for (let left = random.int(1, 2); left > 0; left -= 1) {
        const rival = await connectAsync(world.broker.url, {
          ...world.watcherLogin,
          clientId: CLIENT_ID,
          protocolVersion: 5,
          reconnectPeriod: 0,
        })
        rival.on('error', () => undefined)
        await after(random.int(50, 500))
        await rival.endAsync(true)
      }
    },
    { agreeMs: 40_000 },
  ),
}
