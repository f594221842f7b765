/** Tests the contract's safety list. */
import { describe, expect } from 'vitest'
import { BROKERS, Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { KEY, World } from '../support/world.ts'
import { test } from '../support/world-test.ts'

const restartOf = (app: string) => `home/app/${app}/cmd/restart`
const resultsOf = ({ observer }: World, app: string, command = 'restart') =>
  observer.texts(`hub2mqtt/home/app/${app}/result/${command}`).map((text) => JSON.parse(text))

describe.concurrent.each(BROKERS)('on %s', (broker) => {
  test.override({ options: { broker } })

  test('a retained command is refused, cleared and not executed, whenever it is found, and clearing one is no command', async ({
    world,
  }) => {
    const topic = `hub2mqtt/${restartOf(world.app)}`
    const codes = () => resultsOf(world, world.app).map(({ ok, error }) => (ok ? 'ok' : error.code))
    await world.bridge.stop()
    await world.observer.publish(topic, '{}', { retain: true })
    await world.restart()
    await until('the refusal', () => codes().length === 1)
    for (const qos of [0, 1, 2] as const) await world.observer.publish(topic, '{}', { retain: true, qos })
    await until('the refusals', () => codes().length === 4)
    await world.request('bridge/cmd/ping')
    expect((await retainedOn(world.broker.port)).has(topic)).toBe(false)
    for (const qos of [0, 1, 2] as const) await world.observer.publish(topic, '', { retain: true, qos })
    await world.request('bridge/cmd/ping')
    expect(codes()).toEqual(Array(4).fill('retained'))
    expect(world.requestCount('restartApp')).toBe(0)
    // After the topic was cleared, the bridge refuses a new retained command, and executes a new live command.
    await world.observer.publish(topic, '{}', { retain: true })
    await until('its refusal', () => codes().length === 5)
    expect(await world.request(restartOf(world.app))).toMatchObject({ ok: true })
    expect(world.requestCount('restartApp')).toBe(1)
  })

  test('no command that was sent while the bridge was offline is executed', async ({ world }) => {
    await world.bridge.stop()
    await world.observer.publish(`hub2mqtt/${restartOf(world.app)}`, '')
    await world.restartUntilReady()
    await world.request('bridge/cmd/ping')
    expect(world.requestCount('restartApp')).toBe(0)
  })

  test('answers every command in progress before it ends, and begins none', async ({ world }) => {
    const [slow, stuck] = [...world.hub.apps.values()].filter(({ state }) => state === 'running').map(({ id }) => id)
    if (slow === undefined || stuck === undefined) throw new Error('too few apps run')
    world.hub.behave('slow-headers', { ms: 700, times: 1, operation: 'restartApp' })
    world.hub.behave('slow-headers', { ms: 60_000, times: 1, operation: 'disableApp' })
    await world.observer.publish(`hub2mqtt/${restartOf(slow)}`, '{"transaction":"under way"}')
    await world.observer.publish(`hub2mqtt/${restartOf(slow)}`, '{"transaction":"waits"}')
    await world.observer.publish(`hub2mqtt/home/app/${stuck}/cmd/disable`, '{"transaction":"cut off"}')
    await until('both writes', () => world.requestCount('restartApp') + world.requestCount('disableApp') === 2)
    await world.bridge.stop()
    const answers = [...resultsOf(world, slow), ...resultsOf(world, stuck, 'disable')]
    const outcomes = answers.map(({ transaction, ok, error }) => [transaction, ok ? 'ok' : error.code])
    expect(Object.fromEntries(outcomes)).toEqual({ 'under way': 'ok', waits: 'expired', 'cut off': 'outcome_unknown' })
    expect(world.requestCount('restartApp')).toBe(1)
    const failed = (topic: string) =>
      world.observer.texts(`hub2mqtt/home/${topic}`).filter((text) => text.includes('"command_failed"'))
    expect(failed(`app/${stuck}/event`)).toHaveLength(1)
    expect(failed('event')).toHaveLength(2)
    expect(world.observer.texts('hub2mqtt/bridge/state').at(-1)).toBe('offline')
  })
})

describe.skipIf(mosquittoPath === undefined)('under MQTT 5', { concurrent: true }, () => {
  test('an answer that the broker denies on the response topic is sent on the result topic, and one that it denies there is reported', async () => {
    const open = ['topic readwrite hub2mqtt/#', 'topic readwrite homeassistant/#', 'topic readwrite requester/#']
    const denied = 'hub2mqtt/home/app/+/result/get'
    const acl = ['user bridge', `topic deny ${denied}`, ...open.slice(0, 2), 'user requester', ...open]
    const broker = await Mosquitto.start({ acl, users: { bridge: 'b', requester: 'a' } })
    const env = { MQTT_USERNAME: 'bridge', MQTT_PASSWORD: 'b' }
    await using world = await World.start({ broker, env, observer: { username: 'requester', password: 'a' } })
    const options = { properties: { responseTopic: 'requester/inbox', correlationData: Buffer.from('1') } }
    const answer = await world.request(`home/app/${world.app}/cmd/get-locales`, '', options)
    expect(answer).toMatchObject({ ok: true, command: 'get-locales' })
    expect(world.observer.seen.filter(({ topic }) => topic === 'requester/inbox')).toEqual([])
    const problems = () => JSON.parse(world.observer.last('hub2mqtt/bridge/health') ?? '{}').problems
    await until('no problem', () => problems()?.length === 0)
    await world.observer.publish(`hub2mqtt/home/app/${world.app}/cmd/get`, '', options)
    await until('the refusal', () => world.bridge.lines.some((line) => /not published to .*result\/get/.test(line)))
    world.clock.jump(15_000)
    await until('the problem', () => String(problems()).includes('answers were lost'))
  })
})

test.concurrent('a command that the key does not permit is reported the same way if only the hub knows, and the permissions are read again', async ({
  world,
}) => {
  world.hub.setKeys({ [KEY]: ['hub.app.readonly', 'hub.speech'] })
  const answer = await world.request(restartOf(world.app))
  expect(answer.error).toEqual({ code: 'forbidden', message: 'The API key lacks hub.app.', status: 403 })
  await until('the new permissions', () => !world.observer.last('hub2mqtt/home/info')?.includes('"hub.app"'))
  expect(JSON.parse(world.observer.last('hub2mqtt/home/info') ?? '{}').commands).not.toContain('restart')
})

describe.concurrent('secrets', () => {
  const CANARY = 'canary-value-of-a-setting'

  test('of settings are sent to the requester and never logged, and the key is sent nowhere', async ({ world }) => {
    const cmd = `home/app/${world.app}/cmd`
    await world.request(`${cmd}/set-setting/password`, CANARY)
    expect((await world.request(`${cmd}/get-settings`)).data).toMatchObject({ password: CANARY })
    world.hub.behave('answer-status', { status: 500, operation: 'setAppSetting' })
    await world.request(`${cmd}/set-setting`, JSON.stringify({ name: 'password', value: CANARY }))
    await world.bridge.stop()
    expect(world.bridge.lines.join('')).not.toContain(CANARY)
    const seen = world.observer.seen.filter(({ topic }) => !topic.includes('/cmd/'))
    expect(seen.filter(({ text }) => text.includes(CANARY)).map(({ topic }) => topic)).toEqual([
      `hub2mqtt/home/app/${world.app}/result/get-settings`,
    ])
    expect(world.bridge.lines.join('') + seen.map(({ text }) => text).join('')).not.toContain(KEY)
  })
})
