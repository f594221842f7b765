import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer as createWebServer } from 'node:http'
import { createServer } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { listening, temporaryFolder } from '../support/at-end.ts'
import { BROKERS, startBroker } from '../support/brokers.ts'
import { Observer, retainedOn } from '../support/observer.ts'
import { freePort } from '../support/ports.ts'
import { execute, Process, runProgram } from '../support/process.ts'
import { PROGRAM } from '../support/program.ts'
import { available } from '../support/skipped.ts'
import { ownerOf } from '../support/start-token.ts'
import { until } from '../support/until.ts'
import { nodesInPath, performed } from './support.ts'

type Environment = Readonly<Record<string, string>>

/** Makes the program listen on any free port. */
const PORTS: Environment = { HUB2MQTT_HTTP_PORT: '0' }

/** Runs the program in a separate process until it exits, for tests that depend on the process. */
const program = (args: readonly string[], env: Environment = {}) =>
  runProgram(process.execPath, [PROGRAM, ...args], { env: { ...PORTS, ...env } })

/** Starts the program, which runs until it is stopped. */
const lasting = (args: readonly string[], env: Environment = {}) =>
  new Process(process.execPath, [PROGRAM, ...args], { env: { ...PORTS, ...env } })

describe('the program', () => {
  test('does not confuse another program with the daemon: neither for its health nor for its page', async () => {
    const other = createWebServer((_, response) => response.end('{"welcome":true}'))
    const port = await listening(other)
    const folder = temporaryFolder()
    const file = join(folder, 'token')
    await writeFile(file, `${'t'.repeat(43)}\n`, { mode: 0o600 })
    const env = { HUB2MQTT_HTTP_PORT: String(port), HUB2MQTT_HTTP_TOKEN_FILE: file }
    const refusal = {
      status: 1,
      stdout: '',
      stderr: `hub2mqtt: another program answers at 127.0.0.1:${port}\n`,
    }
    for (const args of [['health'], ['health', '--ready'], ['open']])
      expect(await performed(args, env)).toEqual(refusal)
    const any = { status: 1, stderr: expect.stringContaining('http.port is 0') }
    for (const args of [['health'], ['open']])
      expect(await performed(args, { HUB2MQTT_HTTP_PORT: '0', HUB2MQTT_HTTP_TOKEN_FILE: file })).toMatchObject(any)
  })

  test('prints its version and its help, and exits with 0', async () => {
    expect(await program(['--version'])).toEqual({ status: 0, stdout: `${packageJson.version}\n`, stderr: '' })
    const help = expect.stringMatching(/^hub2mqtt \[command\] \[options\]/)
    expect(await performed(['--help'])).toEqual({ status: 0, stdout: help, stderr: '' })
  })

  test('warns that times are in UTC if the machine has an unknown time zone, and a schedule depends on it', async () => {
    onTestFinished(() => void vi.unstubAllEnvs())
    const hub = { HUB2MQTT_HUB_URL: 'http://127.0.0.1:1', HUB2MQTT_HUB_API_KEY: 'key' }
    const quiet = { HUB2MQTT_GUARD_QUIET_HOURS: '23:00-07:00' }
    const window = { HUB2MQTT_UPDATES_POLICY: 'window', HUB2MQTT_UPDATES_WINDOW_START: '0 4 * * *' }
    const schedule = { HUB2MQTT_GUARD_SCHEDULE: '{"com.athom.hue":"0 4 * * 1"}' }
    const warned = async (env: Environment) => (await performed(['check-config'], { ...hub, ...env })).stderr
    vi.stubEnv('TZ', 'Europe/Berln')
    for (const env of [quiet, schedule]) expect(await warned(env)).toMatch(/warning: guard\.time_zone: missing, .*UTC/)
    expect(await warned(window)).toMatch(/warning: updates\.time_zone: missing, .*UTC/)
    expect(await warned({ ...quiet, HUB2MQTT_GUARD_TIME_ZONE: 'Europe/Berlin' })).toBe('')
    expect(await warned({})).toBe('')
    for (const TZ of ['CET-1CEST,M3.5.0,M10.5.0/3', ':CET-1CEST', '<+03>-3']) {
      vi.stubEnv('TZ', TZ)
      expect(await warned(quiet), TZ).toMatch(/warning: guard\.time_zone: missing, .*UTC/)
    }
    for (const TZ of ['UTC', ':Etc/UTC', 'Zulu', 'Europe/Berlin']) {
      vi.stubEnv('TZ', TZ)
      expect(await warned(window), TZ).toBe('')
    }
  })

  test('runs to its end if its output is not read', async () => {
    const env = { ...PORTS, HUB2MQTT_HUB_URL: 'http://127.0.0.1:1', HUB2MQTT_HUB_API_KEY: 'key' }
    const child = spawn(process.execPath, [PROGRAM, 'doctor'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.destroy()
    const [errors, [status]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    expect({ status, errors }).toEqual({ status: 1, errors: '' })
  })

  test.runIf(available(existsSync('/dev/full'), 'the test of a full disk', 'there is no /dev/full'))(
    'reports that its output cannot be written',
    async () => {
      await using child = new Process(process.execPath, [PROGRAM, '--help'], { output: openSync('/dev/full', 'w') })
      expect(await child.closed).toBe('code 1')
      expect(child.errors).toEqual(['hub2mqtt: the output cannot be written: ENOSPC: no space left on device, write'])
    },
  )

  test('prints the effective configuration without its secrets, and its warnings separately', async () => {
    const { status, stdout, stderr } = await performed(['check-config'], {
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

  test('reports each error in the configuration on a separate line, with the exit code for usage', async () => {
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

  test('reports in one line that the port of its broker is in use', async () => {
    const port = String(await listening(createServer()))
    const { status, stderr } = await program(['run'], {
      HUB2MQTT_HUB_URL: 'http://127.0.0.1:1',
      HUB2MQTT_HUB_API_KEY: 'canary',
      HUB2MQTT_MQTT_EMBEDDED_PORT: port,
    })
    expect(status).toBe(1)
    expect(stderr).toMatch(new RegExp(`^hub2mqtt: .*${port}.*\n$`))
  })
})

const hasScores = available(process.platform === 'linux', 'what Linux ends first', 'that is about Linux')

describe.runIf(hasScores)('when memory runs out', () => {
  const scoreOf = async (pid: number | 'self') => Number(await readFile(`/proc/${pid}/oom_score_adj`, 'utf8'))

  test('a short-lived command is killed first, and a long-lived one keeps the default', async () => {
    await using broker = await startBroker('aedes')
    await using call = lasting(['call', 'bridge/cmd/ping', '--timeout', '60s'], { HUB2MQTT_MQTT_URL: broker.url })
    await using hub = lasting(['emulate', '--port', '0', '--simulated'])
    await hub.untilLine('listening on')
    await until('its score', async () => (await scoreOf(call.pid)) === 1000)
    expect(await scoreOf(hub.pid)).toBe(await scoreOf('self'))
  })
})

describe('the keys of an emulated hub', () => {
  test('are printed once, listed and revoked', async () => {
    const data = join(temporaryFolder(), 'data')
    const keys = (...args: string[]) => performed(['emulate', 'keys', ...args, '--data', data])
    const made = await keys('create', '--scope', 'hub.app', '--name', 'tablet')
    expect(made).toEqual({
      status: 0,
      stdout: expect.stringMatching(/^[\w-]{43}\n$/),
      stderr: expect.stringMatching(/^id [0-9a-f]{8}; the key is not shown again\n$/),
    })
    const id = made.stderr.slice(3, 11)
    const listed = await keys('list')
    expect(listed).toEqual({ status: 0, stdout: expect.stringContaining(`${id}  20`), stderr: '' })
    expect(listed.stdout).not.toContain(made.stdout.trim())
    expect(await keys('revoke', id)).toMatchObject({ status: 0 })
    expect(await keys('list')).toEqual({ status: 0, stdout: '', stderr: '' })
  })
})

describe('a new app', () => {
  test('passes its test with the printed command, under each Node of this machine', async () => {
    const dir = temporaryFolder()
    const folder = join(dir, "a Developer's apps", 'com.example.greeter')
    const { stdout } = await performed(['emulate', 'new-app', 'com.example.greeter', folder])
    const [command = '', emulate] = [...stdout.matchAll(/^ {2}(.*)$/gm)].map(([, line]) => line)
    expect(emulate).toBe(`hub2mqtt emulate --app '${folder.replace("'", "'\\''")}'`)
    const nodes = nodesInPath()
    expect(nodes.size).toBeGreaterThan(0)
    for (const [version, node] of nodes) {
      const env = { ...process.env, NODE_OPTIONS: '', PATH: `${dirname(node)}${delimiter}${process.env['PATH']}` }
      expect(await execute('sh', ['-c', command], { env }), `${version}`).toMatch(/ pass 2\n/)
    }
  })
})

test.each([
  ['a file', import.meta.filename],
  ['below a file', join(import.meta.filename, 'app')],
  // Below /proc, Node's recursive `mkdir` never returns.
  ['below /proc', '/proc/hub2mqtt/app'],
])('a folder that cannot be created is reported in one line: %s', async (_, folder) => {
  const stderr = expect.stringMatching(/^hub2mqtt: .*: cannot be used as the folder of an app \(E[A-Z]+\)\n$/)
  expect(await performed(['emulate', 'new-app', 'com.example.app', folder])).toEqual({
    status: 2,
    stdout: '',
    stderr,
  })
  const keys = await performed(['emulate', 'keys', 'create', '--data', folder, '--scope', 'hub.app'])
  expect(keys).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/: cannot be used as the data folder .*\n$/),
  })
})

describe('the emulated hub as a program', () => {
  test.each([[['--simulated']], [[]]])('reports in one line that its port is in use, with %j', async (args) => {
    const port = await listening(createServer())
    expect(await performed(['emulate', '--port', String(port), ...args])).toEqual({
      status: 2,
      stdout: '',
      stderr: `hub2mqtt: cannot listen on 127.0.0.1:${port} (EADDRINUSE); choose another with --port\n`,
    })
  })

  test('creates no key if its data folder has one', async () => {
    const dir = temporaryFolder()
    const keys = ['emulate', 'keys', 'create', '--data', dir, '--scope', 'hub.app']
    const { stdout: key } = await performed(keys)
    await using hub = lasting(['emulate', '--port', '0', '--data', dir, '--control-port', '0'])
    const url = (await hub.untilLine('emulated hub listening on')).split(' ').at(-1)
    const headers = { authorization: `Bearer ${key.trim()}` }
    expect((await fetch(`${url}/api/manager/apps/app`, { headers })).status).toBe(200)
    await hub.untilLine('its control port')
    await hub.stop('SIGTERM')
    expect(hub.lines.filter((line) => line.includes('its API key'))).toEqual([])
  })

  test('listens where it prints, prints a key if none is given, has a port that makes it misbehave on request, and ends cleanly on SIGTERM', async () => {
    await using hub = lasting(['emulate', '--port', '0', '--simulated', '--control-port', '0'])
    const url = (await hub.untilLine('emulated hub listening on')).split(' ').at(-1)
    const [, key = ''] = /: (\w+) \(/.exec(await hub.untilLine('its API key')) ?? []
    const headers = { authorization: `Bearer ${key}` }
    expect((await fetch(`${url}/api/manager/apps/app`, { headers })).status).toBe(200)
    const control = (await hub.untilLine('its control port')).split(' ').at(-1)
    const ping = async () => (await fetch(`${url}/api/manager/system/ping`)).status
    expect(await ping()).toBe(200)
    await fetch(`${control}/behaviours/answer-status`, { method: 'PUT', body: '{"status":503}' })
    expect(await ping()).toBe(503)
    const { status, stderr } = await performed(['emulate', '--port', '0', '--control-port', new URL(`${control}`).port])
    expect(status).toBe(2)
    expect(stderr).toMatch(/^hub2mqtt: cannot open the control port \d+; is it in use\?\n$/)
    await hub.stop('SIGTERM')
    expect(hub.end).toBe('code 0')
  })

  test('shows the output of a user app and the ignored fields of its manifest, restarts it when a file changes, and ends cleanly on SIGINT', async () => {
    const dir = temporaryFolder()
    const manifest = { id: 'com.example.app', name: { en: 'App' }, version: '1.0.0', flow: {}, '\u001b[2J': 1 }
    const app = (text: string) =>
      writeFile(join(dir, 'app.js'), `export default () => console.log(${JSON.stringify(text)})`)
    await writeFile(join(dir, 'app.json'), JSON.stringify(manifest))
    await app('\u001b[31mone')
    await using hub = lasting(['emulate', '--port', '0', '--app', dir])
    await hub.untilLine('com.example.app: [hub] running')
    await app('two')
    await hub.untilLine('com.example.app: two')
    await hub.stop('SIGINT')
    const shown = hub.lines.filter((line) => line.startsWith('com.example.app: '))
    expect(shown).toContain('com.example.app: \\u001b[31mone')
    expect(shown).toContain('com.example.app: [hub] changed: app.js')
    expect(hub.errors).toEqual(['hub2mqtt: com.example.app 1.0.0: ignored fields in app.json: flow, \\u001b[2J'])
    expect(hub.end).toBe('code 0')
    const hostile = { ...manifest, settings: { ['\u001b[2J'.repeat(100)]: 1 } }
    await writeFile(join(dir, 'app.json'), JSON.stringify(hostile))
    const { status, stderr } = await performed(['emulate', '--port', '0', '--app', dir])
    expect(status).toBe(2)
    expect(stderr).toContain('\\u001b[2J')
    expect(stderr).not.toContain('\u001b')
  })

  test.each([
    [['--api-key', 'k=canary.scope'], 'scope'],
    [['--file', '/no/such/file'], '/no/such/file'],
  ])('refuses %j in one line, with the exit code for usage', async (args, named) => {
    const { status, stderr } = await performed(['emulate', '--port', '0', ...args])
    expect(status).toBe(2)
    expect(stderr).toMatch(/^hub2mqtt: [^\n]*\n$/)
    expect(stderr).toContain(named)
  })
})

test('the emulated hub and the demo say in one line that they cannot create a temporary folder', async () => {
  const TMPDIR = join(temporaryFolder(), 'missing')
  const stderr = `hub2mqtt: ${TMPDIR}: cannot be used for temporary files (ENOENT); set TMPDIR to another folder\n`
  for (const args of [['emulate', '--port', '0'], ['demo']])
    expect(await program(args, { TMPDIR })).toEqual({ status: 1, stdout: '', stderr })
})

describe('the demo', () => {
  test('with both ports configured as one that is in use, uses two others and prints them', async () => {
    const used = await listening(createServer())
    await using demo = lasting(['demo'], {
      HUB2MQTT_MQTT_EMBEDDED_PORT: String(used),
      HUB2MQTT_HTTP_PORT: String(used),
    })
    await demo.untilLine('Ctrl-C stops it')
    const text = demo.lines.join('\n')
    const port = Number(/mosquitto_sub -p (\d+) -v -t 'hub2mqtt\/#'/.exec(text)?.[1])
    expect(port).toBeGreaterThan(used)
    expect(text).toMatch(new RegExp(`mosquitto_pub -p ${port} -t 'hub2mqtt/home/app/\\S+/cmd/restart' -n`))
    const health = /Health and metrics: (\S+)/.exec(text)?.[1] ?? ''
    expect(await (await fetch(health)).json()).toMatchObject({ ready: true })
    const page = /The page: +(\S+)/.exec(text)?.[1] ?? ''
    const session = await fetch(new URL('api/session', page), { headers: ownerOf(page) })
    expect(await session.json()).toMatchObject({ access: 'full' })
    // The program must print the token only once, in the address of the page.
    expect(text.match(/token=/g)).toHaveLength(1)
    await using observer = await Observer.on(port, { protocol: '3.1.1' })
    await until('the hub', () => observer.last('hub2mqtt/home/state') === 'online')
  })

  test('connects an emulated hub to its own broker, and uses no broker or hub of the configuration; on a named broker, it uses its own topics and leaves nothing', async () => {
    await using broker = await startBroker(BROKERS[0])
    await using real = await EmulatedHub.start({ keys: { canary: [] } })
    const settings = {
      hubs: { cabin: { url: real.url, api_key: 'canary' }, flat: { url: real.url, api_key: 'canary' } },
      mqtt: { url: broker.url, base_topic: 'own' },
      fleet: { nats: 'nats://127.0.0.1:1', member: 'one' },
    }
    const file = join(temporaryFolder(), 'own.json')
    await writeFile(file, JSON.stringify(settings), { mode: 0o600 })
    await using observer = await Observer.on(broker.port, { protocol: '3.1.1' })
    await observer.publish('hub2mqtt/home/state', 'online', { retain: true })
    const port = await freePort()
    const environment = { HUB2MQTT_MQTT_URL: broker.url, HUB2MQTT_MQTT_EMBEDDED_PORT: String(port) }
    await using demo = lasting(['demo', '--config', file], environment)
    // Wait for this line, not for an open port: while the demo looks for a free port, it opens several briefly.
    await demo.untilLine('Ctrl-C stops it')
    expect(demo.lines.join('\n')).toContain(`mosquitto_pub -p ${port} -t 'own/home/app/`)
    await using own = await Observer.on(port, { protocol: '3.1.1' })
    await until('the hub', () => own.last('own/home/state') === 'online')
    await until('its apps', () => own.seen.some(({ topic }) => /^own\/home\/app\/[^/]+$/.test(topic)))
    // The bridge can publish the hub's health, because the demo's key permits reading it.
    await until('its health', () => own.last('own/home/health'), 30_000)
    await demo.stop('SIGTERM')
    expect(demo.end).toBe('code 0')
    expect(observer.seen).toHaveLength(1)
    const isOff = { HUB2MQTT_HTTP_ENABLED: 'false' }
    await using onBroker = lasting(['demo', '--config', file, '--broker', broker.url], isOff)
    await onBroker.untilLine('Ctrl-C stops it')
    await until('the hub', () => observer.last('hub2mqtt-demo/home/state') === 'online')
    await onBroker.stop('SIGTERM')
    expect(onBroker.end).toBe('code 0')
    expect(observer.seen.slice(1).filter(({ topic }) => !topic.startsWith('hub2mqtt-demo/'))).toEqual([])
    expect(observer.seen.filter(({ topic }) => /\/(cabin|flat)\//.test(topic))).toEqual([])
    expect([...(await retainedOn(broker.port))]).toEqual([['hub2mqtt/home/state', 'online']])
    expect(real.requests).toEqual([])
  })
})
