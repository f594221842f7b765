import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { HUB, HUB_ENV, mistakesOf, PEM, PEM_KEY } from './support.ts'

/** Matches one line: `…` stands for any text and `<n>` for a number. */
const lineLike = (pattern: string) =>
  expect.stringMatching(`^${RegExp.escape(pattern).replaceAll('…', '.*').replaceAll(RegExp.escape('<n>'), '\\d+')}$`)

describe('an error is one line that names the key, its place, and the fix', () => {
  it.each<[text: string, line: string]>([
    ['mqtt: { pasword: x }', 'mqtt.pasword (hub2mqtt.yaml line 5): …did you mean password?'],
    ['hub: { url: x }', 'hub (… line 5): there is no such option; did you mean hubs?'],
    ['log: { colour: x }', 'log.colour …there are level, format'],
    ['    timeot: 1s', 'hubs.home.timeot … line 5…did you mean timeout?'],
    // The names that other programs use for these options:
    ['mqtt: { user: a }', 'mqtt.user …did you mean username?'],
    ['mqtt: { pass: a }', 'mqtt.pass …did you mean password?'],
    ['mqtt: { server: a }', 'mqtt.server …did you mean url?'],
    ['mqtt: { host: a }', 'mqtt.host …did you mean url?'],
    ['    host: a', 'hubs.home.host …did you mean url?'],
    ['mqtt.url: x', 'mqtt.url …nested keys…'],
    ['mqtt: { embedded.port: 1 }', 'mqtt.embedded.port …nested keys…'],
    ['mqtt: mqtt://broker', 'mqtt …: expected options with values below this key'],
    ['mqtt: { embedded: { port: "1883" } }', '…port …expected a whole number from 0 to 65535, but it is "1883"'],
    ['mqtt: { embedded: { port: 70000 } }', '…but it is 70000'],
    ['mqtt: { keepalive: 30 }', '…keepalive …expected a duration … unit …but it is 30'],
    ['log: { level: loud }', '…level …expected one of fatal, …but it is "loud"'],
    ['    realtime: no', '…realtime …expected true or false, but it is "no"'],
    ['mqtt: { base_topic: a/# }', '…base_topic …without the wildcards…'],
    ['mqtt: { url: "mqtt://u:hunter22@b" }', 'mqtt.url …mqtt.username and mqtt.password…'],
    ['    api_key_file: key', '…api_key … and hubs.home.api_key_file …keep one of them'],
    ['mqtt: { username: u, password_file: none }', 'mqtt.password_file (hub2mqtt.yaml line 5): …there is no such file'],
    ['mqtt: { username: u, password_file: empty }', 'mqtt.password_file …empty…'],
    ['mqtt: { username: u, password_file: 5 }', 'mqtt.password_file …expected the path…'],
    ['hubs: { home: { url: http://h, api_key_file: lines } }', 'hubs.home.api_key_file …one line…'],
    ['hubs: { home: { url: http://h, api_key: 12345678 } }', '…api_key …quotes…'],
    ['mqtt: { url: mqtts://b, ca_file: none }', 'mqtt.ca_file (…): …there is no such file'],
    [
      'mqtt: { url: mqtts://b, ca_file: key }',
      'mqtt.ca_file (…): the file that it names has no certificate in PEM format',
    ],
    ['mqtt: { url: mqtts://b, cert_file: pem, key_file: pem }', 'mqtt.key_file (…): …has no private key in PEM format'],
    [
      'mqtt: { url: mqtts://b, cert_file: pem, key_file: locked }',
      'mqtt.key_file (…): …key in it is encrypted…openssl pkey…',
    ],
    [
      'mqtt: { url: mqtts://b, cert_file: pem, key_file: old }',
      'mqtt.key_file (…): …key in it is encrypted…openssl pkey…',
    ],
    [
      'http: { tokens: { a: { token: 0123456789abcdef, access: read }, b: { token: 0123456789abcdef, access: full } } }',
      'http.tokens: a and b have the same token…',
    ],
    ['mqtt: { url: mqtts://b, cert_file: pem }', 'mqtt.key_file: missing; mqtt.cert_file…'],
    ['mqtt: { url: mqtts://b, key_file: good }', 'mqtt.cert_file: missing; mqtt.key_file…'],
    ['mqtt: { password: hunter22 }', 'mqtt.username: missing…'],
    ['mqtt: { embedded: { host: 0.0.0.0 } }', 'mqtt.embedded.host: …mqtt.username and mqtt.password…'],
    ['mqtt: { embedded: { host: 127.0.0.999 } }', 'mqtt.embedded.host: …mqtt.username and mqtt.password…'],
    [
      'mqtt: { embedded: { ws_port: 9001 } }',
      'mqtt.embedded.ws_port (hub2mqtt.yaml line 5): … not supported WebSocket since 0.3.0; remove … set mqtt.url to … Mosquitto',
    ],
    [
      'mqtt: { embedded: { ws_origins: [http://page.lan] } }',
      'mqtt.embedded.ws_origins (… line 5): … not supported WebSocket since 0.3.0; remove … set mqtt.url to … Mosquitto',
    ],
    ['hubs: { home: { api_key: abcd } }', 'hubs.home.url: missing; …http://…HUB2MQTT_HUB_URL'],
    ['hubs: { home: { url: http://h } }', 'hubs.home.api_key: missing; …api_key_file…HUB2MQTT_HUB_API_KEY_FILE…'],
    ['hubs: { url: http://h }', "hubs.url …expected a hub's name above it…"],
    ['hubs: http://h', 'hubs …expected hubs by name…'],
    ['hubs: { home: http://h }', "hubs.home …expected the hub's options below it…"],
    ['  bridge: { url: http://h, api_key: abcd }', 'hubs.bridge …expected a hub name…'],
    ['  Home: { url: http://h, api_key: abcd }', 'hubs.Home …expected a hub name…'],
    ['  a/b: {}', "a hub's name (…line 5): expected a hub name…"],
    ['  __proto__: { url: http://h, api_key: abcd }', 'hubs.__proto__ …expected a hub name…'],
    ['  constructor: { url: http://h, api_key: abcd }', '…expected a hub name…'],
    ['  prototype: { url: http://h, api_key: abcd }', '…expected a hub name…'],
    ['__proto__: { polluted: true }', '__proto__ …there is no such option…'],
    ['- a\n', 'hub2mqtt.yaml: expected options…'],
    [`log: {}\nlog: {}`, 'hub2mqtt.yaml line 6, column 1: this key occurs twice…'],
    ['hubs:\n\thome: {}', 'hub2mqtt.yaml line 2, column <n>: a tab…'],
    [`---\nlog: {}`, 'hub2mqtt.yaml line 5, column 1: …more than one document…'],
    ['log: *x', 'hub2mqtt.yaml: an alias … has no anchor…'],
    ['log: &x { level: *x }', 'hub2mqtt.yaml: an alias … is inside…'],
    ['hubs: &h {home: *h}', 'hub2mqtt.yaml: an alias … is inside…'],
    ['apps: { include: &x [*x] }', 'hub2mqtt.yaml: an alias … is inside…'],
    [`? [a]\n: b`, 'hub2mqtt.yaml line 5, column <n>: a key must be plain text…'],
    [
      'apps:\n  include:\n    - a\n    - ""\n',
      'apps.include item 2 (… line 8): expected an app id such as com.athom.hue…',
    ],
    [
      'commands: { allow: [restart, restrat] }',
      'commands.allow item 2 (… line 5): expected one of <n> words such as restart, but it is "restrat"',
    ],
    ['commands: { deny: [dance] }', 'commands.deny item 1 (… line 5): expected one of *, enable, …but it is "dance"'],
    ['apps: { include: a }', 'apps.include (…): expected a list such as […'],
    ['settings: { publish: { a: } }', 'settings.publish.a …expected settings by name…'],
    ['hubs: "a', 'hub2mqtt.yaml line 1, column <n>: this is not valid YAML or JSON…'],
    ['log: !!js/function x', 'hub2mqtt.yaml line 5, column <n>: tags …'],
    ['    timeout: !env_var HUB_TIMEOUT', 'hub2mqtt.yaml line 5, column <n>: tags such as !secret …_file'],
    ['    <<: {}', 'hubs.home.<< (… line 5): merge keys are not supported…'],
    // What remains of a hash in double quotes in a shell, and of one in a Compose env file:
    ['http: { password: scrypt2768 }', 'http.password (…): …a text that begins with scrypt must be a whole hash…'],
    ['http: { password: scrypteHFXtxiKOBes }', 'http.password (…): …in a shell, enclose it in single quotes…'],
  ])('for %j', (text, line) => {
    const old = '-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n'
    const locked = '-----BEGIN ENCRYPTED PRIVATE KEY-----\n'
    const files = { empty: ' \n', lines: 'a\nb', pem: PEM, key: 'k', good: PEM_KEY, old, locked }
    const yaml = /^hubs:|^- /.test(text) ? text : HUB + text
    expect(mistakesOf({ yaml, files })).toEqual([lineLike(line)])
  })

  const maps = ['SETTINGS_PUBLISH', 'HTTP_TOKENS', 'UPDATES_SEVERITY']
  const guarded = ['AFTER_BOOT', 'MEMORY_LIMIT', 'CPU_LIMIT', 'PROBE', 'UNAVAILABLE', 'SCHEDULE']
  it.each([...maps, ...guarded.map((name) => `GUARD_${name}`)])('and whose example can be used, for %s', (name) => {
    const given = (text: string) => mistakesOf({ env: { ...HUB_ENV, [`HUB2MQTT_${name}`]: text } })
    const [, example = ''] = /such as (.*)$/.exec(given('x').join()) ?? []
    expect(example).toMatch(/^\{.*\}$/)
    expect(given(example)).toEqual([])
  })

  it('for lists that are nested too deep', () => {
    const nested = (levels: number) => `${HUB}apps: { include: ${'['.repeat(levels)}${']'.repeat(levels)} }`
    for (const [yaml, place] of [
      [`${'- '.repeat(8000)}x`, '…'],
      [nested(100), ''],
      [nested(10_000), ' line 5, column <n>'],
    ] as const) {
      expect(mistakesOf({ yaml })).toEqual([lineLike(`hub2mqtt.yaml${place}: …nested too deep…`)])
    }
  })

  it('for several ways to share hubs and for the missing broker in addition to an error in one of the ways', () => {
    const of = (fleet: string) => mistakesOf({ yaml: `${HUB}fleet: ${fleet}` })
    const others = ['fleet.shard: expected one of …', 'mqtt.url: missing…'].map(lineLike)
    expect(of('{ shard: 4/3, nats: [nats://x] }')).toEqual([
      lineLike('fleet.shard (…): …up to 3, but it is "4/3"'),
      ...others.toReversed(),
    ])
    expect(of('{ shard: 2/3, nats: [nats://x] }')).toEqual(others.toReversed())
    expect(of('{ shard: 4/3 }')).toEqual([lineLike('fleet.shard (…): …up to 3, but it is "4/3"'), others[1]])
  })

  it('for everything below hub names that are invalid and may not be shown', () => {
    const yaml = `${HUB}  a b: { url: ftp://h, poll_interval: 5 }\n  c d: { what: 1, url: http://h }`
    expect(mistakesOf({ yaml })).toEqual(
      [
        "a hub's name (…line 5): expected a hub name…",
        "a hub's name (…line 6): expected a hub name…",
        'hubs.unnamed-2.url (…line 5): expected an address…',
        'hubs.unnamed-2.poll_interval (…line 5): expected a duration…',
        'hubs.unnamed-2.api_key: missing…',
        'hubs.unnamed-3.what (…line 6): there is no such option…',
        'hubs.unnamed-3.api_key: missing…',
      ].map(lineLike),
    )
  })

  it.each<[env: Record<string, string>, line: string]>([
    [{ HUB2MQTT_MQTT_BASETOPIC: 'x' }, 'HUB2MQTT_MQTT_BASETOPIC: …did you mean HUB2MQTT_MQTT_BASE_TOPIC?'],
    [
      { HUB2MQTT_MQTT_EMBEDDED_WS_PORT: '9001' },
      'mqtt.embedded.ws_port (HUB2MQTT_MQTT_EMBEDDED_WS_PORT): … not supported WebSocket since 0.3.0; remove …',
    ],
    [
      { HUB2MQTT_MQTT_EMBEDDED_WS_ORIGINS: 'http://page.lan' },
      'mqtt.embedded.ws_origins (HUB2MQTT_MQTT_EMBEDDED_WS_ORIGINS): … not supported WebSocket since 0.3.0; remove …',
    ],
    [{ HUB2MQTT_MQTT_SERVER: 'a' }, 'HUB2MQTT_MQTT_SERVER: …did you mean HUB2MQTT_MQTT_URL?'],
    [{ HUB2MQTT_FOO: 'x' }, 'HUB2MQTT_FOO: there is no such option; unset it'],
    [{ HUB2MQTT_HUB_POLL_INTERVAL: '0s' }, 'hubs.home.poll_interval (HUB2MQTT_HUB_POLL_INTERVAL): …but it is "0s"'],
    [{ HUB2MQTT_MQTT_REJECT_UNAUTHORIZED: '0' }, '…(HUB2MQTT_MQTT_REJECT_UNAUTHORIZED): expected true or false…'],
    [{ HUB2MQTT_MQTT_EMBEDDED_PORT: '12abc' }, '…(HUB2MQTT_MQTT_EMBEDDED_PORT): …but it is "12abc"'],
    [{ HUB2MQTT_HUB_API_KEY_FILE: 'x' }, '…(HUB2MQTT_HUB_API_KEY) and …(HUB2MQTT_HUB_API_KEY_FILE): both…'],
    [
      { HUB2MQTT_HUB_API_KEY: 'first\nsecond' },
      'hubs.home.api_key (HUB2MQTT_HUB_API_KEY): expected the key …one line…',
    ],
    [{ HUB2MQTT_HUB_NAME: 'My Home' }, 'HUB2MQTT_HUB_NAME: expected a hub name …but it is "My Home"'],
  ])('for %j in the environment', (env, line) => {
    expect(mistakesOf({ env: { ...HUB_ENV, ...env } })).toEqual([lineLike(line)])
  })

  it.each<[setting: string, line: string]>([
    ['night: swich', '.night (… line 8): expected switch, text, password, {type: number, min: 0…'],
    ['one: switch\n      two:\n        type: number\n        min: 0', '.two.max (… line 9): missing; …max: 100…'],
    ['one: { type: number, min: 2, max: 1 }', '.one (… line 8): expected a min below max…'],
    ['one: { type: number, min: 0, max: .inf }', '.one.max (… line 8): expected a finite number'],
    ['one:\n        type: text\n        nmae: One', '.one.nmae (… line 10): there is no such key; did you mean name?'],
    [
      'one:\n        type: select\n        options:\n          - a\n          - 1',
      '.one.options item 2 (… line 12): expected a list of texts…',
    ],
    ['"..": text', '… (… line 8): expected the name of a setting, which cannot be empty…'],
    // The names of unusual settings may be secrets.
    ['"name=value": 5', '[…] (… line 8): expected…'],
  ])('that states the place in a published setting: %j', (setting, line) => {
    const yaml = `${HUB}settings:\n  publish:\n    com.athom.hue:\n      ${setting}\n`
    const mistakes = mistakesOf({ yaml })
    expect(mistakes).toEqual([lineLike(`settings.publish["com.athom.hue"]${line}`)])
    expect(mistakes.join()).not.toContain('name=value')
  })

  it('for each error in one value', () => {
    const HUB2MQTT_SETTINGS_PUBLISH = '{"com.athom.hue": {"a": "x", "b": {"type": "number", "min": "0"}}, "other": []}'
    const lines = mistakesOf({ env: { ...HUB_ENV, HUB2MQTT_SETTINGS_PUBLISH } })
    expect(lines.map((line) => line.split(': ')[0])).toEqual([
      'settings.publish["com.athom.hue"].a (HUB2MQTT_SETTINGS_PUBLISH)',
      'settings.publish["com.athom.hue"].b.min (HUB2MQTT_SETTINGS_PUBLISH)',
      'settings.publish["com.athom.hue"].b.max (HUB2MQTT_SETTINGS_PUBLISH)',
      'settings.publish.other (HUB2MQTT_SETTINGS_PUBLISH)',
    ])
  })

  it.each([
    ['mqtt: { hunter2secretlongkey: x }', 'a key below mqtt'],
    ['hunter2: x', 'a key'],
    ['mqtt: { embedded: { HunterSecret: x } }', 'a key below mqtt.embedded'],
    [`mqtt: { ${'a'.repeat(33)}: x }`, 'a key below mqtt'],
    ['mqtt: { pasword2: x }', 'mqtt.pasword2'],
    ['mqtt: { baseTopic: x }', 'mqtt.baseTopic'],
    [`mqtt: { ${'a'.repeat(32)}: x }`, `mqtt.${'a'.repeat(32)}`],
  ])('without a key that may be a secret, unless it resembles an option or is a plain word: %s', (line, subject) => {
    const mistakes = mistakesOf({ yaml: `${HUB}${line}\n` })
    expect(mistakes).toEqual([lineLike(`${subject} (hub2mqtt.yaml line 5): there is no such option;…`)])
  })

  it.each([
    ['HUB2MQTT_HUNTER2SECRET', 'an environment variable that begins with HUB2MQTT_'],
    ['HUB2MQTT_HUB2_URL', 'HUB2MQTT_HUB2_URL'],
    ['HUB2MQTT_OTHER_THING', 'HUB2MQTT_OTHER_THING'],
  ])('with the same rule for variables: %s', (name, subject) => {
    expect(mistakesOf({ env: { ...HUB_ENV, [name]: 'x' } }).map((line) => line.split(': ')[0])).toEqual([subject])
  })

  it.each([
    ['{"hubs": {', /line 1, column \d+: this is not valid JSON; look for a missing quote, comma or bracket here$/],
    ['{"hubs": {}, "log": *x}', /: this is not valid JSON/],
    ['{"a": 1}\n---\n{}', /line 2, column 1: this is not valid JSON/],
    ['{"log": {}, "log": {}}', /line 1, column 13: this key occurs twice; keep one$/],
    ['[]', /^hub2mqtt\.json: expected options with their values, such as "hubs": \{ "home": \{ "url": … \} \}$/],
    ['{"hubs": 5}', /^hubs .*: expected hubs by name, such as "hubs": \{ "home": \{ "url": … \} \}$/],
    ['{"hubs": {"url": "http://h"}}', /expected a hub's name above it: "hubs": \{ "home": \{ "url": … \} \}$/],
    ['{"hubs": {}, "mqtt.url": "x"}', /expected nested keys, such as "mqtt": \{ "url": … \}$/],
    ['{"hubs": {}, "api_key:x": 1}', /^a key \(hub2mqtt\.json line 1\): there is no such option; there are mqtt, /],
  ])('about JSON if the file is JSON: %s', (text, line) => {
    const files = { 'hub2mqtt.json': text }
    const lines = mistakesOf({ env: { HUB2MQTT_CONFIG: 'hub2mqtt.json' }, files })
    expect(lines).toEqual([expect.stringMatching(line)])
    expect(lines.join()).not.toMatch(/YAML|anchor|---/)
  })

  it('but none for JSON that is indented with tabs', () => {
    const files = { 'hub2mqtt.json': '{\n\t"hubs": {},\n\t"log": {\n\t\t"level": "info"\n\t}\n}\n' }
    expect(mistakesOf({ env: { HUB2MQTT_CONFIG: 'hub2mqtt.json' }, files })).toEqual([])
  })

  it('that names both ways to configure a hub if there is none', () => {
    const [line, ...more] = mistakesOf({})
    expect(more).toEqual([])
    expect(line).toMatch(/^hubs: no hub configured; .*--config.*HUB2MQTT_HUB_URL.*HUB2MQTT_HUB_API_KEY/)
    expect(mistakesOf({ yaml: '' })).toEqual([line])
    expect(mistakesOf({ yaml: 'hubs:' })).toEqual([line])
    // An explicitly empty list of hubs is not a mistake.
    expect(mistakesOf({ yaml: 'hubs: {}' })).toEqual([])
  })

  it.each([
    ['ENOENT', /^none\.yaml: the configuration file cannot be read: there is no such file$/],
    ['EACCES', /permission denied$/],
    ['EISDIR', /it is a directory$/],
    ['EIO', /EIO$/],
  ])('for a file that cannot be read (%s), without errors that follow from it', (code, line) => {
    const readFile = () => {
      throw Object.assign(new Error('secret detail'), { code })
    }
    expect(() => loadConfig({ file: 'none.yaml', env: {}, readFile })).toThrow(
      expect.objectContaining({ mistakes: [expect.stringMatching(line)] }),
    )
  })

  it('for each error, in every source and every hub', () => {
    const yaml = 'hubs:\n  a: { url: x, api_key: k }\n  b: { url: http://h }\nmqtt: { keepalive: 1 }\nlgo: {}\n'
    const lines = mistakesOf({ yaml, env: { HUB2MQTT_LOG_LEVEL: 'x', HUB2MQTT_NOPE: '1' } })
    const subjects = lines.map((line) => line.split(/[ :]/)[0])
    expect(new Set(subjects)).toEqual(
      new Set(['hubs.a.url', 'hubs.b.api_key', 'mqtt.keepalive', 'lgo', 'log.level', 'HUB2MQTT_NOPE']),
    )
    expect(lines).toHaveLength(6)
  })

  it('without following aliases into billions of values', () => {
    const row = (name: string, of: string) => `${name}: &${name} [${Array(9).fill(`*${of}`).join(',')}]\n`
    const yaml = `a: &a [x]\n${row('b', 'a')}${row('c', 'b')}${row('d', 'c')}${row('e', 'd')}${row('f', 'e')}`
    expect(mistakesOf({ yaml })).toEqual([expect.stringContaining('multiply too often')])
  })

  it('and leaves every object unchanged, whatever the file contains', () => {
    mistakesOf({ yaml: `${HUB}__proto__: { polluted: 1 }\nconstructor: { prototype: { polluted: 1 } }` })
    expect({}).not.toHaveProperty('polluted')
  })

  it('but none for a file that repeats a block by alias', () => {
    expect(mistakesOf({ yaml: 'hubs:\n  a: &a { url: http://h, api_key: abcd }\n  b: *a\n' })).toEqual([])
  })
})
