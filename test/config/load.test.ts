import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { parse } from 'yaml'
import { describeConfig } from '../../src/config/describe.ts'
import { loadConfig, loadHttpConfig, variables } from '../../src/config/load.ts'
import type { Config, HubConfig } from '../../src/config/options.ts'
import { temporaryFolder } from '../support/at-end.ts'
import { variables as withPrefix } from '../support/bridge.ts'
import { HUB, HUB_ENV, load, mistakesOf, PEM } from './support.ts'

describe('the loader', () => {
  it('requires only a hub: everything else has a default', () => {
    expect(load({ env: HUB_ENV }).config).toMatchObject({
      hubs: { home: { url: 'http://192.168.1.20', api_key: 'key-of-the-hub', poll_interval: 60_000, realtime: true } },
      mqtt: { url: null, base_topic: 'hub2mqtt', username: null, password: null, reject_unauthorized: true },
      log: { level: 'info', format: 'auto' },
    })
    const embedded = { host: '127.0.0.1', port: 1883, max_payload: 1_048_576 }
    expect(load({ env: HUB_ENV }).config.mqtt.embedded).toEqual(embedded)
  })

  it('prefers the environment to the file, and the file to the default', () => {
    const yaml = `${HUB}mqtt:\n  base_topic: file\n  keepalive: 5s\nlog:\n  level: warn\n`
    const { config } = load({ yaml, env: { HUB2MQTT_MQTT_BASE_TOPIC: 'env', HUB2MQTT_LOG_LEVEL: '' } })
    expect(config.mqtt).toMatchObject({ base_topic: 'env', keepalive: 5000, protocol: 'auto' })
    expect(config.log.level).toBe('warn')
  })

  it('reads a list of rules from the environment as JSON', () => {
    const { config } = load({ env: { ...HUB_ENV, HUB2MQTT_COMMANDS_CALL: '[{"item":"system","methods":["GET"]}]' } })
    expect(config.commands.call).toMatchObject([{ item: 'system', methods: ['GET'] }])
  })

  it('reads JSON as well as YAML, with tabs too', () => {
    const yaml =
      '{\n\t"hubs": {\n\t\t"home": { "url": "http://h", "api_key": "k\\u0065y1" }\n\t},\n\t"mqtt": {"embedded": {"port": 1884}}\n}\n'
    const { config } = load({ yaml })
    expect(config.hubs['home']?.api_key).toBe('key1')
    expect(config.mqtt.embedded).toMatchObject({ host: '127.0.0.1', port: 1884 })
  })

  it.each([
    ['in the file', { yaml: `${HUB}mqtt: { embedded: { ws_port: 0 } }` }, 'hub2mqtt.yaml line 5'],
    ['in JSON', { yaml: JSON.stringify({ mqtt: { embedded: { ws_port: 0 } } }), env: HUB_ENV }, 'hub2mqtt.yaml line 1'],
    [
      'in the environment',
      { env: { ...HUB_ENV, HUB2MQTT_MQTT_EMBEDDED_WS_PORT: '0' } },
      'HUB2MQTT_MQTT_EMBEDDED_WS_PORT',
    ],
  ])('accepts the removed mqtt.embedded.ws_port: 0 %s with a warning that states its place', (_, given, where) => {
    const { config, warnings } = load(given)
    expect(warnings).toEqual([
      `mqtt.embedded.ws_port (${where}): the embedded broker has not supported WebSocket since 0.3.0; remove the option; for MQTT over WebSocket, set mqtt.url to a broker that supports it, such as Mosquitto`,
    ])
    expect(config.mqtt.embedded).toEqual({ host: '127.0.0.1', port: 1883, max_payload: 1_048_576 })
  })

  it('treats a removed option without a value as not set', () => {
    expect(load({ yaml: `${HUB}mqtt: { embedded: { ws_port: , ws_origins: } }` }).warnings).toEqual([])
  })

  it('reads the file in HUB2MQTT_CONFIG, unless --config names another one', () => {
    const env = { ...HUB_ENV, HUB2MQTT_CONFIG: 'b.yaml' }
    const readFile = (path: string) => `mqtt: { base_topic: from-${path.charAt(0)} }`
    expect(loadConfig({ env, readFile }).config.mqtt.base_topic).toBe('from-b')
    expect(loadConfig({ file: 'a.yaml', env, readFile }).config.mqtt.base_topic).toBe('from-a')
  })

  it('treats empty variables, and keys without a value, as not set', () => {
    const env = { ...HUB_ENV, HUB2MQTT_MQTT_URL: '', HUB2MQTT_MQTT_PASSWORD: undefined, HUB2MQTT_HUB_TIMEOUT: '' }
    expect(load({ yaml: 'mqtt:\n  url:\n  embedded:\nlog:\nhubs:\n', env }).config).toEqual(
      load({ env: HUB_ENV }).config,
    )
  })

  it('ignores variables of other programs', () => {
    expect(load({ env: { ...HUB_ENV, PATH: '/bin', HUB2MQTTX: '1', MQTT_URL: 'x' } }).config.mqtt.url).toBeNull()
  })

  it('reads from disk by default, with paths relative to the file', () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'key'), '  secret-from-disk\r\n')
    writeFileSync(join(folder, 'config.yaml'), '\uFEFFhubs: { home: { url: http://h, api_key_file: key } }\n')
    const { config, secrets } = loadConfig({ file: join(folder, 'config.yaml'), env: {} })
    expect(config.hubs['home']?.api_key).toBe('secret-from-disk')
    expect(secrets).toEqual(['secret-from-disk'])
  })

  it('refuses a file, and a file of a secret, that is not valid UTF-8', () => {
    const folder = temporaryFolder()
    const config = join(folder, 'config.yaml')
    const mistake = /cannot be read: it is not valid UTF-8 text/
    writeFileSync(config, Buffer.from(`${HUB}mqtt: { base_topic: "h\xfcb" }\n`, 'latin1'))
    expect(() => loadConfig({ file: config, env: {} })).toThrow(mistake)
    writeFileSync(join(folder, 'password'), Buffer.from('gr\xfcn', 'latin1'))
    writeFileSync(config, `${HUB}mqtt: { username: me, password_file: password }\n`)
    expect(() => loadConfig({ file: config, env: {} })).toThrow(mistake)
  })

  it('has a variable for every option, each with its own name', () => {
    expect(new Set(variables).size).toBe(variables.length)
    for (const name of ['HUB_URL', 'HUB_API_KEY', 'HUB_API_KEY_FILE', 'HUB_NAME', 'MQTT_PASSWORD_FILE', 'CONFIG']) {
      expect(variables).toContain(`HUB2MQTT_${name}`)
    }
    expect(variables).not.toContain('HUB2MQTT_MQTT_USERNAME_FILE')
  })

  it('infers types from the table', () => {
    expectTypeOf<HubConfig['poll_interval']>().toEqualTypeOf<number>()
    expectTypeOf<HubConfig['path_prefix']>().toEqualTypeOf<'auto' | 'manager' | 'managers'>()
    expectTypeOf<Config['mqtt']['url']>().toEqualTypeOf<readonly string[] | null>()
    expectTypeOf<Config['mqtt']['embedded']['port']>().toEqualTypeOf<number>()
    expectTypeOf<Config['mqtt']['protocol']>().toEqualTypeOf<'auto' | '5' | '3.1.1'>()
    // @ts-expect-error there is no such option
    expectTypeOf<Config['mqtt']['port']>()
  })
})

