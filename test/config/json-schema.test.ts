import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { hubOptions, options } from '../../src/config/options.ts'
import { nest, type Option } from '../../src/config/table.ts'
import { configSchema } from '../../src/tooling/docs/config-schema.ts'
import { anyText } from '../support/any-text.ts'
import { maps, mistakesOf, PEM, PEM_KEY } from './support.ts'

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true })
const schema = JSON.parse(configSchema())
const editorTakes = ajv.compile(schema)

/** Variables that set all required options, and that make all combinations of options valid. */
const ENV = {
  HUB2MQTT_HUB_URL: 'http://h',
  HUB2MQTT_HUB_API_KEY: 'abcd',
  HUB2MQTT_MQTT_URL: 'mqtts://b',
  HUB2MQTT_MQTT_USERNAME: 'u',
  HUB2MQTT_MQTT_PASSWORD: 'efgh',
  HUB2MQTT_MQTT_CERT_FILE: 'pem',
  HUB2MQTT_MQTT_KEY_FILE: 'pem',
  HUB2MQTT_FLEET_USERNAME: 'u',
  HUB2MQTT_UPDATES_WINDOW_START: '0 4 * * *',
}
const ANY_FILE = { '': `a-secret${PEM}${PEM_KEY}` }
const loaderSays = (file: unknown) => mistakesOf({ yaml: JSON.stringify(file), env: ENV, files: ANY_FILE })

/** Kinds of checks in the schemas of options that JSON Schema cannot express. */
const BEYOND_JSON_SCHEMA = ['check', 'max_bytes', 'not_values']

/** Returns why the loader rejects a value; empty if it accepts the value. */
function refusals({ schema: own }: Option, value: unknown): string[] {
  // A key without a value counts as omitted.
  if (value === null) return []
  const { issues = [] } = v.safeParse(own, maps(value), { abortPipeEarly: true })
  return issues.flatMap(reasonsOf)
}

/** Returns the errors of a value. For an option with several forms, returns those of the form that the value has. */
function reasonsOf({ type, issues }: v.BaseIssue<unknown>): string[] {
  const own = issues?.filter(({ kind, path }) => kind !== 'schema' || path !== undefined) ?? []
  return own.length === 0 ? [type] : own.flatMap(reasonsOf)
}
const isBeyond = (reasons: readonly string[]) =>
  reasons.length > 0 && reasons.every((reason) => BEYOND_JSON_SCHEMA.includes(reason))

const settingValue = fc.oneof(
  fc.constantFrom(0, 1, 0.5, -1, 100, 'x', '', '5', true, null, ['low', 'high'], [], ['a', 5]),
  fc.jsonValue({ maxDepth: 1 }),
)
const setting = fc.oneof(
  fc.constantFrom('switch', 'text', 'password', 'number', 'select', 'swich'),
  fc.record(
    {
      type: fc.constantFrom('switch', 'text', 'password', 'number', 'select', 'nmber', null),
      name: settingValue,
      min: settingValue,
      max: settingValue,
      step: settingValue,
      options: settingValue,
      unknown: settingValue,
    },
    { requiredKeys: [] },
  ),
  fc
    .record({ type: fc.constant('number'), min: fc.integer(), max: fc.integer() })
    .chain((base) => fc.record({ step: settingValue }, { requiredKeys: [] }).map((more) => ({ ...base, ...more }))),
)
const names = fc.constantFrom('com.athom.hue', 'night_mode', '', 'constructor', '5', 'a b')
const published = fc.dictionary(names, fc.oneof(fc.dictionary(names, setting, { maxKeys: 2 }), settingValue), {
  maxKeys: 2,
})

const address = fc
  .tuple(
    fc.constantFrom('http', 'https', 'HTTP', 'mqtt', 'mqtts', 'ws', 'WSS', 'nats', 'ftp', ''),
    fc.constantFrom('://', ':', '//', ':/', ''),
    fc.constantFrom('hub', '10.0.0.1', '1.2.3.999', '[fe80::1]', '[zz]', 'küche', 'u:p@hub', 'a b', '', 'a:b'),
    fc.constantFrom('', ':80', ':99999', ':', ':x'),
    fc.constantFrom('', '/', '/mqtt', '/a/b/', '?x=1', '#x', '/ x', '\n'),
  )
  .map((parts) => parts.join(''))

