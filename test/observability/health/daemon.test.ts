import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { performed } from '../../cli/support.ts'
import { temporaryFolder } from '../../support/at-end.ts'
import { freePort } from '../../support/ports.ts'
import { runProgram } from '../../support/process.ts'
import { PROGRAM } from '../../support/program.ts'
import { until } from '../../support/until.ts'
import { KEY, World, type WorldOptions } from '../../support/world.ts'

const HEALTH = 'hub2mqtt/bridge/health'

async function start(options: WorldOptions = {}) {
  const port = String(await freePort())
  const world = await World.start({ ...options, env: { HTTP_ENABLED: 'true', HTTP_PORT: port, ...options.env } })
  const url = `http://127.0.0.1:${port}`
  return {
    ...{ world, port, url },
    published: () => JSON.parse(world.observer.last(HEALTH) ?? '{}'),
    status: async (path: string) => (await fetch(url + path)).status,
    command: (args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) =>
      performed(['health', ...args], { HUB2MQTT_HTTP_PORT: port, ...env }),
  }
}

type Daemon = Awaited<ReturnType<typeof start>>

async function startForTest(options: WorldOptions = {}): Promise<Daemon> {
  const daemon = await start(options)
  onTestFinished(() => daemon.world[Symbol.asyncDispose]())
  return daemon
}

const good = { online: true, reason: null, read: true, task: 'alive' }

describe('a daemon that works', () => {
  let daemon: Daemon
  let file: string
  beforeAll(async () => {
    daemon = await start({ env: { HUB_POLL_INTERVAL: '1s' } })
    file = join(temporaryFolder(afterAll), 'hub2mqtt.yaml')
  })
  afterAll(() => daemon.world[Symbol.asyncDispose]())

  it('reports that over HTTP, by its command and on MQTT, with the same content', async () => {
    const { url, port, published, command } = daemon
    expect(await (await fetch(`${url}/livez`)).text()).toBe('ok\n')
    expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ ready: true, problems: [] })
    const detail = await (await fetch(`${url}/healthz`)).json()
    expect(detail).toMatchObject({ live: true, ready: true, mqtt: { state: 'connected' }, hubs: { home: good } })
    await until('the same on MQTT', () => published().ready && published().hubs.home.realtime === 'connected')
    expect(published()).toEqual(detail)
    // Run the command as container engines do.
    const env = { ...process.env, HUB2MQTT_HTTP_PORT: port }
    const { status, stdout } = await runProgram(process.execPath, [PROGRAM, 'health'], { env })
    expect(status).toBe(0)
    expect(JSON.parse(stdout)).toEqual(detail)
    expect(await command(['--ready'])).toMatchObject({ status: 0 })
  })

  it('publishes its health on change only', async () => {
    const { world, published } = daemon
    await until('realtime', () => published().hubs?.home.realtime === 'connected')
    const before = world.observer.texts(HEALTH).length
    await world.request('home/cmd/refresh')
    await world.request('home/cmd/refresh')
    expect(world.observer.texts(HEALTH)).toHaveLength(before)
  })

  it('reveals no secret anywhere', async () => {
    for (const path of ['/livez', '/readyz', '/healthz', '/metrics', '/nothing']) {
      expect(await (await fetch(daemon.url + path)).text()).not.toContain(KEY)
    }
    expect(daemon.world.observer.texts(HEALTH).join()).not.toContain(KEY)
  })

  it('is found although the configuration now has errors', async () => {
    const env = { HUB2MQTT_HUB_URL: 'nonsense', HUB2MQTT_NO_SUCH_OPTION: '1' }
    expect(await daemon.command([], env)).toMatchObject({ status: 0 })
  })

  it('is found at the address in the environment although that in the file is invalid', async () => {
    writeFileSync(file, JSON.stringify({ mqtt: { url: 'nonsense' }, http: { port: 99999, host: 'not a host!' } }))
    expect(await daemon.command(['--config', file], { HUB2MQTT_HTTP_HOST: '0.0.0.0' })).toMatchObject({ status: 0 })
  })

  it('is found although the file is no longer valid YAML', async () => {
    const written = (port: string) => writeFileSync(file, `mqtt:\n  url: "mqtt://h\nhttp:\n  port: ${port}\n`)
    const ask = () => daemon.command(['--config', file], { HUB2MQTT_HTTP_PORT: '' })
    written(daemon.port)
    expect(await ask()).toMatchObject({ status: 0, stdout: expect.stringContaining('"live":true') })
    // On 127.9.9.9, nothing listens on the default port. On 127.0.0.1, another program might.
    written('99999\n  host: 127.9.9.9')
    const why = 'the configuration has mistakes, so the daemon may listen at another address: see hub2mqtt check-config'
    expect(await ask()).toMatchObject({ status: 1, stderr: expect.stringContaining(why) })
  })

  it('is not found when its listener is off, and when nothing listens', async () => {
    const refusal = (stderr: string) => ({ status: 1, stderr: expect.stringContaining(stderr) })
    const off = await daemon.command([], { HUB2MQTT_HTTP_ENABLED: 'false' })
    expect(off).toMatchObject(refusal('http.enabled is false'))
    await daemon.world.bridge.stop()
    expect(await daemon.command()).toMatchObject(refusal('no answer from 127.0.0.1'))
  })
})

it('a hub that is offline makes the daemon not ready but never unhealthy, and is named', async () => {
  const { world, published, status, command } = await startForTest()
  world.hub.behave('answer-status', { status: 500 })
  await until('the change on MQTT', () => published().hubs?.home?.online === false)
  expect(published()).toMatchObject({ live: true, problems: ['hub home is offline: failed'] })
  expect(await status('/readyz')).toBe(503)
  expect(await status('/livez')).toBe(200)
  expect(await status('/healthz')).toBe(200)
  expect(await command()).toMatchObject({ status: 0 })
  const ended = await command(['--ready'])
  expect(ended.status).toBe(1)
  expect(JSON.parse(ended.stdout)).toEqual({ ready: false, problems: ['hub home is offline: failed'] })
})
