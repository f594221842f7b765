import { describe, expect, test } from 'vitest'
import { variables } from '../support/bridge.ts'
import { BridgeProcess } from '../support/bridge-process.ts'
import { Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { ALL_SCOPES, World } from '../support/world.ts'

const STATE = 'hub2mqtt/bridge/state'
const PROBLEM = /another hub2mqtt uses the same base topic/

const run = (env: World['env']) => new BridgeProcess({ env: variables({ HTTP_ENABLED: 'false', ...env }) })

describe.skipIf(mosquittoPath === undefined)(
  'two daemons of one machine with the same configuration',
  { concurrent: true },
  () => {
    test('do not disconnect each other, log the conflict once, and the second takes over when the first ends', async () => {
      await using world = await World.with(run, {})
      const { bridge: first, observer, env } = world
      const states = () => observer.texts(STATE)
      const health = () => JSON.parse(observer.last('hub2mqtt/bridge/health') ?? '{}')
      await using second = run(env)
      await second.untilLine('this one stands by')
      await first.untilLine('this one started first')
      await until('the same in its health', () => PROBLEM.test(String(health().problems)))
      expect(states()).toEqual(['online'])

      await second.stop('SIGKILL')
      // The broker publishes the will of the killed bridge. Then the active bridge corrects the state.
      await until('the will, and its correction', () => states().length >= 3)
      expect(states()).toEqual(['online', 'offline', 'online'])

      await using third = run(env)
      await third.untilLine('this one stands by')
      await first.stop()
      await until('the next one', () => states().at(-1) === 'online' && states().length > 4)
      for (const { lines } of [first, second, third])
        expect(lines.filter((line) => PROBLEM.test(line)).length).toBeLessThan(3)
      expect(second.lines.filter((line) => PROBLEM.test(line))).toHaveLength(1)
      expect([first, second, third].flatMap(({ lines }) => lines).join()).not.toContain('taken_over')
    })
  },
)

interface Absence {
  readonly elder: BridgeProcess
  readonly line: TcpProxy
}

const ABSENCES = {
  cut: ({ line }: Absence) => {
    line.cut()
    return () => line.refuse(false)
  },
  // A resumed bridge reconnects deliberately. Each further suspension begins before this reconnect.
  suspended: ({ elder, line }: Absence) => {
    elder.signal('SIGSTOP')
    line.reset()
    return () => elder.signal('SIGCONT')
  },
}

test.skipIf(mosquittoPath === undefined).concurrent.for(Object.entries(ABSENCES))(
  'a bridge that was %s executes no command that its replacement executes',
  async ([, leave]) => {
    const KEYS = ['key-of-the-elder', 'key-of-the-younger']
    const broker = await Mosquitto.start({ config: ['max_queued_messages 0'] })
    await using line = await TcpProxy.to(broker.port)
    const keys = Object.fromEntries(KEYS.map((key) => [key, ALL_SCOPES]))
    await using world = await World.open(run, { broker, hub: { keys } })
    const { hub, observer } = world
    const own = (i: number) => ({ HUB_API_KEY: KEYS[i] ?? '', MQTT_CLIENT_ID: `bridge-${i}` })
    const elder = world.startBridge({ ...own(0), MQTT_URL: `mqtt://127.0.0.1:${line.port}` })
    await until('the elder', () => observer.last('hub2mqtt/home/state') === 'online')
    await world.startBridge(own(1)).untilLine('this one stands by')
    const [app = ''] = hub.apps.keys()
    const writes = () => hub.requests.filter(({ method, path }) => method === 'PUT' && path.includes('/setting/'))
    let sent = 0
    for (let time = 1; time <= 2; time += 1) {
      const by = (i: number) => writes().filter(({ key }) => key === KEYS[i]).length
      const [beforeElder, before] = [by(0), by(1)]
      const comeBack = leave({ elder, line })
      await until(
        'writes of both, one after the other',
        async () => {
          await observer.publish(`hub2mqtt/home/app/${app}/cmd/set-setting/n${sent++}`, '1')
          if (by(1) > before) comeBack()
          return by(1) > before && by(0) > beforeElder + 20
        },
        30_000,
        5,
      )
    }
    await observer.publish(`hub2mqtt/home/app/${app}/cmd/get-settings`, '')
    const ended = `hub2mqtt/home/app/${app}/result/get-settings`
    await until('the end of the queue', () => observer.last(ended) !== undefined)
    const paths = writes().map(({ path }) => path)
    expect(paths.filter((path, i) => paths.indexOf(path) !== i)).toEqual([])
  },
)

describe.skipIf(mosquittoPath === undefined)('a bridge that is still reading the retained messages', () => {
  const BLIND = { MQTT_USERNAME: 'blind', MQTT_PASSWORD: 'b' }
  const probes = ({ observer }: World<BridgeProcess>) => observer.texts('hub2mqtt/bridge/probe').length

  /** Opens a world in which a bridge with the login `BLIND` waits half a minute for its own probe. */
  async function open() {
    const acl = ['user all', 'topic readwrite #', 'user blind', 'topic write #', 'topic read hub2mqtt/bridge/cmd/#']
    const broker = await Mosquitto.start({ users: { all: 'a', blind: 'b' }, acl })
    const env = { MQTT_USERNAME: 'all', MQTT_PASSWORD: 'a' }
    return await World.open(run, { broker, observer: { username: 'all', password: 'a' }, env })
  }

  test('publishes no retained message if it is stopped, because another bridge may be active', async () => {
    await using world = await open()
    const { observer } = world
    world.startBridge()
    await world.ready()
    await until('its info', () => observer.last('hub2mqtt/bridge/info'))
    const [infos, before] = [observer.texts('hub2mqtt/bridge/info').length, probes(world)]
    await using second = run({ ...world.env, ...BLIND, HUB_NAME: 'attic' })
    await until('the probe', () => probes(world) > before)
    await second.stop()
    expect((await world.request('bridge/cmd/ping')).ok).toBe(true)
    expect(observer.texts(STATE)).toEqual(['online'])
    expect(observer.texts('hub2mqtt/bridge/info')).toHaveLength(infos)
    expect(observer.seen.filter(({ topic }) => topic.includes('attic'))).toEqual([])
  })

  test('logs that it drops commands if more than 1,000 arrive', async () => {
    await using world = await open()
    const bridge = world.startBridge(BLIND)
    await until('the probe', () => probes(world) > 0)
    for (let i = 0; i <= 1_000; i += 1) await world.observer.publish('hub2mqtt/bridge/cmd/ping', '', { qos: 0 })
    await bridge.untilLine('dropping commands')
  })
})
