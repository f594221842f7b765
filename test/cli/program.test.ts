import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { Observer } from '../support/observer.ts'
import { freePort } from '../support/ports.ts'
import { Process, runProgram } from '../support/process.ts'
import { until } from '../support/until.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

const temporary = () => mkdtempDisposable(join(tmpdir(), 'hub2mqtt-'))

type Environment = Readonly<Record<string, string>>

/** The program to its end, in an environment of its own. */
const program = (args: readonly string[], env: Environment = {}) =>
  runProgram(process.execPath, [MAIN, ...args], { env })

/** The program until it is told to end. */
const lasting = (args: readonly string[], env: Environment = {}) =>
  new Process(process.execPath, [MAIN, ...args], { env })

describe('the program', () => {
  test('tells its version and its help, and ends well', async () => {
    expect(await program(['--version'])).toEqual({ status: 0, stdout: `${packageJson.version}\n`, stderr: '' })
    const { status, stdout } = await program(['--help'])
    expect(status).toBe(0)
    expect(stdout).toMatch(/^hub2mqtt \[command\] \[options\]/)
  })

  test('prints the effective configuration without its secrets, its warnings apart', async () => {
    const { status, stdout, stderr } = await program(['check-config'], {
      HUB2MQTT_HUB_URL: 'http://10.0.0.1',
      HUB2MQTT_HUB_API_KEY: 'canary',
      HUB2MQTT_MQTT_URL: 'mqtts://10.0.0.2',
      HUB2MQTT_MQTT_REJECT_UNAUTHORIZED: 'false',
    })
    expect(status).toBe(0)
    expect(stdout).toContain('url: http://10.0.0.1')
    expect(stdout).toContain('api_key: "***"')
    expect(stderr).toMatch(/^warning: mqtt\.reject_unauthorized: .*\n$/)
    expect(stdout + stderr).not.toContain('canary')
  })

  test('names every mistake of the configuration on a line of its own, with the code for usage', async () => {
    const { status, stdout, stderr } = await program(['run'], {
      HUB2MQTT_HUB_URL: 'nowhere',
      HUB2MQTT_MQTT_QOS: 'canary',
      HUB2MQTT_HUB_POLL_INTERVAL: 'soon',
    })
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    const lines = stderr.trimEnd().split('\n')
    expect(lines.length).toBeGreaterThanOrEqual(2)
    for (const line of lines) expect(line).toMatch(/^hub2mqtt: \S/)
    expect(stderr).not.toContain('canary')
  })

  test('says in one line that the port of its broker is taken', async () => {
    await using hub = lasting(['emulate', '--port', '0'])
    const port = new URL((await hub.untilLine('listening on')).split(' ').at(-1) ?? '').port
    const { status, stderr } = await program(['run'], {
      HUB2MQTT_HUB_URL: 'http://127.0.0.1:1',
      HUB2MQTT_HUB_API_KEY: 'canary',
      HUB2MQTT_MQTT_EMBEDDED_PORT: port,
    })
    expect(status).toBe(1)
    expect(stderr).toMatch(new RegExp(`^hub2mqtt: .*${port}.*\n$`))
  })
})

describe('the emulated hub as a program', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('serves where it says, and %s ends it well', async (signal) => {
    await using hub = lasting(['emulate', '--port', '0', '--api-key', 'k=hub.app', '--apps', '3'])
    const url = (await hub.untilLine('emulated hub listening on')).split(' ').at(-1)
    const headers = { authorization: 'Bearer k' }
    const apps = await fetch(`${url}/api/manager/apps/app`, { headers })
    const listed: object = JSON.parse(await apps.text())
    expect(Object.keys(listed)).toHaveLength(3)
    expect((await fetch(`${url}/api/manager/apps/app`)).status).toBe(401)
    await hub.stop(signal)
    expect(hub.end).toBe('code 0')
  })

  test.each([
    [['--api-key', 'k=canary.scope'], 'scope'],
    [['--file', '/no/such/file'], '/no/such/file'],
  ])('refuses %j in one line, with the code for usage', async (args, named) => {
    const { status, stderr } = await program(['emulate', '--port', '0', ...args])
    expect(status).toBe(2)
    expect(stderr).toMatch(/^hub2mqtt: [^\n]*\n$/)
    expect(stderr).toContain(named)
  })
})

describe('the demo', () => {
  test('puts an emulated hub on its own broker, with nothing configured but the port, and ends well', async () => {
    const port = await freePort()
    await using demo = lasting(['demo'], { HUB2MQTT_MQTT_EMBEDDED_PORT: String(port) })
    await demo.untilPort(port)
    await using observer = await Observer.on(port, { protocol: '3.1.1' })
    await until('the hub', () => observer.last('hub2mqtt/home/state') === 'online')
    await until('its apps', () => observer.seen.some(({ topic }) => /^hub2mqtt\/home\/app\/[^/]+$/.test(topic)))
    await demo.stop('SIGTERM')
    expect(demo.end).toBe('code 0')
  })
})

describe('a daemon', () => {
  test('reads its configuration again at SIGHUP', async () => {
    await using folder = await temporary()
    const file = join(folder.path, 'hub2mqtt.yaml')
    const port = await freePort()
    const configure = (hubs: readonly string[]) =>
      writeFile(
        file,
        JSON.stringify({
          hubs: Object.fromEntries(hubs.map((name) => [name, { url: 'http://127.0.0.1:1', api_key: 'k' }])),
          mqtt: { embedded: { port } },
        }),
      )
    await configure(['home'])
    await using daemon = lasting(['run', '--config', file])
    await daemon.untilPort(port)
    await using observer = await Observer.on(port, { protocol: '3.1.1' })
    await until('the bridge', () => observer.last('hub2mqtt/bridge/state') === 'online')
    await configure(['home', 'cabin'])
    daemon.signal('SIGHUP')
    await until('the new hub', () => observer.last('hub2mqtt/cabin/state') === 'offline')
    await daemon.stop('SIGTERM')
    expect(daemon.end).toBe('code 0')
  })
})
