import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { call } from '../../src/cli/call.ts'
import { brokerUrls } from '../../src/config/broker.ts'
import { RawBroker } from '../mqtt/raw-broker.ts'
import { startAedes } from '../mqtt/support.ts'
import { Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { Observer } from '../support/observer.ts'
import { runProgram } from '../support/process.ts'
import { PROGRAM, SOURCES } from '../support/program.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'
import { performed } from './support.ts'

type Options = Parameters<typeof call>[0]

/** Sends a command; default: a ping to the bridge. */
const callAt = (broker: Options['broker'], more: Partial<Options> = {}) =>
  call({
    ...{ broker, base: 'hub2mqtt', topic: 'bridge/cmd/ping', payload: '' },
    timeoutMs: 10_000,
    clock: systemClock,
    ...more,
  })

const PROTOCOLS = [
  ...(mosquittoPath === undefined ? [] : [['mosquitto', 'auto'] as const, ['mosquitto', '3.1.1'] as const]),
  ['aedes', 'auto'] as const,
]

describe.each(PROTOCOLS)('a call over %s, protocol %s', (broker, protocol) => {
  let world: World
  beforeAll(async () => {
    world = await World.start({ broker })
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const ask = (topic: string, payload = '', clock: Clock = systemClock) =>
    callAt({ urls: [world.broker.url], protocol }, { topic, payload, clock })

  test('prints the answer to a command, whose topic may include the base topic', async () => {
    const topic = `home/app/${world.app}/cmd/restart`
    for (const one of [topic, `hub2mqtt/${topic}`]) {
      const { ok, text } = await ask(one)
      expect(ok).toBe(true)
      expect(JSON.parse(text)).toMatchObject({ ok: true, command: 'restart', app: world.app })
    }
    expect(world.hub.requests.filter(({ operation }) => operation === 'restartApp')).toHaveLength(2)
  })

  test('sends the payload as it was written, so that a number that would be rounded is refused', async () => {
    const topic = `home/app/${world.app}/cmd/set-setting`
    for (const value of ['12345678901234567890', '1e400']) {
      const { ok, text } = await ask(topic, `{"name":"a","value":${value}}`)
      expect(ok).toBe(false)
      expect(JSON.parse(text)).toMatchObject({ error: { code: 'invalid_payload' } })
    }
    const { ok } = await ask(`home/app/${world.app}/cmd/get`, ' { } ')
    expect(ok).toBe(true)
  })

  test('ignores answers to other calls', async () => {
    world.hub.behave('slow-headers', { ms: 200, operation: 'setAppSetting' })
    const names = ['a', 'b', 'c', 'd']
    const write = (name: string) => ask(`home/app/${world.app}/cmd/set-setting`, JSON.stringify({ name, value: name }))
    await Promise.all(names.map(write))
    const reads = names.map(async (name) => {
      const { text } = await ask(`home/app/${world.app}/cmd/get-setting`, JSON.stringify({ name }))
      return JSON.parse(text).data
    })
    expect(await Promise.all(reads)).toEqual(names)
  })

  test('fails after its timeout', async () => {
    world.hub.behave('never-answer', { operation: 'disableApp' })
    const clock = new FakeClock()
    const failing = expect(ask(`home/app/${world.app}/cmd/disable`, '', clock)).rejects.toThrow(
      'no answer within 10000 ms',
    )
    await until('the request', () => world.hub.requests.some(({ operation }) => operation === 'disableApp'))
    await clock.advance(10_000)
    await failing
  })
})

describe.skipIf(mosquittoPath === undefined)('a call reports immediately', () => {
  test('that no bridge receives commands', async () => {
    await using broker = await Mosquitto.start()
    const calling = callAt({ urls: [broker.url] }, { clock: new FakeClock() })
    await expect(calling).rejects.toMatchObject({
      code: 'no_subscribers',
      message: expect.stringContaining('no bridge receives commands'),
    })
  })

  test('that the broker denies the publish', async () => {
    const acl = ['user me', 'topic read #', 'user service', 'topic readwrite #']
    await using broker = await Mosquitto.start({ users: { me: 'a', service: 'b' }, acl })
    await expect(callAt({ urls: [broker.url], username: 'me', password: 'a' })).rejects.toMatchObject({
      code: 'publish_denied',
      message: `the broker denies the publish to ${PING}`,
    })
  })

  test('that the broker refuses its credentials, without revealing them', async () => {
    await using broker = await Mosquitto.start({ users: { me: 'right' } })
    const env = { HUB2MQTT_MQTT_URL: broker.url, HUB2MQTT_MQTT_USERNAME: 'me', HUB2MQTT_MQTT_PASSWORD: 'wrong-canary' }
    // Run the sources, because the bundle lacks the debug output of the libraries.
    const { status, stdout, stderr } = await program(['call', 'bridge/cmd/ping'], { ...env, DEBUG: '*' }, SOURCES)
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toMatch(/^hub2mqtt: no connection to the MQTT broker \(unauthorized\)/)
    expect(stderr).not.toContain('canary')
  })
})

const PING = 'hub2mqtt/bridge/cmd/ping'
const RESULT = 'hub2mqtt/bridge/result/ping'
const answer = (transaction: string) => JSON.stringify({ ok: true, transaction })

describe.skipIf(mosquittoPath === undefined)('a call through Mosquitto', () => {
  test('is sent under MQTT 5 with a response topic, correlation data and an expiry', async () => {
    await using broker = await Mosquitto.start()
    await using service = await Observer.on(broker.port, { protocol: '5', filter: PING })
    const calling = callAt({ urls: [broker.url] })
    const { text, retain, packet } = await until('the request', () => service.seen[0])
    expect({ text, retain }).toEqual({ text: '', retain: false })
    const { responseTopic = '', correlationData, messageExpiryInterval } = packet.properties ?? {}
    expect(responseTopic).toBe(`${RESULT}/${correlationData}`)
    expect(messageExpiryInterval).toBe(10)
    await service.publish(responseTopic, answer('any'))
    expect(await calling).toMatchObject({ ok: true, text: answer('any') })
  })

  test('fails at its deadline when the broker hangs, and closes its connection', async () => {
    await using broker = await Mosquitto.start()
    await using proxy = await TcpProxy.to(broker.port)
    proxy.pause()
    const clock = new FakeClock()
    const failing = expect(callAt({ urls: [`mqtt://127.0.0.1:${proxy.port}`] }, { clock })).rejects.toMatchObject({
      code: 'timeout',
      message: 'no answer within 10000 ms',
    })
    await until('the connection', () => proxy.accepted === 1)
    await clock.advance(10_000)
    await failing
    proxy.resume()
    await until('the socket to close', () => proxy.open === 0)
  })
})

test('a call uses only the requested version of MQTT', async () => {
  await using broker = await startAedes()
  await expect(callAt({ urls: [broker.url], protocol: '5' })).rejects.toMatchObject({
    code: 'no_connection',
    message: expect.stringContaining('(protocol)'),
  })
})

describe('a call to a broker that refuses', () => {
  test('reports a denied subscription, and sends nothing', async () => {
    await using broker = await RawBroker.start({ suback: () => 135 })
    await expect(callAt({ urls: [broker.url] })).rejects.toMatchObject({
      code: 'subscription_denied',
      message: expect.stringMatching(`^the broker denies the subscription to ${RESULT}/`),
    })
    expect(broker.published).toEqual([])
  })

  test('fails when the connection ends before the answer', async () => {
    await using broker = await RawBroker.start()
    const failing = expect(callAt({ urls: [broker.url] })).rejects.toMatchObject({
      code: 'no_connection',
      message: expect.stringContaining('139'),
    })
    await until('the request', () => broker.published.includes(PING))
    broker.disconnect(139)
    await failing
    expect(broker.connects).toBe(1)
  })
})

function program(args: readonly string[], env: Readonly<Record<string, string>>, file = PROGRAM) {
  return runProgram(process.execPath, [file, ...args], { env })
}

describe('the program', () => {
  test('requires only the broker in its configuration, prints the answer, and exits with its code', async () => {
    await using world = await World.start()
    const env = { HUB2MQTT_MQTT_URL: world.broker.url }
    const good = await program(['call', 'bridge/cmd/ping', '{"transaction":7}'], env)
    expect(good).toMatchObject({ status: 0, stderr: '' })
    expect(JSON.parse(good.stdout)).toMatchObject({ ok: true, command: 'ping', transaction: 7 })
    const bad = await performed(['call', 'nowhere/cmd/refresh'], env)
    expect(bad).toMatchObject({ status: 1, stderr: '' })
    expect(JSON.parse(bad.stdout)).toMatchObject({ ok: false, error: { code: 'unknown_hub' } })
  })

  test.each([
    [['call'], /^hub2mqtt: topic is missing; see hub2mqtt call --help\n$/],
    [['call', 'a', 'b', 'canary'], /^hub2mqtt: too many arguments/],
    [['call', 'home/state'], /^hub2mqtt: expected the topic of a command/],
    [['call', 'home/+/x/cmd/restart'], /^hub2mqtt: expected the topic of a command/],
    [['call', 'home/app/x\t/cmd/restart'], /^hub2mqtt: expected the topic of a command/],
    [['call', 'home/cmd/refresh', '--timeout', 'soon'], /^hub2mqtt: --timeout: expected a duration from 100ms to 10m/],
  ])('refuses %j with a hint and the code for usage', async (args, message) => {
    const { status, stderr } = await performed(args)
    expect(status).toBe(2)
    expect(stderr).toMatch(message)
    expect(stderr).not.toContain('canary')
  })

  test('fails with one line if no broker is reachable', async () => {
    const { status, stderr } = await performed(['call', 'bridge/cmd/ping'], { HUB2MQTT_MQTT_URL: 'mqtt://127.0.0.1:1' })
    expect(status).toBe(1)
    expect(stderr).toMatch(/^hub2mqtt: no connection to the MQTT broker \(unreachable\).*\n$/)
  })
})

test('a call reaches an embedded broker at its address', () => {
  const mqtt = (host: string, port: number) => brokerUrls({ url: null, embedded: { host, port } })
  expect(mqtt('127.0.0.1', 1883)).toEqual(['mqtt://127.0.0.1:1883'])
  expect(mqtt('0.0.0.0', 1884)).toEqual(['mqtt://127.0.0.1:1884'])
  expect(mqtt('::1', 1883)).toEqual(['mqtt://[::1]:1883'])
  expect(mqtt('127.0.0.1', 0)).toEqual([])
  const urls = ['mqtts://there', 'mqtts://there-too']
  expect(brokerUrls({ url: urls, embedded: { host: '', port: 0 } })).toEqual(urls)
})
