import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from '../../support/at-end.ts'
import { Mosquitto, mosquittoPath } from '../../support/brokers.ts'
import { freePort } from '../../support/ports.ts'
import { runProgram } from '../../support/process.ts'
import { PROGRAM } from '../../support/program.ts'
import { until } from '../../support/until.ts'
import { KEY, World, type WorldOptions } from '../../support/world.ts'

let world: World

const HEALTH = 'hub2mqtt/bridge/health'

async function start(options: WorldOptions = {}): Promise<string> {
  const port = await freePort()
  world = await World.start({ ...options, env: { HTTP_ENABLED: 'true', HTTP_PORT: String(port), ...options.env } })
  onTestFinished(() => world[Symbol.asyncDispose]())
  return `http://127.0.0.1:${port}`
}

const published = () => JSON.parse(world.observer.last(HEALTH) ?? '{}')
const status = async (url: string) => (await fetch(url)).status

/** Runs `hub2mqtt health` as users and container engines do. */
function command(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const { HTTP_PORT = '' } = world.env
  return runProgram(process.execPath, [PROGRAM, 'health', ...args], {
    env: { ...process.env, HUB2MQTT_HTTP_PORT: HTTP_PORT, ...env },
  })
}

describe('a daemon that works', () => {
  it('reports that over HTTP, by its command and on MQTT, with the same content', async () => {
    const url = await start()
    expect(await (await fetch(`${url}/livez`)).text()).toBe('ok\n')
    expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ ready: true, problems: [] })
    const detail = await (await fetch(`${url}/healthz`)).json()
    expect(detail).toMatchObject({ live: true, ready: true, mqtt: { state: 'connected' }, hubs: { home: good } })
    await until('the same on MQTT', () => published().ready && published().hubs.home.realtime === 'connected')
    expect(published()).toEqual(detail)
    const { status: code, stdout } = await command()
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual(detail)
    expect(await command(['--ready'])).toMatchObject({ status: 0 })
  })

  it('publishes its health on change only', async () => {
    await start({ env: { HUB_POLL_INTERVAL: '1s' } })
    await until('realtime', () => published().hubs?.home.realtime === 'connected')
    const before = world.observer.texts(HEALTH).length
    await world.request('home/cmd/refresh')
    await world.request('home/cmd/refresh')
    expect(world.observer.texts(HEALTH)).toHaveLength(before)
  })

  it('is not found with a configuration file that does not exist', async () => {
    await start()
    const { status: code, stderr } = await command(['--config', '/no/such/file.yaml'])
    expect(code).toBe(1)
    expect(stderr).toBe('hub2mqtt: /no/such/file.yaml: there is no such file\n')
  })

  it('reveals no secret anywhere', async () => {
    const url = await start()
    for (const path of ['/livez', '/readyz', '/healthz', '/metrics', '/nothing']) {
      expect(await (await fetch(url + path)).text()).not.toContain(KEY)
    }
    expect(world.observer.texts(HEALTH).join()).not.toContain(KEY)
  })
})

const good = { online: true, reason: null, read: true, task: 'alive' }

describe('a hub that is offline', () => {
  it('makes the daemon not ready but never unhealthy, and is named', async () => {
    const url = await start()
    world.hub.behave('answer-status', { status: 500 })
    await until('the change on MQTT', () => published().hubs?.home?.online === false)
    expect(published()).toMatchObject({ live: true, problems: ['hub home is offline: failed'] })
    expect(await status(`${url}/readyz`)).toBe(503)
    expect(await status(`${url}/livez`)).toBe(200)
    expect(await status(`${url}/healthz`)).toBe(200)
    expect(await command()).toMatchObject({ status: 0 })
    const { status: code, stdout } = await command(['--ready'])
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toEqual({ ready: false, problems: ['hub home is offline: failed'] })
  })
})

describe('a broker that is unreachable', () => {
  it('makes the daemon not ready but never unhealthy', async () => {
    const url = await start()
    await world.broker[Symbol.asyncDispose]()
    await expect.poll(() => status(`${url}/readyz`)).toBe(503)
    expect(await (await fetch(`${url}/healthz`)).json()).toMatchObject({
      problems: [expect.stringMatching(/^the MQTT broker is not connected/)],
    })
    expect(await status(`${url}/livez`)).toBe(200)
  })
})

