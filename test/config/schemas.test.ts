import fc from 'fast-check'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { apiKey, brokerUrl, brokerUrls, host, hubUrl, password, path, topicPrefix } from '../../src/config/addresses.ts'
import { options } from '../../src/config/options.ts'
import { boolean, choice, duration, fromText, integer, label, list, map, show, size } from '../../src/config/schemas.ts'

const fromFile = (schema: v.GenericSchema, raw: unknown) => {
  const parsed = v.safeParse(schema, raw, { abortPipeEarly: true })
  return parsed.success ? parsed.output : `refused: ${parsed.issues[0].message}`
}
const fromEnv = (schema: v.GenericSchema, text: string) => fromFile(schema, fromText(schema, text))
const refused = expect.stringContaining('refused: ')
const same = (...values: readonly unknown[]) => values.map((value) => [value, value] as const)

it.each([
  ['guard.schedule', (text: string) => new Map([['com.example.app', text]])],
  ['updates.window.start', (text: string) => text],
] as const)('the schema of %s limits cron expressions to 200 characters', (name, given) => {
  const { schema } = options[name]
  const [longest, longer] = [`${'1,'.repeat(95)}10 4 * * *`, `${'1,'.repeat(96)}1 4 * * *`]
  expect([longest.length, longer.length]).toEqual([200, 201])
  expect(fromFile(schema, given(longest))).not.toEqual(refused)
  for (const text of [longer, longer.padEnd(10_000)])
    expect(fromFile(schema, given(text))).toMatch(/^refused: .*at most 200 characters/)
})

/** For each schema: raw values with the results of reading them, and values that are rejected. */
const SCHEMAS: readonly {
  readonly of: string
  readonly schema: v.GenericSchema
  readonly reads: readonly (readonly [raw: unknown, value: unknown])[]
  readonly refuses: readonly unknown[]
}[] = [
  {
    of: 'durations',
    schema: duration('1s', '2d'),
    reads: [
      ['1s', 1000],
      ['1500ms', 1500],
      ['2m', 120_000],
      ['1h', 3_600_000],
      ['2d', 172_800_000],
    ],
    refuses: ['', '10', 10, '10 s', '1.5s', '-1s', '10S', '1s1s', '10sec', '999ms', '49h', '1e3s', null, true, ['1s']],
  },
  {
    of: 'sizes',
    schema: size('1KiB', '1MiB'),
    reads: [
      ['1KiB', 1024],
      ['2048B', 2048],
      ['1MiB', 1_048_576],
    ],
    refuses: ['1MB', '1kib', 2048, '2MiB', '1B'],
  },
  { of: 'numbers', schema: integer(0, 65_535), reads: same(0, 1883, 65_535), refuses: ['5', 65_536] },
  {
    of: 'hubs',
    schema: hubUrl,
    reads: [
      ['http://192.168.1.20', 'http://192.168.1.20'],
      ['https://Hub.Local:8443/', 'https://hub.local:8443'],
      ['HTTP://hub', 'http://hub'],
      ['http://[fe80::1]/hub/', 'http://[fe80::1]/hub'],
    ],
    refuses: [
      ...['192.168.1.20', 'ftp://hub', 'http://', 'http:///x', 'http://user@hub', 'http://user:pass@hub', 'mqtt://hub'],
      ...['http://hub?x=1', 'http://hub#x', 'http://hub?', 'http://hub x', 'http://hub:99999', 'http://1.2.3.999'],
      ...['http://[zz]', '', 5],
    ],
  },
  {
    of: 'brokers',
    schema: brokerUrl,
    reads: same('mqtt://broker:1883', 'mqtts://broker', 'ws://broker:9001/mqtt', 'wss://broker/mqtt'),
    refuses: [
      ...['http://broker', 'broker:1883', 'mqtt:broker', 'mqtt://broker/path', 'mqtt://broker:x', 'ws://b?token=1'],
      ...['mqtt://broker:0', 'ws://broker:00/mqtt'],
    ],
  },
  {
    of: 'hosts',
    schema: host,
    reads: same('127.0.0.1', '::1', '0.0.0.0', 'localhost'),
    refuses: ['a b', '', 'http://x', 1],
  },
  {
    of: 'topics',
    schema: topicPrefix,
    reads: same('hub2mqtt', 'home/apps', 'küche', 'a b'),
    refuses: [
      ...['', '/', '/a', 'a/', 'a//b', 'a/+', '#', 'a#', '$SYS', '$share/x', 'a\0b', 'a\nb', 'ü'.repeat(65), 5, null],
    ],
  },
  {
    of: 'API keys',
    schema: apiKey,
    reads: same('a', 'abc:def-ghi==', 'with blank', 'ÿ'),
    refuses: ['line\nbreak', 'tab\there', 'nul\0', ' leading', 'trailing ', 'snow☃', '', 12_345_678],
  },
  { of: 'passwords', schema: password, reads: same(' pässword☃ '), refuses: ['a\r'] },
  { of: 'names', schema: label, reads: same('x'.repeat(256)), refuses: ['x'.repeat(257)] },
  { of: 'paths', schema: path, reads: same('ca.pem'), refuses: [5, 'a\nb'] },
]