const written = fc.oneof(
  fc.constantFrom<unknown>(
    ...[null, true, false, 'true', 0, 1, 5, 3.1, -1, 1.5, 16, 17, 65_535, 65_536, '5', '', ' ', 'auto', '3.1.1'],
    ...['device', 'info', 'json', 'manager', 'x'.repeat(129), 'ü'.repeat(65), '\t', '\ud800'],
  ),
  fc.constantFrom<unknown>([], ['*'], ['restart', 'hub/install'], ['restrat'], [5], [null], [''], ['\n'], {}, { a: 1 }),
  fc
    .tuple(fc.integer({ min: -1, max: 4000 }), fc.constantFrom('ms', 's', 'm', 'h', 'B', 'KiB', 'MiB', '', ' s'))
    .map((parts) => parts.join('')),
  fc.stringMatching(/^[$+#/a-c ]{0,6}$/),
  anyText({ maxLength: 5 }),
  address,
  published,
  fc.jsonValue({ maxDepth: 2 }),
)

type Row = readonly [path: string, option: Option]
const tables = [
  { rows: Object.entries<Option>(options), at: [] },
  { rows: Object.entries<Option>(hubOptions), at: ['hubs', 'home'] },
]
const rows = tables.flatMap(({ rows: own, at }) => own.map(([path, option]): Row => [[...at, path].join('.'), option]))
const valueFor = ({ default: fallback = null, example }: Option) =>
  fc.oneof(
    { weight: 4, arbitrary: written },
    fc.constant(fallback instanceof Map ? {} : fallback),
    fc.constant(example ?? null),
  )

const fileOf = (entries: Iterable<readonly [string, unknown]>): unknown => JSON.parse(toJson(nest(entries)))
const toJson = (value: unknown) =>
  JSON.stringify(value, (_, part) => (part instanceof Map ? Object.fromEntries(part) : part))

describe('the JSON Schema of the configuration file', () => {
  it('accepts a value exactly when the loader does, except for rules that JSON Schema cannot express', () => {
    const beyond = new Set<string>()
    const taken = new Set<string>()
    const brokers = rows.filter(([path]) => path === 'mqtt.url')
    const noPort = ['ws://hub:99999', ['ws://hub:99999']]
    fc.assert(
      fc.property(
        fc.constantFrom(...rows).chain((row) => fc.tuple(fc.constant(row), valueFor(row[1]))),
        ([[path, option], value]) => {
          const reasons = refusals(option, value)
          const takes = editorTakes(fileOf([[path, value]]))
          if (reasons.length === 0) taken.add(path)
          if (takes && isBeyond(reasons)) beyond.add(path)
          else expect(takes, `${path}: ${JSON.stringify(value)} ${reasons}`).toBe(reasons.length === 0)
        },
      ),
      { numRuns: 2_500, examples: brokers.flatMap((row) => noPort.map((value): [[Row, unknown]] => [[row, value]])) },
    )
    expect(taken.size).toBe(rows.length)
    // Only these options have units, cron expressions, time zones, addresses, byte limits, or related numbers.
    expect(
      [...beyond].filter(
        (path) =>
          !/interval|timeout|keepalive|payload|url|topic|prefix|publish|guard|updates|lease|nats|shard/.test(path),
      ),
    ).toEqual([])
  })

  it('accepts a file exactly when the loader does', () => {
    const good = ([, option]: Row) => valueFor(option).filter((value) => !isBeyond(refusals(option, value)))
    // A bridge can join a fleet in only one way. A schema for each option cannot express that.
    const apart = rows.filter(([path]) => !/^fleet\.(shard|index|count|nats)$/.test(path))
    const entry = fc.constantFrom(...apart).chain((row) => fc.tuple(fc.constant(row[0]), good(row)))
    const secretFile = fc.tuple(fc.constantFrom('hubs.home.api_key_file', 'mqtt.password_file'), written)
    const options = fc.uniqueArray(fc.oneof({ weight: 8, arbitrary: entry }, secretFile), {
      maxLength: 4,
      selector: ([path]) => path,
    })
    const odd = fc.record(
      {
        mqtt: fc.constantFrom(null, {}, [], 'mqtt://b', { embedded: null }, { embedded: 5 }, { 'embedded.port': 1 }),
        log: fc.constantFrom(null, {}, { levle: 'info' }, { level: null }),
        hubs: fc.constantFrom<unknown>(
          ...[null, {}, [], 'x', { home: null }, { home: [] }, { Home: {} }, { bridge: {} }, { a: {}, 'b/c': {} }],
          ...[
            { url: 'http://h' },
            { timeout: { url: 'http://h', api_key: 'abcd' } },
            { url: null },
            { constructor: {} },
          ],
          JSON.parse('{"__proto__": {}}'),
        ),
        hub: fc.constant({}),
        'mqtt.url': fc.constant('mqtt://b'),
      },
      { requiredKeys: [] },
    )
    const files = fc.oneof(options.map(fileOf), odd, fc.constantFrom<unknown>(null, {}, [], 'x', 5))
    let taken = 0
    fc.assert(
      fc.property(files, (file) => {
        const lines = loaderSays(file)
        if (lines.length === 0) taken++
        expect(editorTakes(file), `${JSON.stringify(file)} ${lines.join('\n')}`).toBe(lines.length === 0)
      }),
      { numRuns: 300 },
    )
    expect(taken).toBeGreaterThan(40)
  })

  it('accepts the example unchanged, and with every option uncommented', () => {
    const text = readFileSync('config/hub2mqtt.example.yaml', 'utf8')
    for (const example of [text, text.replaceAll(/^( *)#(?! \S)/gm, '$1')]) {
      editorTakes(parse(example))
      expect(editorTakes.errors ?? []).toEqual([])
    }
  })

  it('refuses a secret that is given in both forms', () => {
    const mqtt = { username: 'u', password: 'abcd', password_file: 'file' }
    expect(editorTakes({ mqtt })).toBe(false)
    expect(editorTakes({ mqtt: { ...mqtt, password: null } })).toBe(true)
  })
})