describe('the part for a program other than the daemon', () => {
  const load = (text: string, env = {}) => loadHttpConfig({ file: 'a.yaml', env, readFile: () => text })
  const http = (text: string, env = {}) => load(text, env).http

  it('is the same as in the whole configuration', () => {
    const text = `${HUB}http: { port: 1234, host: "::1" }`
    const whole = loadConfig({ file: 'a.yaml', env: {}, readFile: () => text }).config
    expect(whole.http).toMatchObject(http(text))
    expect({ ...whole.http, port: 99 }).toMatchObject(http(text, { HUB2MQTT_HTTP_PORT: '99' }))
  })

  it('is read from a configuration with errors elsewhere, without reading its secrets', () => {
    expect(http('mqtt: { password_file: none }\nlgo: {}\nhttp: { port: 1234, host: 5 }')).toEqual({
      enabled: true,
      host: '127.0.0.1',
      token_file: null,
      port: 1234,
      allowed_hosts: [],
      page: true,
    })
  })

  const HTTP = 'http:\n  host: "::1"\n  allowed_hosts:\n    - host.lan\n\n  # port: 8\n  port: 21223 # once 8\n'
  const MQTT = 'mqtt:\n  url: mqtt://h:1\n  embedded: { host: h, port: 2 }\n'
  const TOKENS = '"tokens": { "a": { "token": "long-enough-for-it", "access": "read" } }'
  const JSON_TEXT = `{\n  "mqtt": { "embedded": { "port": 2 } },\n  "http": { ${TOKENS}, "host": "::1", "port": 21223 }\n}`

  it.each([
    ['a tab elsewhere', MQTT.replace('  url', '\turl') + HTTP],
    ['a tab', MQTT + HTTP.replaceAll('  ', '\t')],
    ['a key that occurs twice', MQTT + HTTP + MQTT],
    ['a section that occurs twice', `http:\n  page: false\n${HTTP}${MQTT}`],
    ['a missing colon elsewhere', MQTT.replace('mqtt:', 'mqtt') + HTTP],
    ['a missing colon after the section', MQTT + HTTP.replace('http:', 'http')],
    ['a missing colon', MQTT + HTTP.replace('port:', 'port')],
    ['a comment without indentation', HTTP.replace('  # port', '#  page: true\n  # port') + MQTT + MQTT],
    [
      'a value that is an address',
      `${JSON_TEXT.replace('{\n', '{\n  "hubs": { "a": { "url": "http://h" } },\n').slice(0, -3)}`,
    ],
    ['a missing space', MQTT + HTTP.replace('port: ', 'port:')],
    ['an open quote before', MQTT.replace('mqtt:/', '"mqtt:/') + HTTP + MQTT],
    ['an open quote', MQTT + HTTP.replace('::1"', '::1')],
    ['an open quote after', HTTP + MQTT.replace('mqtt:/', "'mqtt:/")],
    ['a second document', `${HTTP}---\n${MQTT}`],
    ['a second document with it', `${MQTT}---\n${HTTP}`],
    ['an open brace', `${MQTT}http: { host: "::1", port: 21223\n${MQTT}`],
    ['an open brace before', `${MQTT.replace(' }', '')}${HTTP}`],
    ['CRLF and a byte order mark', `\uFEFF${HTTP}${MQTT}${MQTT}`.replaceAll('\n', '\r\n')],
    ['JSON without a comma', JSON_TEXT.replace('},\n', '}\n')],
    ['JSON with an open quote', JSON_TEXT.replace('"embedded"', '"embedded')],
    ['JSON with an open quote in the section', JSON_TEXT.replace('"read"', '"read')],
    ['JSON without its end', JSON_TEXT.slice(0, -4).replaceAll('\n', '')],
  ])('is found in a file that cannot be read as YAML or JSON: %s', (_, text) => {
    expect(http(text)).toMatchObject({ enabled: true, host: '::1', port: 21223 })
    expect(http(text, { HUB2MQTT_HTTP_PORT: '99' })).toMatchObject({ host: '::1', port: 99 })
  })

  it('takes the default for what the file no longer shows, and says so', () => {
    expect(load(`${HTTP}${MQTT}`).hasMistakes).toBe(false)
    const broken = load(`${MQTT}${MQTT}http:\n  page: true\n`)
    expect(broken).toMatchObject({ http: { host: '127.0.0.1', port: 8099 }, hasMistakes: true })
    expect(load(HTTP.replace('21223', '99999'))).toMatchObject({ http: { host: '::1', port: 8099 }, hasMistakes: true })
    const guessed = load(`${HTTP.replace('21223', '99999')}${MQTT}${MQTT}`)
    expect(guessed).toMatchObject({ http: { port: 8099 }, ofAddress: [] })
  })

  it('lists the mistakes of host and port without the secrets of the file, and no others', () => {
    const text = 'http: { host: "a key!", port: 99999, enabled: 5, password: "a key!" }\nlgo: 1'
    expect(load(text).ofAddress).toEqual([
      'http.host (a.yaml line 1): expected a host name or IP address such as 127.0.0.1',
      'http.port (a.yaml line 1): expected a whole number from 0 to 65535, but it is 99999',
    ])
  })
})

