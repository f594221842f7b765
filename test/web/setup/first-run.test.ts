import { existsSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError } from '../../../src/config/mistakes.ts'
import { listening, temporaryFolder } from '../../support/at-end.ts'
import { Mosquitto, mosquittoPath } from '../../support/brokers.ts'
import { Observer } from '../../support/observer.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/until.ts'
import { at, begin, EMBEDDED, emulate, first, KEY, setUp, unfinished } from './house.ts'

/** The address of a hub to which the setup sends no request. */
const NOWHERE = 'http://127.0.0.1:1'

describe('without a hub in the configuration', () => {
  test('the page is shown, and supervisors see that the process is healthy and not ready', async () => {
    const { daemon, ask, port } = await first()
    expect(await daemon.untilLine('set it up at')).toContain(`http://127.0.0.1:${port}/`)
    expect((await ask('api/session')).answer).toMatchObject({ setup: true, access: 'full' })
    expect((await ask('healthz')).answer).toMatchObject({ live: true, problems: [expect.stringContaining('no hub')] })
    expect((await ask('readyz')).status).toBe(503)
    expect((await ask('api/live')).status).toBe(426)
    await daemon.stop()
    expect(daemon.end).toBe('code 0')
  })

  test('hub and broker are saved, and the apps are published on MQTT without a restart of the process', async () => {
    const hub = await emulate()
    const begun = await first()
    const { daemon, path, ask, apply } = begun
    const { status, text, answer } = await apply({ hub: at(hub.url), broker: EMBEDDED })
    const lines = `hubs:\n  home:\n    url: ${hub.url}\n    api_key: "***"\n`
    expect({ status, answer }).toEqual({ status: 200, answer: { written: path, lines } })
    const [app = ''] = hub.apps.keys()
    await daemon.untilLine('hub2mqtt started')
    await using observer = await Observer.on(begun.mqttPort)
    await until('the apps on MQTT', () => observer.last(`hub2mqtt/home/app/${app}`))
    await until('the bridge online', () => observer.last('hub2mqtt/bridge/state') === 'online')
    expect(daemon.alive).toBe(true)
    expect(readFileSync(path, 'utf8')).toContain(KEY)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    await until('the page of the bridge', async () => (await ask('readyz')).status === 200)
    expect((await ask('api/session')).answer).toMatchObject({ setup: false })
    expect((await ask('api/setup')).status).toBe(404)
    expect((await apply({ hub: at(hub.url), broker: EMBEDDED })).status).toBe(404)
    // The key must be only in the file.
    expect(text).not.toContain(KEY)
    expect([...daemon.lines, ...daemon.errors].join('\n')).not.toContain(KEY)
    // The address that logs in must stay valid, and must not be printed again.
    expect(daemon.lines.filter((line) => line.includes('?token='))).toHaveLength(1)
    expect((await ask('api/session')).answer).toMatchObject({ access: 'full' })
  })

  test('the log level of a file that is written by hand applies from the start of the bridge', async () => {
    const hub = await emulate()
    const { daemon, path, ask } = await first()
    writeFileSync(path, `log: { level: debug }\nhubs: { home: { url: "${hub.url}", api_key: ${KEY} } }\n`)
    daemon.signal('SIGHUP')
    await daemon.untilLine('hub2mqtt started')
    await until('the hub', async () => (await ask('api/commands/home/refresh', { body: {} })).status === 200)
    await daemon.untilLine('"level":"debug"')
  })

  test('existing content of the file is kept, including comments', async () => {
    const file = '# mine\nhubs:\nlog:\n  level: debug # for a while\napps: { exclude: [com.example.secret] }\n'
    const { ended, path, apply } = await setUp({ file })
    expect((await apply({ hub: at(NOWHERE), broker: EMBEDDED })).status).toBe(200)
    expect(await ended).toBeDefined()
    const text = readFileSync(path, 'utf8')
    expect(text).toMatch(/^# mine\nhubs:\n {2}home:\n/)
    expect(text).toContain('level: debug # for a while')
    expect(text).toContain('com.example.secret')
    expect(text).not.toContain('mqtt')
  })

  test('a file that the process may not write is not changed, and the lines for it are shown', async () => {
    const managed = join(temporaryFolder(), 'managed.yaml')
    const begun = await setUp({ file: 'log: { level: debug }\n' })
    renameSync(begun.path, managed)
    symlinkSync(managed, begun.path)
    expect((await begun.ask('api/setup')).answer).toMatchObject({ path: null })
    const own = { url: 'mqtt://127.0.0.1:1', username: 'me', password: 'pw-canary' }
    const { text, answer } = await begun.apply({ hub: at(NOWHERE), broker: own })
    const mqtt = 'mqtt:\n  url: mqtt://127.0.0.1:1\n  username: me\n  password: put-the-password-here\n'
    const lines = `hubs:\n  home:\n    url: ${NOWHERE}\n    api_key: put-the-key-here\n${mqtt}`
    expect(answer).toEqual({ written: null, lines })
    expect(text).not.toContain('canary')
    expect(readFileSync(managed, 'utf8')).toBe('log: { level: debug }\n')
    // The setup must continue to wait, and must finish after a user has added the lines.
    expect((await begun.ask('api/session')).answer).toMatchObject({ setup: true })
    begun.reload()
    expect(begun.lines.join('')).toContain('no hub configured')
    writeFileSync(managed, `hubs: { home: { url: "${NOWHERE}", api_key: ${KEY} } }\n`)
    begun.reload()
    expect(await begun.ended).toBeDefined()
  })

  test('without a file, the environment variables are shown', async () => {
    const { ask, apply } = await setUp({ file: null })
    const broker = { url: 'mqtt://broker:1883', username: 'me', password: 'secret-one' }
    expect((await apply({ hub: at(NOWHERE), broker })).answer).toEqual({
      written: null,
      lines: [
        'HUB2MQTT_HUB_NAME=home',
        `HUB2MQTT_HUB_URL=${NOWHERE}`,
        'HUB2MQTT_HUB_API_KEY=put-the-key-here',
        'HUB2MQTT_MQTT_URL=mqtt://broker:1883',
        'HUB2MQTT_MQTT_USERNAME=me',
        'HUB2MQTT_MQTT_PASSWORD=put-the-password-here\n',
      ].join('\n'),
    })
    expect((await ask('api/session')).answer).toMatchObject({ setup: true })
  })
})

describe('a setup reports the exact error', () => {
  test('with a hub', async () => {
    const hub = await emulate()
    const { testHub, lines } = await setUp()
    const said = async (changes: Parameters<typeof at>[1]) => (await testHub(at(hub.url, changes))).answer
    expect(await said({})).toMatchObject({ ok: true, message: expect.stringContaining(`${hub.apps.size} apps`) })
    const wrong = await testHub(at(hub.url, { api_key: 'wrong-canary' }))
    expect(wrong.answer).toEqual({
      ok: false,
      message: expect.stringMatching(/^the hub does not accept the API key → .*my\.homey\.app/),
    })
    expect(wrong.text + lines.join('')).not.toContain('canary')
    const nowhere = `http://127.0.0.1:${await freePort()}`
    expect(await said({ url: nowhere })).toMatchObject({ ok: false, message: expect.stringMatching(/refuses/) })
    expect(await said({ url: '192.168.1.20', api_key: '', name: 'Ho me' })).toEqual({
      ok: false,
      message: expect.stringMatching(/^name: expected.*\nurl: expected.*http:\/\/.*\napi_key: expected/),
    })
  })

  test('a hub that repeats the key does not reveal it to the page', async () => {
    const hub = await emulate()
    hub.behave('answer-status', { status: 500, description: `for ${KEY}`, operation: 'getApps' })
    const { testHub } = await setUp()
    const { answer, text } = await testHub(at(hub.url))
    expect(answer).toMatchObject({ ok: false, message: expect.stringContaining('The hub failed: 500') })
    expect(text).not.toContain(KEY)
  })

  test.skipIf(mosquittoPath === undefined)('with a broker', async () => {
    await using broker = await Mosquitto.start({ users: { bridge: 'right' } })
    const { testBroker } = await setUp()
    const login = (password: string) => ({ url: broker.url, username: 'bridge', password })
    expect((await testBroker(login('right'))).answer).toMatchObject({
      ok: true,
      message: expect.stringContaining('connected to'),
    })
    const wrong = await testBroker(login('wrong-canary'))
    expect(wrong.answer).toMatchObject({
      ok: false,
      message: expect.stringMatching(/refuses the user name or password.* → check mqtt\.username/),
    })
    expect(wrong.text).not.toContain('canary')
    expect((await testBroker({ ...EMBEDDED, url: 'http://x' })).answer).toMatchObject({
      ok: false,
      message: expect.stringContaining('url: expected an address that begins with mqtt://'),
    })
  })

  test('with the embedded broker, whose port is in use; then nothing is written', async () => {
    const { testBroker, apply, mqttPort, path } = await setUp()
    expect((await testBroker(EMBEDDED)).answer).toMatchObject({ ok: true })
    await listening(createServer(), mqttPort)
    const message = expect.stringContaining('another program already listens there')
    expect((await testBroker(EMBEDDED)).answer).toMatchObject({ ok: false, message })
    expect(await apply({ hub: at(NOWHERE), broker: EMBEDDED })).toMatchObject({
      status: 409,
      answer: { error: { code: 'conflict', message } },
    })
    expect(existsSync(path)).toBe(false)
  })

  test('with values that are not a valid configuration', async () => {
    const { apply, ask, path } = await setUp()
    const password = { url: 'mqtt://127.0.0.1', username: null, password: 'pw-canary' }
    for (const [wanted, message] of [
      [{ hub: at('ftp://x'), broker: EMBEDDED }, /^url: expected/],
      [{ hub: at('http://x', { name: 'bridge' }), broker: EMBEDDED }, /^name: expected/],
      [{ hub: at('http://x'), broker: password }, /^mqtt\.username: missing/],
    ] as const) {
      const { status, answer, text } = await apply(wanted)
      expect(status).toBe(400)
      expect(answer).toMatchObject({ error: { code: 'invalid', message: expect.stringMatching(message) } })
      expect(text).not.toContain('canary')
    }
    expect((await ask('api/setup/apply', { body: { hub: 1 } })).status).toBe(400)
    expect(existsSync(path)).toBe(false)
  })

  test('if a variable overrides the file, and keeps the credentials of an existing broker', async () => {
    const env = { MQTT_URL: 'mqtt://127.0.0.1:1', MQTT_USERNAME: 'me', MQTT_PASSWORD: 'of-the-environment' }
    const { ended, apply, path } = await setUp({ env })
    expect(await apply({ hub: at(NOWHERE), broker: { ...EMBEDDED, url: 'mqtt://other' } })).toMatchObject({
      status: 409,
      answer: { error: { message: expect.stringMatching(/^HUB2MQTT_MQTT_URL is set and overrides/) } },
    })
    expect(existsSync(path)).toBe(false)
    const same = { ...EMBEDDED, url: 'mqtt://127.0.0.1:1' }
    expect((await apply({ hub: at(NOWHERE), broker: same })).status).toBe(200)
    expect(await ended).toBeDefined()
    expect(readFileSync(path, 'utf8')).not.toMatch(/mqtt:|of-the-environment/)
  })

  test('if the file now names a hub, or has errors now', async () => {
    const { apply, path } = await setUp()
    const wanted = { hub: at(NOWHERE), broker: EMBEDDED }
    for (const [text, status] of [
      [`hubs: { other: { url: "${NOWHERE}", api_key: abc } }\n`, 409],
      ['hubs: {\n', 400],
    ] as const) {
      writeFileSync(path, text)
      expect((await apply(wanted)).status).toBe(status)
      expect(readFileSync(path, 'utf8')).toBe(text)
    }
  })
})

describe('a setup is for its owner', () => {
  const wanted = { hub: at(NOWHERE), broker: EMBEDDED }

  test('not for a page of another origin or name, nor for a token with read access', async () => {
    const token = 'token-that-may-look'
    const env = { HTTP_TOKENS: JSON.stringify({ wall: { token, access: 'read' } }) }
    const { ask, path } = await setUp({ env })
    const paths = ['api/setup/apply', 'api/setup/test-hub', 'api/setup/test-broker']
    for (const one of paths) {
      expect((await ask(one, { body: wanted, headers: { origin: 'http://evil.example' } })).status).toBe(403)
      expect((await ask(one, { body: wanted, headers: { authorization: `Bearer ${token}` } })).status).toBe(403)
    }
    expect((await ask('api/setup', { headers: { authorization: `Bearer ${token}` } })).status).toBe(403)
    expect(existsSync(path)).toBe(false)
  })

  test('not for any local client: it requires the token of the printed address, which stays valid when the bridge starts', async () => {
    const hub = await emulate()
    const { daemon, path, ask, askAsStranger } = await first()
    expect((await askAsStranger('api/session')).answer).toMatchObject({ access: 'local', login: 'token', setup: true })
    expect((await askAsStranger('api/setup')).status).toBe(401)
    for (const one of ['apply', 'test-hub', 'test-broker']) {
      expect((await askAsStranger(`api/setup/${one}`, { body: wanted })).status).toBe(401)
    }
    expect(existsSync(path)).toBe(false)
    const entered = await fetch(await daemon.page(), { redirect: 'manual' })
    const headers = {
      cookie: entered.headers.get('set-cookie')?.split(';')[0] ?? '',
      origin: new URL(entered.url).origin,
    }
    const body = { hub: at(hub.url), broker: EMBEDDED }
    expect((await askAsStranger('api/setup/apply', { body, headers })).status).toBe(200)
    await daemon.untilLine('hub2mqtt started')
    await until('the page of the bridge', async () => (await ask('readyz')).status === 200)
    expect((await askAsStranger('api/session', { headers })).answer).toMatchObject({ access: 'full', setup: false })
    expect((await ask('api/session')).answer).toMatchObject({ access: 'full', setup: false })
  })

  test('with a password only after a login, which stays valid when the bridge starts', async () => {
    const hub = await emulate()
    const { daemon, ask } = await first({ env: { HTTP_PASSWORD: 'long-enough-password' } })
    expect((await ask('api/setup')).status).toBe(401)
    const body = { hub: at(hub.url), broker: EMBEDDED }
    expect((await ask('api/setup/apply', { body })).status).toBe(401)
    const login = await ask('api/login', { body: { password: 'long-enough-password' } })
    const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? ''
    const headers = { cookie, origin: 'http://127.0.0.1' }
    expect((await ask('api/setup/apply', { body, headers })).status).toBe(403)
    const { origin } = new URL(/http:[^"]+/.exec(await daemon.untilLine('set it up at'))?.[0] ?? '')
    expect((await ask('api/setup/apply', { body, headers: { cookie, origin } })).status).toBe(200)
    await daemon.untilLine('hub2mqtt started')
    expect((await ask('api/session', { headers: { cookie } })).answer).toMatchObject({ access: 'full', setup: false })
  })

  test('and runs one test at a time', async () => {
    const hub = await emulate()
    hub.behave('never-answer')
    const { testHub, ask } = await setUp()
    const running = testHub(at(hub.url))
    running.catch(() => undefined)
    await until('the hub to be asked', () => hub.requests.length > 0)
    const refused = await ask('api/setup/test-hub', { body: at(hub.url) })
    expect(refused).toMatchObject({ status: 429, answer: { error: { code: 'busy' } } })
    expect(refused.headers.get('retry-after')).toBe('1')
  })
})

describe('if a setup would not help, the process ends with the error', () => {
  test.each([
    ['HTTP is off', { env: { HTTP_ENABLED: 'false' } }, 'there is no such file'],
    ['the page is off', { file: '', env: { HTTP_PAGE: 'false' } }, 'no hub configured'],
    ['something else is wrong too', { file: 'log: { level: loud }\n' }, 'log.level'],
    ['a hub is configured in part', { file: null, env: { HUB_URL: 'http://x' } }, 'api_key'],
    ['the listener is for other machines, without a password', { env: { HTTP_HOST: '0.0.0.0' } }, 'HTTP_PASSWORD'],
  ])('%s', async (_, options, words) => {
    const error: unknown = await unfinished(options).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ConfigError)
    expect(String(error)).toContain(words)
  })

  test('the port is in use', async () => {
    const port = await listening(createServer())
    const { daemon } = await begin({ file: '', env: { HTTP_PORT: String(port) } })
    expect(await daemon.closed).toBe('code 2')
    expect(daemon.lines.join('\n')).toContain('is in use')
    expect(daemon.errors.join('\n')).toContain('no hub configured')
  })

  test('an explicitly empty list of hubs is valid: the bridge runs without hubs', async () => {
    const { daemon, ask } = await begin({ file: 'hubs: {}\n' })
    await daemon.untilLine('hub2mqtt started')
    expect((await ask('api/session')).answer).toMatchObject({ setup: false })
  })
})
