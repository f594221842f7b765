/** Tests set-ups that each have one cause and one remedy. */
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttp } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { lineOf } from '../../../src/cli/doctor/doctor.ts'
import { ConfigError } from '../../../src/config/mistakes.ts'
import type { EmulatedHubOptions } from '../../../src/emulator/hub.ts'
import { temporaryFolder } from '../../support/at-end.ts'
import { startBridge } from '../../support/bridge.ts'
import { Mosquitto, type MosquittoOptions, mosquittoPath } from '../../support/brokers.ts'
import { Authority, openssl } from '../../support/certificates.ts'
import { Observer, retainedOn } from '../../support/observer.ts'
import { accepts, freePort } from '../../support/ports.ts'
import { runProgram } from '../../support/process.ts'
import { PROGRAM } from '../../support/program.ts'
import { until } from '../../support/until.ts'
import { closeAtEnd, emulate, KEY, open, say } from './support.ts'

closeAtEnd()

type Variables = Readonly<Record<string, string>>

interface SetUp {
  /** Returns the variables that differ from a configuration that works. */
  readonly make: () => Promise<Variables> | Variables
  /** The cause and the remedy of the only finding. */
  readonly finding: RegExp
  /** The expected outcome; default: `problem`. `mistake`: the configuration is rejected. */
  readonly outcome?: 'problem' | 'note' | 'mistake'
  /** The error of the machine's clock. */
  readonly clockMs?: number
}

const HUB_PASSWORD = 'broker-password-canary'
const folder = temporaryFolder(afterAll)
/** The files of the certificate authority. */
const file = (name: string) => join(folder, name)

const mosquitto = async (options: MosquittoOptions = {}) => open.use(await Mosquitto.start(options))

async function hubUrl(options: EmulatedHubOptions = {}) {
  return (await emulate(options)).url
}

