import { describe, expect } from 'vitest'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { type RunningBridge, startBridge } from '../support/bridge.ts'
import { BROKERS, Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { JumpClock } from '../support/jump-clock.ts'
import { Observer, retainedOn } from '../support/observer.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { ALL_SCOPES, KEY, World } from '../support/world.ts'
import { test } from '../support/world-test.ts'

const PRESENCE = 'hub2mqtt/bridge/presence'
const HEALTH = 'hub2mqtt/bridge/health'
const STATE = 'hub2mqtt/bridge/state'

// Each bridge adds listeners for fatal errors to this process.
process.setMaxListeners(30)

async function secondBridge(world: World, changes: Readonly<Record<string, string>> = {}, clock?: JumpClock) {
  const hub = await EmulatedHub.start({ keys: { [KEY]: ALL_SCOPES }, settleMs: 0, flavour: 'older' })
  const own = { MQTT_URL: world.broker.url, MQTT_CLIENT_ID: 'second', HUB_NAME: 'attic', HUB_URL: hub.url }
  const bridge = startBridge({ ...world.env, ...own, ...changes }, undefined, clock)
  // Add the second bridge at the front: the world stops all bridges, and `restart` replaces the last one.
  world.bridges.unshift({
    ...bridge,
    async [Symbol.asyncDispose]() {
      await bridge.stop()
      await hub.close()
    },
  })
  return { hub, bridge }
}

/** Resolves to the answer of either bridge, because the first bridge may have stopped. */
async function answerTo({ observer }: World, command: string) {
  const result = `hub2mqtt/${command.replace('/cmd/', '/result/')}`
  const before = observer.texts(result).length
  await observer.publish(`hub2mqtt/${command}`, '')
  await until(`the answer to ${command}`, () => observer.texts(result).length > before)
  return JSON.parse(observer.texts(result).at(-1) ?? '')
}

const complaints = ({ lines }: RunningBridge) => lines.filter((line) => line.includes('uses the same base topic'))
const problems = (observer: Observer) =>
  observer.texts(HEALTH).flatMap((text): string[] => (text === '' ? [] : JSON.parse(text).problems))

/** Resolves when this bridge has detected the other one, and is connected to its own hub. */
async function settled(bridge: RunningBridge): Promise<void> {
  await until('the second to notice', () => complaints(bridge).length > 0)
  await until('its hub', () => bridge.lines.some((line) => line.includes('realtime channel up')))
}

describe.concurrent.each(BROKERS)('on %s, a second bridge on the same base topic', (broker) => {
  test.override({ options: { broker } })

  test('changes no retained message, executes and answers nothing, and is reported until it stops', async ({
    world,
  }) => {
    const { observer } = world
    const port = world.broker.port
    const before = await retainedOn(port)
    const second = await secondBridge(world)
    await settled(second.bridge)
    const after = await retainedOn(port)
    // The second bridge changes no retained message, except the health of the first bridge.
    expect([...after.keys()].sort()).toEqual([...before.keys()].sort())
    for (const [topic, text] of before) if (topic !== HEALTH) expect(after.get(topic), topic).toBe(text)
    const restarts = () => second.hub.requests.filter(({ operation }) => operation === 'restartApp').length
    expect((await world.request(`home/app/${world.app}/cmd/restart`)).ok).toBe(true)
    expect((await world.request(`attic/app/${world.app}/cmd/restart`)).error?.code).toBe('unknown_hub')
    await world.request('bridge/cmd/ping')
    expect(observer.texts(`hub2mqtt/home/app/${world.app}/result/restart`)).toHaveLength(1)
    expect(observer.texts(`hub2mqtt/attic/app/${world.app}/result/restart`)).toHaveLength(1)
    expect(observer.texts('hub2mqtt/bridge/result/ping')).toHaveLength(1)
    expect(restarts()).toBe(0)
    expect(problems(observer)).toContain('another hub2mqtt uses the same base topic')
    await second.bridge.stop()
    await until('no problem', () => JSON.parse(observer.last(HEALTH) ?? '{}').problems?.length === 0)
  })
})

test.concurrent('a bridge takes over from one that was cut off, and steps back when that returns', async ({
  world,
}) => {
  await using proxy = await TcpProxy.to(world.broker.port)
  const { observer } = world
  await world.restartUntilReady({ MQTT_URL: `mqtt://127.0.0.1:${proxy.port}` })
  const second = await secondBridge(world)
  await settled(second.bridge)
  proxy.cut()
  await until('the second one', () => observer.last('hub2mqtt/attic/state') === 'online')
  expect((await world.request(`attic/app/${world.app}/cmd/restart`)).ok).toBe(true)
  proxy.refuse(false)
  const count = observer.texts('hub2mqtt/home/state').length
  await until('the first one', () => observer.texts('hub2mqtt/home/state').slice(count).includes('online'), 40_000)
  await until('nothing of the second one', () => observer.last('hub2mqtt/attic/state') === '', 20_000)
  expect((await world.request(`home/app/${world.app}/cmd/restart`)).ok).toBe(true)
  expect((await world.request(`attic/app/${world.app}/cmd/restart`)).error?.code).toBe('unknown_hub')
})

test.concurrent('a bridge on standby that was cut off with the active one takes over if that has not come back within a minute', async ({
  world,
}) => {
  await using open = new AsyncDisposableStack()
  const [proxy, other] = [
    open.use(await TcpProxy.to(world.broker.port)),
    open.use(await TcpProxy.to(world.broker.port)),
  ]
  const { observer } = world
  await world.restartUntilReady({ MQTT_URL: `mqtt://127.0.0.1:${proxy.port}` })
  const clock = new JumpClock()
  const { bridge } = await secondBridge(world, { MQTT_URL: `mqtt://127.0.0.1:${other.port}` }, clock)
  await settled(bridge)
  other.cut()
  await until('the loss', () => bridge.lines.some((line) => line.includes('connection to the MQTT broker lost')))
  proxy.cut()
  await until('the will', () => observer.last(STATE) === 'offline')
  const asked = () => observer.texts(PRESENCE).filter((text) => JSON.parse(text).asks === true).length
  const before = asked()
  other.refuse(false)
  /** Moves the clock of the second bridge. Resolves to the seconds that pass, which include messages on their way. */
  const secondsUntil = async (what: string, is: () => boolean) => {
    let seconds = 0
    const step = () => {
      if (is()) return true
      clock.jump(1_000)
      seconds += 1
      return false
    }
    await until(what, step, 30_000)
    return seconds
  }
  await secondsUntil('the connection', () => asked() > before)
  const seconds = await secondsUntil('the takeover', () => observer.last('hub2mqtt/attic/state') === 'online')
  // It neither takes over at once nor waits three minutes.
  expect(seconds).toBeGreaterThan(30)
  expect(seconds).toBeLessThan(150)
})

test.concurrent('a bridge notices another one at once, even while commands wait because the broker takes no answers', async ({
  world,
}) => {
  await using proxy = await TcpProxy.to(world.broker.port)
  const { observer } = world
  await world.restartUntilReady({ MQTT_URL: `mqtt://127.0.0.1:${proxy.port}` })
  proxy.swallow('up')
  // The broker waits for no acknowledgement of commands with QoS 0.
  for (let i = 0; i < 2_000; i += 1) void observer.publish('hub2mqtt/bridge/cmd/ping', '', { qos: 0 })
  await observer.publish(PRESENCE, JSON.stringify({ instance: 'another', started_at: new Date().toISOString() }))
  await until('the bridge to notice', () => complaints(world.bridge).length > 0)
})

// Not concurrent with other tests, because the second bridge must be online within a second after the goodbye.
test('a command that arrives after the goodbye of a bridge is left to the one that takes over', async ({ world }) => {
  await using proxy = await TcpProxy.to(world.broker.port)
  const { observer, hub, app } = world
  await world.restartUntilReady({ MQTT_URL: `mqtt://127.0.0.1:${proxy.port}` })
  const second = await secondBridge(world, { HUB_NAME: 'home', HUB_URL: hub.url })
  await settled(second.bridge)
  // Keep the first bridge's connection open until the second bridge is online.
  proxy.delay(500)
  const before = observer.texts(STATE).length
  const ended = world.bridge.stop()
  await until('both', () => String(observer.texts(STATE).slice(before)) === 'offline,online')
  expect(proxy.open).toBe(1)
  const command = `home/app/${app}/cmd/restart`
  expect((await answerTo(world, command)).ok).toBe(true)
  await ended
  expect(hub.requests.filter(({ operation }) => operation === 'restartApp')).toHaveLength(1)
  expect(observer.texts(`hub2mqtt/${command.replace('/cmd/', '/result/')}`)).toHaveLength(1)
})

test.concurrent('a bridge that takes over does not clear what the first one published before it has read the hub itself', async ({
  world,
}) => {
  const { observer, hub } = world
  const second = await secondBridge(world, { HUB_NAME: 'home', HUB_URL: hub.url, HUB_POLL_INTERVAL: '1h' })
  await settled(second.bridge)
  const before = observer.seen.length
  hub.install({ id: 'org.example.news', name: 'News' }, { silent: true })
  await world.request('home/cmd/refresh')
  const messages = () => observer.seen.slice(before).filter(({ topic }) => /org.example.news/.test(topic))
  const isDevice = ({ topic }: { readonly topic: string }) => topic.startsWith('homeassistant/')
  await until('its device', () => messages().some(isDevice))
  const { app } = world
  hub.uninstall(app, { silent: true })
  await world.bridge.stop()
  await until('a read of the hub', () => observer.last(`hub2mqtt/home/app/${app}`) === '')
  await until('online', () => observer.last(STATE) === 'online')
  expect(messages().filter(({ text }) => text === '')).toEqual([])
})

test.concurrent.for(['empty-list', 'half-list'] as const)(
  'a bridge that takes over before it has reached the hub clears nothing if the first request is answered with %s',
  async (fault, { world }) => {
    const { observer, hub } = world
    await using proxy = await TcpProxy.to(Number(new URL(hub.url).port))
    proxy.refuse(true)
    const url = `http://127.0.0.1:${proxy.port}`
    const { bridge } = await secondBridge(world, { HUB_NAME: 'home', HUB_URL: url, HUB_REALTIME: 'false' })
    await until('the second to notice', () => complaints(bridge).length > 0)
    const before = observer.seen.length
    await world.bridge.stop()
    await until('online', () => observer.texts(STATE).at(-1) === 'online')
    hub.behave(fault, { times: 1 })
    proxy.refuse(false)
    await until('the hub', () => bridge.lines.some((line) => line.includes('hub online')), 20_000)
    expect((await answerTo(world, 'home/cmd/refresh')).ok).toBe(true)
    expect(world.clearedApps(before)).toEqual([])
  },
)

test.concurrent.for(['crashed', 'recovered'])(
  'a bridge that takes over keeps the evidence of the first one, of an app that has %s, even if it noticed the crash later',
  async (state, { world }) => {
    const { app, hub, observer } = world
    const second = await secondBridge(world, { HUB_NAME: 'home', HUB_URL: hub.url, HUB_REALTIME: 'false' })
    const { lines } = second.bridge
    const evidence = () => observer.last(`hub2mqtt/home/app/${app}/crash`)
    await until('the second to notice', () => complaints(second.bridge).length > 0)
    await until('its list', () => lines.some((line) => line.includes('hub online')))
    await world.request(`home/app/${app}/cmd/set-setting/mode`, 'eco')
    hub.crash(app, 'Error: oh')
    const before = await until('the evidence', evidence)
    await until('the crash', () => lines.some((line) => line.includes(app) && line.includes(' crashed')))
    if (state === 'recovered') hub.recover(app)
    await until('the state', () => world.state(app)?.['crashed'] === (state === 'crashed'))
    const report = (await world.request(`home/app/${app}/cmd/get-crash`)).data
    const count = observer.texts(STATE).length
    await world.bridge.stop()
    await until('the second one', () => observer.texts(STATE).slice(count).at(-1) === 'online')
    expect((await answerTo(world, 'home/cmd/refresh')).ok).toBe(true)
    expect((await answerTo(world, `home/app/${app}/cmd/get-crash`)).data).toEqual(report)
    expect(evidence()).toBe(before)
  },
)

test.skipIf(mosquittoPath === undefined)(
  'the first bridge stays active when the broker restarts under both',
  { concurrent: true },
  async () => {
    const mosquitto = await Mosquitto.start({ persistent: true })
    await using world = await World.start({ broker: mosquitto })
    const second = await secondBridge(world)
    await settled(second.bridge)
    await mosquitto.stop('SIGKILL')
    await mosquitto.run()
    const deadline = performance.now() + 30_000
    const online = async () => (await retainedOn(mosquitto.port)).get('hub2mqtt/home/state') === 'online'
    const connections = ({ lines }: RunningBridge) =>
      lines.filter((line) => line.includes('"connected to the MQTT')).length
    while (!(await online()) || connections(second.bridge) + connections(world.bridge) < 4)
      if (performance.now() > deadline) throw new Error('not both are back')
    await using observer = await Observer.on(mosquitto.port)
    await observer.publish(`hub2mqtt/home/app/${world.app}/cmd/restart`, '')
    await observer.publish(`hub2mqtt/attic/app/${world.app}/cmd/restart`, '')
    const answer = (hub: string) => observer.texts(`hub2mqtt/${hub}/app/${world.app}/result/restart`)
    await until('the answers', () => answer('home').length > 0 && answer('attic').length > 0)
    expect(JSON.parse(answer('home')[0] ?? '')).toMatchObject({ ok: true })
    expect(JSON.parse(answer('attic')[0] ?? '')).toMatchObject({ error: { code: 'unknown_hub' } })
    expect((await retainedOn(mosquitto.port)).has('hub2mqtt/attic/state')).toBe(false)
  },
)