describe('the hubs', () => {
  const TWO = `${HUB}  cabin:\n    url: http://10.0.0.2\n    api_key: key-of-the-cabin\n    poll_interval: 2m\n`

  it('can be any number in the file, each with its own values', () => {
    const { hubs } = load({ yaml: TWO }).config
    expect(Object.keys(hubs)).toEqual(['home', 'cabin'])
    expect(hubs['cabin']?.poll_interval).toBe(120_000)
    expect(hubs['home']?.poll_interval).toBe(60_000)
  })

  it('include the single hub of the environment, with its name', () => {
    expect(Object.keys(load({ env: { ...HUB_ENV, HUB2MQTT_HUB_NAME: 'attic' } }).config.hubs)).toEqual(['attic'])
  })

  it('get values of the environment over those in the file, by their name', () => {
    const { hubs } = load({ yaml: TWO, env: { HUB2MQTT_HUB_NAME: 'cabin', HUB2MQTT_HUB_TIMEOUT: '1s' } }).config
    expect([hubs['cabin']?.timeout, hubs['home']?.timeout]).toEqual([1000, 10_000])
  })

  it("get the environment's values if the file has only one and the environment names none", () => {
    const yaml = 'hubs: { cabin: { url: http://h } }'
    expect(load({ yaml, env: { HUB2MQTT_HUB_API_KEY: 'abcd' } }).config.hubs).toMatchObject({
      cabin: { api_key: 'abcd' },
    })
  })

  it('include the hub of the environment in addition to those of the file', () => {
    const env = { ...HUB_ENV, HUB2MQTT_HUB_NAME: 'third' }
    expect(Object.keys(load({ yaml: TWO, env }).config.hubs)).toEqual(['home', 'cabin', 'third'])
  })

  it('may be missing if the caller provides its own', () => {
    expect(load({ requireHub: false }).config.hubs).toEqual({})
    expect(load({ requireHub: false, env: { HUB2MQTT_HUB_NAME: 'x' } }).config.hubs).toEqual({})
  })

  it('may be named like an option of a hub', () => {
    const yaml = 'hubs: { timeout: { url: http://h, api_key: abcd } }'
    expect(Object.keys(load({ yaml }).config.hubs)).toEqual(['timeout'])
  })
})