describe.for(SCHEMAS)('the schema of $of', ({ schema, reads, refuses }) => {
  it.for(reads)('reads %j as %j', ([raw, value]) => expect(fromFile(schema, raw)).toBe(value))

  it.for(refuses.map((raw) => ({ raw })))('refuses $raw', ({ raw }) => expect(fromFile(schema, raw)).toEqual(refused))
})

describe('the schema of durations', () => {
  const poll = duration('1s', '1h')

  it('names the bounds and an example of the unit in its error message', () => {
    expect(fromFile(poll, 60)).toBe(
      'refused: expected a duration from 1s to 1h, written with its unit (d, h, m, s, ms)',
    )
  })

  it('shows every duration as text that is read back as the same value', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1000, max: 3_600_000 }), (ms) => {
        expect(fromFile(poll, show(poll, ms))).toBe(ms)
      }),
    )
  })
})

describe('the schema of numbers, booleans and choices', () => {
  it.each(['0', '1883', '65535'])('accepts the text %j of the environment as a port', (text) => {
    expect(fromEnv(integer(0, 65_535), text)).toBe(Number(text))
  })

  it.each(['12abc', '1e3', '0x10', ' 1', '-1', '65536', '', '1.0'])('refuses the text %j as a port', (text) =>
    expect(fromEnv(integer(0, 65_535), text)).toEqual(refused),
  )

  it.each(['yes', 'no', 'on', 'off', '0', '1', 'True', 'FALSE'])('refuses %j as a boolean', (text) => {
    expect(fromEnv(boolean, text)).toEqual(refused)
    expect(fromFile(boolean, text)).toEqual(refused)
  })

  it('accepts true and false', () => {
    expect([fromEnv(boolean, 'true'), fromEnv(boolean, 'false'), fromFile(boolean, false)]).toEqual([
      true,
      false,
      false,
    ])
  })

  it('accepts a choice that YAML reads as a number', () => expect(fromFile(choice(['auto', '5']), 5)).toBe('5'))

  it('names the choices in its error message', () => {
    expect(fromFile(choice(['auto', '5']), '4')).toBe('refused: expected one of auto, 5')
  })
})

describe('the schema of addresses', () => {
  it('explains where credentials belong in its error message', () => {
    expect(fromFile(brokerUrl, 'mqtt://user:pass@broker')).toContain('mqtt.username and mqtt.password')
  })

  it('accepts one broker or a list of brokers, and removes duplicates', () => {
    const [one, two] = ['mqtt://one:1883', 'mqtts://two']
    expect(fromFile(brokerUrls, one)).toEqual([one])
    expect(fromFile(brokerUrls, [one, two, one])).toEqual([one, two])
    expect(fromEnv(brokerUrls, one)).toEqual([one])
    expect(fromEnv(brokerUrls, `${one}, ${two}`)).toEqual([one, two])
    expect(show(brokerUrls, [one])).toBe(one)
    expect(show(brokerUrls, [one, two])).toEqual([one, two])
  })

  it('has the same error for a wrong broker alone and in a list, and refuses an empty list', () => {
    for (const wrong of ['http://broker', 'mqtt://user:pass@broker', 'mqtt://broker/path']) {
      const why = fromFile(brokerUrl, wrong)
      expect(fromFile(brokerUrls, wrong)).toBe(why)
      expect(fromEnv(brokerUrls, wrong)).toBe(why)
    }
    for (const wrong of [[], 5, [5], '', ',', ['mqtt://one', 'two']])
      expect(fromFile(brokerUrls, wrong)).toEqual(refused)
    expect(fromEnv(brokerUrls, 'mqtt://one,two')).toEqual(refused)
  })
})

it('the schema of passwords explains that a number needs quotes', () => {
  expect(fromFile(password, 1234)).toContain('quotes')
})

describe('the schema of lists and maps', () => {
  const names = list(label)
  const published = map(names, 'names by app')

  it('reads a list from a file and, with commas, from the environment', () => {
    expect(fromFile(names, ['a', 'b'])).toEqual(['a', 'b'])
    expect(fromEnv(names, ' a, b,,')).toEqual(['a', 'b'])
  })

  it('refuses a list with one invalid item', () => {
    expect(fromFile(names, ['a', 5])).toEqual(refused)
    expect(fromFile(names, 'a')).toEqual(refused)
  })

  it('reads a map from a file and, as JSON, from the environment', () => {
    const value = new Map([['com.athom.hue', ['a']]])
    expect(fromFile(published, value)).toEqual(value)
    expect(fromEnv(published, '{"com.athom.hue":["a"]}')).toEqual(value)
    expect(fromFile(published, show(published, value))).toEqual(value)
  })

  it.each(['{', '[]', '{"a":1}', '{"a":[1]}'])('refuses the map %s', (text) =>
    expect(fromEnv(published, text)).toEqual(refused),
  )

  it('keeps a map key __proto__ as an ordinary name', () => {
    expect(fromEnv(published, '{"__proto__":["a"]}')).toEqual(new Map([['__proto__', ['a']]]))
  })
})