async function serve(server: Server) {
  open.defer(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

async function secure(certificate: string, ...more: string[]) {
  const port = await freePort()
  const own = [`certfile ${file(`${certificate}.pem`)}`, `keyfile ${file(`${certificate}.key`)}`]
  await mosquitto({ config: [`listener ${port} 127.0.0.1`, ...own, ...more] })
  await until('the TLS listener', () => accepts(port))
  return port
}

const atTls =
  (certificate: string, more: Variables = {}, ...config: string[]) =>
  async () => ({ MQTT_URL: `mqtts://127.0.0.1:${await secure(certificate, ...config)}`, ...more })
const CA = { MQTT_CA_FILE: file('ca.pem') }
const clientWith = (certificate: string, key = certificate) => ({
  ...CA,
  MQTT_CERT_FILE: file(`${certificate}.pem`),
  MQTT_KEY_FILE: file(`${key}.key`),
})
const ASKS_CLIENTS = [`cafile ${file('ca.pem')}`, 'require_certificate true']

const atBroker =
  (options: MosquittoOptions = {}, more: Variables = {}) =>
  async () => ({ MQTT_URL: (await mosquitto(options)).url, ...more })
const LOGIN = { MQTT_USERNAME: 'bridge', MQTT_PASSWORD: HUB_PASSWORD }

const atHub =
  (options: EmulatedHubOptions = {}, more: Variables = {}) =>
  async () => ({ HUB_URL: await hubUrl(options), ...more })

const atNats = (url: () => Promise<string>): SetUp => ({
  make: async () => ({ FLEET_NATS: (await url()).replace(/^\w+:/, 'nats:'), FLEET_MEMBER: 'a' }),
  finding: /no connection to nats:.* → .*4222/,
})

async function bridgeAt(url: string, hub: string, more: Variables = {}) {
  const bridge = startBridge({ HUB_URL: hub, HUB_API_KEY: KEY, MQTT_URL: url, DISCOVERY_FORMAT: 'off', ...more })
  open.use(bridge)
  await using observer = await Observer.on(Number(new URL(url).port))
  await observer.until('the bridge', () => observer.last('hub2mqtt/bridge/state') === 'online')
  const info = `hub2mqtt/${more['HUB_NAME'] ?? 'home'}/info`
  await observer.until('its hub', () => observer.last(info)?.includes('"realtime":"connected"'))
  return bridge
}

/** The set-ups that take longest come first, because several are examined at the same time. */
const SET_UPS: Readonly<Record<string, SetUp>> = {
  'a port that accepts connections and stays silent': {
    make: async () => ({ MQTT_URL: `mqtt://127.0.0.1:${await serve(createServer())}` }),
    finding: /accepts the connection but does not answer.* → .*check the address and the port/,
  },
  'a broker at the address of NATS': atNats(async () => (await mosquitto()).url),
  'a web server at the address of NATS': atNats(hubUrl),
  'nothing at the broker’s port': {
    make: async () => ({ MQTT_URL: `mqtt://127.0.0.1:${await freePort()}` }),
    finding:
      /broker: no connection to mqtt:.*nothing answers there.* → .*check the address and the port, and that the broker is running/,
  },
  'an unknown name of the broker': {
    make: () => ({ MQTT_URL: 'mqtt://no-such-broker.invalid' }),
    finding: /its name cannot be resolved.* → .*spelling.*IP address/,
  },
  'mqtt:// on a TLS port': {
    make: async () => ({ MQTT_URL: `mqtt://127.0.0.1:${await secure('server')}` }),
    finding: /the port speaks TLS.* → .*mqtts:\/\/127\.0\.0\.1:\d+/,
  },
  'mqtts:// on a port without TLS': {
    make: async () => ({ MQTT_URL: (await mosquitto()).url.replace('mqtt:', 'mqtts:') }),
    finding: /the port speaks MQTT without TLS.* → .*mqtt:\/\/127\.0\.0\.1:\d+.*or.*TLS/,
  },
  'ws:// on the port for MQTT': {
    make: async () => ({ MQTT_URL: `ws://127.0.0.1:${(await mosquitto()).port}` }),
    finding: /the port speaks MQTT without WebSocket.* → .*mqtt:\/\/127\.0\.0\.1:\d+/,
  },
  'wss:// on a port without TLS': {
    make: async () => {
      const port = await freePort()
      await mosquitto({ config: [`listener ${port} 127.0.0.1`, 'protocol websockets'] })
      await until('the listener', () => accepts(port))
      return { MQTT_URL: `wss://127.0.0.1:${port}` }
    },
    finding: /the port speaks HTTP without TLS.* → .*ws:\/\/127\.0\.0\.1:\d+.*or.*TLS/,
  },
  'mqtts:// on the port of a web server': {
    make: async () => ({ MQTT_URL: `mqtts://127.0.0.1:${await serve(createHttp())}` }),
    finding: /TLS settings are wrong: [a-z /]{1,40} → .*and the port/,
  },
  'a self-signed certificate': {
    make: atTls('alone'),
    finding: /self-signed certificate.* → .*mqtt\.ca_file.*--use-system-ca/,
  },
  'a certificate of an unconfigured authority': {
    make: atTls('server'),
    finding: /unable to verify.* → .*mqtt\.ca_file.*--use-system-ca/,
  },
  'a certificate of another authority than that of ca_file': {
    make: atTls('server', { MQTT_CA_FILE: file('alone.pem') }),
    finding: /unable to verify.* → .*mqtt\.ca_file to the certificate of that authority/,
  },
  'a certificate for another name': {
    make: atTls('elsewhere', CA),
    finding:
      /for other names: broker\.lan, \*\.home\.lan, 192\.0\.2\.1 → .*a name of the certificate in mqtt\.url, such as broker\.lan,/,
  },
  'a certificate that has expired': {
    make: atTls('old', CA),
    finding: /expired.* → (?=.*renew)(?=.*clock)/,
  },
  'a broker that requires a client certificate': {
    make: atTls('server', CA, ...ASKS_CLIENTS),
    finding: /refuses.*client certificate.* → .*mqtt\.cert_file and mqtt\.key_file/,
  },
  'a client certificate that has expired': {
    make: atTls('server', clientWith('old'), ...ASKS_CLIENTS),
    finding: /refuses the client certificate.*expired.* → .*mqtt\.cert_file and mqtt\.key_file/,
  },
  'a client certificate with the key of another': {
    make: atTls('server', clientWith('server', 'old')),
    finding: /the client certificate and the key do not belong together.* → .*mqtt\.cert_file.*mqtt\.key_file/,
  },
  'a wrong password at the broker': {
    make: atBroker({ users: { bridge: 'another' } }, LOGIN),
    finding: /refuses the user name or password.* → .*check mqtt\.username and mqtt\.password/,
  },
  'a broker that accepts only small messages': {
    make: atBroker({ config: ['message_size_limit 2000'] }),
    finding: /refuses a message of 16 KiB.* → .*message_size_limit/,
  },
  'a broker that accepts only small messages, under MQTT 3.1.1': {
    make: atBroker({ config: ['message_size_limit 2000'] }, { MQTT_PROTOCOL: '3.1.1' }),
    finding: /refuses a message of 16 KiB.* → .*message_size_limit/,
  },
  'a broker that accepts only small packets': {
    make: atBroker({ config: ['max_packet_size 2000'] }),
    finding: /refuses a message of 16 KiB.* → .*max_packet_size/,
  },
  'a broker without retained messages': {
    make: atBroker({ config: ['retain_available false'] }),
    finding: /the broker lacks retained messages.* → .*use another broker/,
  },
  'a web server at the broker’s port': {
    make: async () => ({ MQTT_URL: (await hubUrl()).replace('http:', 'mqtt:') }),
    finding: /speaks HTTP, not MQTT.* → .*check the address and the port/,
  },
  'another bridge on the base topic': {
    make: async () => {
      const { url } = await mosquitto()
      await bridgeAt(url, await hubUrl({ id: 'another' }), { HUB_NAME: 'attic' })
      return { MQTT_URL: url }
    },
    finding:
      /with other hubs than this configuration is online: version 0\.0\.0-test, since 20\d\d-.*Z, with attic at 127\.0\.0\.1:\d+.* → .*mqtt\.base_topic/,
  },
  'a discovery prefix to which no client listens': {
    make: atBroker({}, { DISCOVERY_FORMAT: 'device', DISCOVERY_PREFIX: 'hass' }),
    outcome: 'note',
    finding: /no client receives.*below hass.* → (?=.*discovery\.prefix)(?=.*discovery\.format: off)/,
  },
  'no sign of Home Assistant below the prefix, under MQTT 3.1.1': {
    make: atBroker({}, { MQTT_PROTOCOL: '3.1.1', DISCOVERY_FORMAT: 'device', DISCOVERY_PREFIX: 'hass' }),
    outcome: 'note',
    finding: /no sign of Home Assistant below hass.* → (?=.*discovery\.prefix)(?=.*discovery\.format: off)/,
  },
  'two names for one hub': {
    make: async () => {
      const url = await hubUrl()
      const hubs = join(folder, 'hubs')
      mkdirSync(hubs)
      for (const name of ['castle', 'gate'])
        writeFileSync(join(hubs, `${name}.yaml`), `url: ${url}\napi_key: ${KEY}\n`, { mode: 0o600 })
      return { HUBS_DIR: hubs }
    },
    finding: /hub gate: it is the same hub as castle.* → .*keep one of castle and gate/,
  },
  'wildcards in the base topic': {
    make: () => ({ MQTT_BASE_TOPIC: 'home/#' }),
    outcome: 'mistake',
    finding: /HUB2MQTT_MQTT_BASE_TOPIC.* → .*expected/,
  },
  'a missing secret file': {
    make: () => ({ MQTT_USERNAME: 'bridge', MQTT_PASSWORD_FILE: join(folder, 'no-such-file') }),
    outcome: 'mistake',
    finding: /HUB2MQTT_MQTT_PASSWORD_FILE.* → .*there is no such file/,
  },
  'a hub that accepts connections and stays silent': {
    make: async () => ({ HUB_URL: `http://127.0.0.1:${await serve(createServer())}`, HUB_TIMEOUT: '500ms' }),
    finding: /accepts the connection but does not answer.* → .*check the port: 80.*use https/,
  },
  'https:// at a hub’s port without TLS': {
    make: async () => ({ HUB_URL: (await hubUrl()).replace('http:', 'https:') }),
    finding: /does not speak TLS.* → .*use http:\/\//,
  },
  'http:// at a port with TLS': {
    make: async () => {
      const keys = { cert: readFileSync(file('server.pem')), key: readFileSync(file('server.key')) }
      return { HUB_URL: `http://127.0.0.1:${await serve(createHttps(keys))}` }
    },
    finding: /127\.0\.0\.1:\d+ speaks TLS.* → .*use https:\/\//,
  },
  'a broker at the hub’s address': {
    make: async () => ({ HUB_URL: (await mosquitto()).url.replace('mqtt:', 'http:') }),
    finding: /is an MQTT broker, not a hub.* → .*4859/,
  },
  'https:// at a broker’s port': {
    make: async () => ({ HUB_URL: (await mosquitto()).url.replace('mqtt:', 'https:') }),
    finding: /is an MQTT broker, not a hub.* → .*4859/,
  },
  'a broker with TLS at the hub’s address': {
    make: async () => ({ HUB_URL: `https://localhost:${await secure('server')}` }),
    finding: /certificate .* is not trusted.* → .*homeylocal.*NODE_EXTRA_CA_CERTS/,
  },
  'a portal that redirects requests to the hub': {
    make: async () => {
      const portal = createHttp((_, response) => response.writeHead(302, { location: 'http://login.example/' }).end())
      return { HUB_URL: `http://127.0.0.1:${await serve(portal)}` }
    },
    finding: /redirects elsewhere.* → .*login page.*proxy/,
  },
  'an address with the path of the API': {
    make: async () => ({ HUB_URL: `${await hubUrl()}/api` }),
    finding: /the server at http:.*\/api is not a hub.* → .*leave \/api out of the address/,
  },
  'a path_prefix that the hub does not have': {
    make: atHub({ prefix: 'managers' }, { HUB_PATH_PREFIX: 'manager' }),
    finding: /the hub answers at \/api\/managers, not at \/api\/manager.* → .*path_prefix: auto/,
  },
  'an API key without permissions': {
    make: atHub({ keys: { [KEY]: [] } }, { COMMANDS_READ_ONLY: 'true' }),
    finding: /the API key lacks hub\.app\.readonly.* → .*homey\.app\.readonly/,
  },
  'a proxy that forwards no WebSockets': {
    make: async () => {
      const hub = await emulate()
      hub.behave('refuse-handshake', { status: 403 })
      return { HUB_URL: hub.url }
    },
    finding: /no realtime channel.* → .*WebSockets; for a hub without this channel, set realtime: false$/,
  },
  'a clock that is far off': {
    make: () => ({}),
    clockMs: 90_000,
    finding: /differ by (89|90|91) s.* → .*NTP/,
  },
}

/** The process trusts the certificate authority of these set-ups, because a hub's authority cannot be configured. */
const TRUSTED: Readonly<Record<string, SetUp>> = {
  'a hub’s certificate for another name': {
    make: async () => ({ HUB_URL: `https://localhost:${await secure('elsewhere')}` }),
    finding: /for other names: broker\.lan, \*\.home\.lan, 192\.0\.2\.1 → .*use one of them/,
  },
  'a hub’s certificate that has expired': {
    make: async () => ({ HUB_URL: `https://localhost:${await secure('old')}` }),
    finding: /has expired or is not valid yet.* → (?=.*renew)(?=.*clock)/,
  },
}

const atDefaultPrefix = { DISCOVERY_FORMAT: 'device' }
const atOtherPrefix = { ...atDefaultPrefix, DISCOVERY_PREFIX: 'hass' }

/** @param filter the subscription of a client, like that of Home Assistant */
const withListener = (filter: string, more: Variables) => async () => {
  const { url, port } = await mosquitto()
  open.use(await Observer.on(port, { filter }))
  return { MQTT_URL: url, ...more }
}

const withRetained = (topic: string, more: Variables) => async () => {
  const { url, port } = await mosquitto()
  await using other = await Observer.on(port)
  await other.publish(topic, 'online', { retain: true, qos: 1 })
  await other.until('the message', () => other.last(topic))
  return { MQTT_URL: url, MQTT_PROTOCOL: '3.1.1', ...more }
}

const WORKING: Readonly<Record<string, () => Promise<Variables>>> = {
  'Home Assistant listens below another prefix': withListener('hass/sensor/+/config', atOtherPrefix),
  'Home Assistant listens with an older version': withListener('homeassistant/+/+/config', atDefaultPrefix),
  'a birth message is retained, under MQTT 3.1.1': withRetained('hass/status', {
    ...atOtherPrefix,
    DISCOVERY_BIRTH_TOPIC: 'hass/status',
  }),
  'another program has a device, under MQTT 3.1.1': withRetained('hass/sensor/0x00158d/battery/config', atOtherPrefix),
  'mqtts has the right authority': atTls('server', CA),
  async 'wss has the right authority'() {
    return { MQTT_URL: `wss://127.0.0.1:${await secure('server', 'protocol websockets')}`, ...CA }
  },
}

describe.skipIf(mosquittoPath === undefined || !openssl)('broken set-ups', () => {
  let hub: string
  let broker: string
  beforeAll(async () => {
    hub = await hubUrl()
    broker = (await mosquitto()).url
    const authority = new Authority(folder)
    authority.selfSigned('alone')
    authority.issue('server')
    authority.issue('elsewhere', { names: 'DNS:broker.lan,DNS:*.home.lan,IP:192.0.2.1' })
    authority.issue('old', { days: -1 })
  })

  /** Returns the findings other than `ok` for a working configuration with these changes. */
  async function wrong(given: Variables, clockMs = 0) {
    const variables = {
      ...(!('HUBS_DIR' in given) && { HUB_URL: given['HUB_URL'] ?? hub }),
      MQTT_URL: given['MQTT_URL'] ?? broker,
      DISCOVERY_FORMAT: 'off',
      ...given,
    }
    try {
      const { findings, report } = await say(variables, { ...systemClock, now: () => Date.now() + clockMs })
      const lines = findings.filter(({ outcome }) => outcome !== 'ok')
      return { lines: lines.map(lineOf), outcomes: lines.map(({ outcome }) => outcome), report }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      return {
        lines: error.mistakes.map((line) => line.replace(/: (?=[^:]*$)/, ':\n         → ')),
        outcomes: error.mistakes.map(() => 'mistake'),
        report: '',
      }
    }
  }

  async function expectOne({ make, ...wanted }: SetUp) {
    const { lines, outcomes, report } = await wrong(await make(), wanted.clockMs)
    expect(lines, lines.join('\n')).toHaveLength(1)
    expect(outcomes).toEqual([wanted.outcome ?? 'problem'])
    expect(lines[0]?.replace('\n         → ', ' → ')).toMatch(wanted.finding)
    for (const text of [lines.join(), report]) expect(text).not.toMatch(new RegExp(`${KEY}|${HUB_PASSWORD}`))
    expect(report).not.toMatch(/127\.0\.0\.1|broker\.lan|attic/)
  }

  test.concurrent.for(Object.entries(SET_UPS))('%s', ([, setUp]) => expectOne(setUp))

  test.concurrent.for(Object.entries(WORKING))('nothing is wrong if %s', async ([, make]) => {
    expect((await wrong(await make())).lines).toEqual([])
  })

  describe('with a trusted authority', () => {
    const known = getCACertificates('default')
    beforeAll(() => setDefaultCACertificates([...known, readFileSync(file('ca.pem'), 'utf8')]))
    afterAll(() => setDefaultCACertificates(known))

    test.concurrent.for(Object.entries(TRUSTED))('%s', ([, setUp]) => expectOne(setUp))
  })

  test.concurrent('with a running bridge nothing is wrong, and the bridge is not affected', async () => {
    const { url, port } = await mosquitto()
    const { url: hub, apps } = await emulate()
    await using homeAssistant = await Observer.on(port, { filter: 'homeassistant/+/+/config' })
    const bridge = await bridgeAt(url, hub, { DISCOVERY_FORMAT: 'device' })
    // Wait for the devices of all apps, because the hub's own device is published first.
    await homeAssistant.until(
      'all devices',
      () => new Set(homeAssistant.seen.map(({ topic }) => topic)).size === apps.size + 2,
    )
    const before = await retainedOf(port)
    await using observer = await Observer.on(port, { protocol: '5', retainAsPublished: true })
    // Wait for each topic, not for a number of messages, because more messages are published in between.
    await observer.until('all messages', () => before.keys().every((topic) => observer.last(topic) !== undefined))
    observer.forget()
    const { findings, problems } = await say({ HUB_URL: hub, MQTT_URL: url })
    expect(findings.filter(({ outcome }) => outcome !== 'ok')).toEqual([])
    expect(problems).toEqual([])
    expect(findings.map(lineOf)).toContainEqual(
      expect.stringMatching(
        /^ok .*the bridge with the base topic hub2mqtt is online: version 0\.0\.0-test, since .*home at/,
      ),
    )
    // The doctor must not retain messages, or make the bridge log a second bridge or a lost connection.
    const written = observer.seen.filter(({ retain }) => retain).map(({ topic }) => topic)
    expect(written.filter((topic) => topic !== 'hub2mqtt/bridge/health')).toEqual([])
    expect(bridge.lines.filter((line) => /"level":"(warn|error)"/.test(line))).toEqual([])
    expect(await retainedOf(port)).toEqual(before)
  })

  test.concurrent('a retained message of a fake bridge is shown shortened, and as plain text only', async () => {
    const { url, port } = await mosquitto()
    await using other = await Observer.on(port)
    const long = '\u001b[2J'.repeat(20_000)
    const hubs = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, i) => [`${i}${long.slice(0, 200)}`, { url_host: 'x', api: null }]),
    )
    const at = { started_at: '2026-01-01T00:00:00.000Z', mqtt: { protocol: '5' }, extensions: [], hubs }
    const write = (topic: string, text: string) =>
      other.publish(`hub2mqtt/bridge/${topic}`, text, { retain: true, qos: 1 })
    await write('info', JSON.stringify({ contract: 1, version: long, ...at }))
    await write('state', 'online')
    const { lines, report } = await wrong({ MQTT_URL: url })
    expect(lines).toEqual([expect.stringMatching(/other hubs than this configuration is online.*and 995 more/)])
    expect(report.length).toBeLessThan(3_000)
    expect(lines.join(report).replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
    for (const state of ['offline', 'nonsense', '']) {
      await write('state', state)
      expect((await wrong({ MQTT_URL: url })).lines).toEqual([])
    }
    await write('state', 'online')
    await write('info', '{')
    expect((await wrong({ MQTT_URL: url })).lines).toEqual([expect.stringContaining('its hubs are unknown')])
  })

  test.concurrent('an authority of the system is trusted with --use-system-ca, as the remedy says', async () => {
    const port = await secure('server')
    const env = {
      ...{ HUB2MQTT_HUB_URL: hub, HUB2MQTT_HUB_API_KEY: KEY, HUB2MQTT_DISCOVERY_FORMAT: 'off' },
      HUB2MQTT_MQTT_URL: `mqtts://localhost:${port}`,
      ...{ SSL_CERT_FILE: file('ca.pem'), NODE_OPTIONS: '--use-system-ca' },
    }
    const { status, stdout } = await runProgram(process.execPath, [PROGRAM, 'doctor'], {
      env: { ...process.env, ...env },
    })
    expect(status, stdout).toBe(0)
    expect(stdout).not.toMatch(/problem|note/)
  })
})

/** Leaves out the health of the bridge, which changes while nothing happens. */
const retainedOf = async (port: number) =>
  new Map([...(await retainedOn(port))].filter(([topic]) => !topic.endsWith('/bridge/health')))