describe('the secrets', () => {
  it.each([
    ['the file over nothing', 'api_key: in-file', {}, 'in-file'],
    ['a file named in the file', 'api_key_file: key1', {}, 'one'],
    ['the variable over the key', 'api_key: in-file', { HUB2MQTT_HUB_API_KEY: 'in-env' }, 'in-env'],
    ['the variable over a file named in the file', 'api_key_file: key1', { HUB2MQTT_HUB_API_KEY: 'in-env' }, 'in-env'],
    ['a file named by a variable over the key', 'api_key: in-file', { HUB2MQTT_HUB_API_KEY_FILE: 'key2' }, 'two'],
    [
      'a variable over a missing file, which may exist only elsewhere',
      'api_key_file: gone',
      { HUB2MQTT_HUB_API_KEY: 'in-env' },
      'in-env',
    ],
    [
      'a file named by a variable over a missing one',
      'api_key_file: gone',
      { HUB2MQTT_HUB_API_KEY_FILE: 'key2' },
      'two',
    ],
    [
      'a file named by a variable over one named in the file',
      'api_key_file: key1',
      { HUB2MQTT_HUB_API_KEY_FILE: 'key2' },
      'two',
    ],
  ])('are read with priority for %s', (_, line, env, wanted) => {
    const yaml = `hubs: { home: { url: http://h, ${line} } }`
    expect(load({ yaml, env, files: { key1: 'one\n', key2: ' two ' } }).config.hubs['home']?.api_key).toBe(wanted)
  })

  it('are all listed for the log, also one that another overrides', () => {
    const yaml = `${HUB}mqtt: { username: u, password: "p ä" }`
    const { secrets } = load({ yaml, env: { HUB2MQTT_HUB_API_KEY: 'other-key' } })
    expect(new Set(secrets)).toEqual(new Set(['key-of-the-hub', 'other-key', 'p ä']))
  })

  it('are masked in the effective configuration, which is a file that would load again', () => {
    const settings = 'settings: { publish: { a: { one: switch, two: { type: number, name: Two, min: 0, max: 1 } } } }'
    const guard =
      'guard: { retry: [90s, 7d], change_limit: { a: 2h }, memory_limit: { a: 1MiB }, unavailable: { a: { devices: all, for: 10m } } }'
    const yaml = `${HUB}mqtt: { username: u, password: hunter22, keepalive: 90s, protocol: 5 }\n${settings}\n${guard}`
    const { config } = load({ yaml })
    const text = describeConfig(config)
    expect(text).not.toMatch(/key-of-the-hub|hunter22/)
    expect(parse(text)).toMatchObject({
      hubs: { home: { api_key: '***', poll_interval: '1m' } },
      mqtt: { url: null, password: '***', keepalive: '90s', embedded: { max_payload: '1MiB' } },
    })
    const again = load({ yaml: text.replace('"***"', 'key-of-the-hub').replace('"***"', 'hunter22') })
    expect(again.config).toEqual(config)
  })
})

