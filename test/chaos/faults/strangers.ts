/** Other bridges, and other clients of the broker, which clear, forge and retain messages. */
import { setTimeout as after } from 'node:timers/promises'
import { EmulatedHub } from '../../../src/emulator/hub.ts'
import { population } from '../../../src/emulator/population.ts'
import { variables } from '../../support/bridge.ts'
import { BridgeProcess } from '../../support/bridge-process.ts'
import { retainedOn } from '../../support/observer.ts'
import { until } from '../../support/until.ts'
import { appTopic, hubTopic, read } from '../commands.ts'
import { BASE, HUB, level } from '../model.ts'
import { type Fault, type Faults, kindOf, type Scene } from './fault.ts'

const stranger = kindOf({ hubWell: true, holds: ['bridge', 'broker'] })

/** The bridge repairs a hub's topics within one poll, and its own within 5 s. The rest is for a busy machine. */
const REPAIR_MS = 9000

/** Returns retained topics of the bridge whose messages change only because of a fault. */
function stableTopics({ world, random }: Scene): string[] {
  const apps = [...world.hub.apps.keys()].filter((id) => !id.startsWith('org.')).map((id) => `${HUB}/app/${level(id)}`)
  return ['bridge/state', 'bridge/info', `${HUB}/state`, `${HUB}/info`, ...random.shuffle(apps).slice(0, 4)]
}

function touched(payload: (scene: Scene) => string): Fault['run'] {
  return async (scene) => {
    const { world, random } = scene
    const text = payload(scene)
    const topics = random.shuffle(stableTopics(scene)).slice(0, random.int(1, 5))
    for (const topic of topics) await world.plant(`${BASE}/${topic}`, text)
    const isThere = (id: string) => [...world.hub.apps.keys()].some((one) => level(one) === id)
    const wrong = async () => {
      const retained = await retainedOn(world.broker.port, world.watcherLogin)
      return topics.filter((topic) => {
        const [, app, id = ''] = topic.split('/')
        if (app === 'app' && !isThere(id)) return false
        return (retained.get(`${BASE}/${topic}`) ?? '') === text
      })
    }
    await until('the repair', async () => !world.bridge.alive || (await wrong()).length === 0, REPAIR_MS, 100).catch(
      async () => {
        for (const topic of await wrong())
          world.watch.object('not repaired', `${topic} still holds ${text || 'nothing'}`)
      },
    )
  }
}

const FOREIGN = ['kitchen/state', 'kitchen/info', 'kitchen/app/lamp', 'kitchen/light/state', 'garden/app/pump/update']
/** Topics of other programs below the bridge's discovery prefix. */
const FOREIGN_DISCOVERY = ['homeassistant/sensor/somebody_else/config', 'homeassistant/device/somebody_else/config']

export const STRANGERS: Faults = {
  'states cleared': stranger(
    touched(() => ''),
    { alone: true },
  ),
  'states forged by another client': stranger(
    touched(({ random }) => random.pick(['offline', '{"forged":true}', '7'])),
    { alone: true },
  ),
  'topics of other programs': stranger(async ({ world, random }) => {
    const topics = [...FOREIGN.map((topic) => `${BASE}/${topic}`), ...FOREIGN_DISCOVERY]
    for (const topic of topics) world.watch.foreign.add(topic)
    for (const topic of topics) await world.plant(topic, random.pick(['{"mine":true}', 'ON', 'online']))
    if (random.chance(0.5)) {
      await world.bridge.stop('SIGTERM')
      world.startBridge()
      await world.started()
    } else world.brokerProxy.reset()
    await after(random.int(3000, 6000))
    for (const topic of topics) await world.plant(topic, '')
  }),
  'a second bridge with another hub': stranger(
    async (scene) => {
      const { world, random } = scene
      await using other = await EmulatedHub.start({
        keys: { [world.secrets.key]: ['hub.app', 'hub.speech'] },
        apps: population(14).map((app) => ({ ...app, id: app.id.replace('population', 'elsewhere') })),
        settleMs: 0,
        flavour: 'older',
      })
      // Wait, because after another fault the first bridge may be disconnected, and the second could not detect it.
      await until('the first bridge', () => world.brokerProxy.open > 0, 20_000)
      const env = variables({ ...world.env, HUB_URL: other.url, MQTT_CLIENT_ID: 'a-neighbour' })
      // The checkers ignore this bridge, because it is not in the list of the world.
      await using second = new BridgeProcess({ env, config: world.configPath })
      await until('the second bridge', () => !second.alive || second.lines.length > 3, 20_000)
      await after(random.int(2500, 5000))
      await second.stop(random.pick(['SIGTERM', 'SIGKILL'] as const))
      for (const { method, path, executed } of other.requests)
        if (executed === true && method !== 'GET')
          world.watch.object('executed unasked', `at the other hub: ${method} ${path}`)
    },
    { agreeMs: 40_000 },
  ),
  'commands in odd spellings': stranger(async ({ load, random }) => {
    for (let left = 8; left > 0; left -= 1) {
      const subject = load.subject()
      if (subject === undefined) return
      const odd = (text: string) =>
        [...Buffer.from(text)]
          .map(
            (byte) => `%${byte.toString(16)[random.pick(['toUpperCase', 'toLowerCase'] as const)]().padStart(2, '0')}`,
          )
          .join('')
      const topic = random.pick([
        `${BASE}/${HUB}/app/${odd(subject.app)}/cmd/restart`,
        `${BASE}/${odd(HUB)}/app/${level(subject.app)}/cmd/restart`,
        `${BASE}/${HUB}/app/${level(subject.app)}/cmd/%72estart`,
        appTopic(subject.app, `set-setting/${odd(subject.word)}`),
      ])
      await load.issue({ topic, payload: '', hubRequest: null, write: false, kind: 'bad' })
      await after(random.int(10, 100))
    }
  }),
  'answers requested on other topics': stranger(async ({ world, random, load }) => {
    const foreign = [...FOREIGN_DISCOVERY, `${BASE}/${HUB}/app/somebody`]
    const targets = [...foreign, `${BASE}/${HUB}/state`, `${BASE}/bridge/info`, hubTopic('refresh')]
    for (const topic of foreign) world.watch.foreign.add(topic)
    for (const responseTopic of random.shuffle(targets)) {
      const draft = { ...read(`${BASE}/bridge/cmd/ping`), token: `elsewhere-${random.word()}` }
      await load.again(draft, '', { responseTopic })
      await after(random.int(20, 150))
    }
    await after(500)
  }),
}