describe.skipIf(mosquittoPath === undefined)('a broker that denies a topic', () => {
  it('is reported as a problem in the health on MQTT and over HTTP', async () => {
    const broker = await Mosquitto.start({ acl: ['topic readwrite #', 'topic deny hub2mqtt/home/app/com.athom.hue'] })
    const url = await start({ broker })
    world.clock.jump(15_000)
    const problem = 'retained topics that are not published (see the log): 1'
    await until('the problem on MQTT', () => published().problems.includes(problem))
    expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ ready: true, problems: [problem] })
  })
})

describe('the command', () => {
  it('exits with 1 when nothing listens, and when the listener is off', async () => {
    await start()
    await world.bridge.stop()
    expect(await command()).toMatchObject({ status: 1, stderr: expect.stringContaining('no answer from 127.0.0.1') })
    expect(await command([], { HUB2MQTT_HTTP_ENABLED: 'false' })).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('http.enabled is false'),
    })
  })

  it('finds the listener although the configuration now has errors', async () => {
    await start()
    expect(await command([], { HUB2MQTT_HUB_URL: 'nonsense', HUB2MQTT_NO_SUCH_OPTION: '1' })).toMatchObject({
      status: 0,
    })
  })

  it.each([
    ['a port in the environment', { HUB2MQTT_HTTP_PORT: '99999' }, {}],
    ['a port that is no number', { HUB2MQTT_HTTP_PORT: 'abc' }, {}],
    ['a host in the environment', { HUB2MQTT_HTTP_HOST: 'not a host!' }, {}],
    ['a port in the file', {}, { port: 99999 }],
    ['a host in the file', {}, { host: 'not a host!' }],
  ])('exits with 1 and the message of check-config for an invalid address: %s', async (_, env, wrong) => {
    await start()
    const file = join(temporaryFolder(), 'hub2mqtt.yaml')
    const port = Number(world.env['HTTP_PORT'])
    writeFileSync(file, JSON.stringify({ mqtt: { url: 'nonsense' }, http: { port, allowed_hosts: 5, ...wrong } }))
    const { status: code, stderr } = await command(['--config', file], { HUB2MQTT_HTTP_PORT: '', ...env })
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^hub2mqtt: http\.(host|port) .+\n$/) })
    const all = await runProgram(process.execPath, [PROGRAM, 'check-config', '--config', file], { env })
    expect(all.stderr).toContain(stderr)
  })

  it('ignores an invalid address in the file that the environment overrides', async () => {
    await start()
    const file = join(temporaryFolder(), 'hub2mqtt.yaml')
    writeFileSync(file, JSON.stringify({ mqtt: { url: 'nonsense' }, http: { port: 99999, host: 'not a host!' } }))
    const env = { HUB2MQTT_HTTP_PORT: world.env['HTTP_PORT'] ?? '', HUB2MQTT_HTTP_HOST: '0.0.0.0' }
    expect(await command(['--config', file], env)).toMatchObject({ status: 0 })
  })

  it('finds the listener although the file is no longer valid YAML', async () => {
    await start()
    const file = join(temporaryFolder(), 'hub2mqtt.yaml')
    const written = (port: string) => writeFileSync(file, `mqtt:\n  url: "mqtt://h\nhttp:\n  port: ${port}\n`)
    const ask = () => command(['--config', file], { HUB2MQTT_HTTP_PORT: '' })
    written(world.env['HTTP_PORT'] ?? '')
    expect(await ask()).toMatchObject({ status: 0, stdout: expect.stringContaining('"live":true') })
    // Nothing listens on the default port of this address. On 127.0.0.1, another program might.
    written('99999\n  host: 127.9.9.9')
    const why = 'the configuration has mistakes, so the daemon may listen at another address: see hub2mqtt check-config'
    expect(await ask()).toMatchObject({ status: 1, stderr: expect.stringContaining(why) })
  })
})