it('ignores the variables that Kubernetes sets for a Service with the name hub2mqtt', () => {
  const service = { SERVICE_HOST: '10.0.0.1', SERVICE_PORT: '8099', SERVICE_PORT_HTTP: '8099' }
  const port = { PORT: 'tcp://10.0.0.1:8099', PORT_8099_TCP: 'tcp://10.0.0.1:8099', PORT_8099_TCP_ADDR: '10.0.0.1' }
  expect(load({ env: { ...HUB_ENV, ...withPrefix({ ...service, ...port }) } }).warnings).toEqual([])
  expect(mistakesOf({ env: { ...HUB_ENV, HUB2MQTT_PORT: '8099' } })).toEqual([
    expect.stringMatching(/^HUB2MQTT_PORT: /),
  ])
})

describe('warnings', () => {
  it.each([
    [
      'a certificate that is not checked',
      'url: mqtts://b, reject_unauthorized: false',
      /reject_unauthorized: .*ca_file/,
    ],
    ['certificates without encryption', 'url: mqtt://b, ca_file: ca.pem', /mqtt\.url: .*mqtts/],
  ])('are shown for %s', (_, mqtt, line) => {
    const { warnings } = load({ yaml: `${HUB}mqtt: { ${mqtt} }`, files: { 'ca.pem': PEM } })
    expect(warnings).toEqual([expect.stringMatching(line)])
  })

  it.each(['"key-of-the-hub"', "'key-of-the-hub'"])('are shown for a variable with quotes, as in %s', (key) => {
    const { config, warnings } = load({ env: { ...HUB_ENV, HUB2MQTT_HUB_API_KEY: key } })
    expect(config.hubs['home']?.api_key).toBe(key)
    expect(warnings).toEqual([expect.stringMatching(/^HUB2MQTT_HUB_API_KEY: the quotes .* remove them$/)])
  })

  it.each(['homeassistant', 'homeassistant/x'])('are shown for the base topic %s, as other devices use it', (topic) => {
    const { warnings } = load({ yaml: `${HUB}mqtt: { base_topic: ${topic} }` })
    expect(warnings).toEqual([expect.stringMatching(/^mqtt\.base_topic: .*discovery\.prefix/)])
  })

  it.each([
    ['a plain configuration', ''],
    ['a discovery prefix below the base topic', 'discovery: { prefix: hub2mqtt/ha }'],
  ])('are not shown for %s', (_, yaml) => expect(load({ yaml: HUB + yaml }).warnings).toEqual([]))
})

it('fleet.nats accepts one address as well as a list of them, in the file and in the environment', () => {
  const yaml = `${HUB}mqtt: {url: "mqtt://broker:1883"}\n`
  const natsOf = (given: Parameters<typeof load>[0]) => load(given).config.fleet.nats
  const [one, other] = ['nats://nats-0:4222', 'tls://nats-1:4222']
  expect(natsOf({ yaml: `${yaml}fleet: {nats: "${one}"}\n` })).toEqual([one])
  expect(natsOf({ yaml: `${yaml}fleet: {nats: ["${one}", "${other}", "${one}"]}\n` })).toEqual([one, other])
  expect(natsOf({ yaml: `${yaml}fleet: {nats: []}\n` })).toEqual([])
  expect(natsOf({ yaml })).toEqual([])
  expect(natsOf({ yaml, env: { HUB2MQTT_FLEET_NATS: one } })).toEqual([one])
  expect(natsOf({ yaml, env: { HUB2MQTT_FLEET_NATS: `${one},${other}` } })).toEqual([one, other])
  for (const wrong of ['mqtt://x:1', 'nats://user:pass@x', '7', '[7]']) {
    expect(mistakesOf({ yaml: `${yaml}fleet: {nats: ${wrong}}\n` }).join()).toMatch(/^fleet\.nats.*expected an address/)
  }
})
