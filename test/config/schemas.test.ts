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

describe('the schema of cron expressions', () => {
  const as = [(text: string) => text, (text: string) => new Map([['com.example.app', text]])]
  const takes = (schema: v.GenericSchema, raw: unknown) => !String(fromFile(schema, raw)).startsWith('refused')
  /** The options, alone or for each app, that accept a cron expression but not arbitrary text. */
  const rows = Object.entries(options).flatMap(([name, { schema }]) =>
    as
      .filter((given) => takes(schema, given('0 4 * * 1')) && !takes(schema, given('each day')))
      .map((given) => [name, schema, given] as const),
  )
  const ofLength = (length: number) =>
    `${'1,'.repeat(length)}`.slice(0, length - 9).replace(/,$/, '0') + ' 4 * * *'.padStart(9)

  it('is used for the schedule and the window', () => {
    expect(rows.map(([name]) => name)).toEqual(['guard.schedule', 'updates.window.start'])
  })

  it.each(rows)('limits them to 200 characters in %s', (_, schema, given) => {
    expect(ofLength(200)).toHaveLength(200)
    expect(takes(schema, given(ofLength(200)))).toBe(true)
    for (const length of [201, 1000, 10_000]) {
      expect(fromFile(schema, given(ofLength(length)))).toMatch(/^refused: .*at most 200 characters/)
    }
  })
})

describe('the schema of durations', () => {
  const poll = duration('1s', '1h')

  it.each([
    ['1s', 1000],
    ['1500ms', 1500],
    ['2m', 120_000],
    ['1h', 3_600_000],
  ])('reads %s as milliseconds', (text, value) => expect(fromFile(poll, text)).toBe(value))

  it.each(['', '10', 10, '10 s', '1.5s', '-1s', '10S', '1s1s', '10sec', '999ms', '61m', '1e3s', null, true, ['1s']])(
    'refuses %j',
    (raw) => expect(fromFile(poll, raw)).toEqual(refused),
  )

  it('names the bounds and an example of the unit in its error message', () => {
    expect(fromFile(poll, 60)).toBe('refused: expected a duration from 1s to 1h, written with its unit (h, m, s, ms)')
  })

  it('shows every duration as text that is read back as the same value', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1000, max: 3_600_000 }), (ms) => {
        expect(fromFile(poll, show(poll, ms))).toBe(ms)
      }),
    )
  })
})

describe('the schema of sizes', () => {
  const payload = size('1KiB', '1MiB')

  it.each([
    ['1KiB', 1024],
    ['2048B', 2048],
    ['1MiB', 1_048_576],
  ])('reads %s as bytes', (text, value) => expect(fromFile(payload, text)).toBe(value))

  it.each(['1MB', '1kib', 2048, '2MiB', '1B'])('refuses %j', (raw) => expect(fromFile(payload, raw)).toEqual(refused))
})

describe('the schema of numbers, booleans and choices', () => {
  it.each([0, 1883, 65_535])('accepts port %d from a file and, as text, from the environment', (port) => {
    expect(fromFile(integer(0, 65_535), port)).toBe(port)
    expect(fromEnv(integer(0, 65_535), String(port))).toBe(port)
  })

  it.each(['12abc', '1e3', '0x10', ' 1', '-1', '65536', '', '1.0'])('refuses the text %j as a port', (text) =>
    expect(fromEnv(integer(0, 65_535), text)).toEqual(refused),
  )

  it('refuses a number in quotes in a file', () => expect(fromFile(integer(0, 9), '5')).toEqual(refused))

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
  it.each([
    ['http://192.168.1.20', 'http://192.168.1.20'],
    ['https://Hub.Local:8443/', 'https://hub.local:8443'],
    ['HTTP://hub', 'http://hub'],
    ['http://[fe80::1]/hub/', 'http://[fe80::1]/hub'],
  ])('accepts the hub %s', (text, value) => expect(fromFile(hubUrl, text)).toBe(value))

  it.each([
    '192.168.1.20',
    'ftp://hub',
    'http://',
    'http:///x',
    'http://user@hub',
    'http://user:pass@hub',
    'http://hub?x=1',
    'http://hub#x',
    'http://hub?',
    'http://hub x',
    'http://hub:99999',
    'http://1.2.3.999',
    'http://[zz]',
    'mqtt://hub',
    '',
    5,
  ])('refuses the hub %j', (text) => expect(fromFile(hubUrl, text)).toEqual(refused))

  it.each(['mqtt://broker:1883', 'mqtts://broker', 'ws://broker:9001/mqtt', 'wss://broker/mqtt'])(
    'accepts the broker %s',
    (text) => expect(fromFile(brokerUrl, text)).toBe(text),
  )

  it.each(['http://broker', 'broker:1883', 'mqtt:broker', 'mqtt://broker/path', 'mqtt://broker:x', 'ws://b?token=1'])(
    'refuses the broker %s',
    (text) => expect(fromFile(brokerUrl, text)).toEqual(refused),
  )

  it('explains where credentials belong in its error message', () => {
    expect(fromFile(brokerUrl, 'mqtt://user:pass@broker')).toContain('mqtt.username and mqtt.password')
  })

  it('accepts one broker, or several each once, as a list', () => {
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

  it.each(['127.0.0.1', '::1', '0.0.0.0', 'localhost'])('accepts the host %s', (text) =>
    expect(fromFile(host, text)).toBe(text),
  )
  it.each(['a b', '', 'http://x', 1])('refuses the host %j', (raw) => expect(fromFile(host, raw)).toEqual(refused))
})

describe('the schema of topics', () => {
  it.each(['hub2mqtt', 'home/apps', 'küche', 'a b'])('accepts %j', (text) =>
    expect(fromFile(topicPrefix, text)).toBe(text),
  )

  it.each(['', '/', '/a', 'a/', 'a//b', 'a/+', '#', 'a#', '$SYS', '$share/x', 'a\0b', 'a\nb', 'ü'.repeat(65), 5, null])(
    'refuses %j',
    (raw) => expect(fromFile(topicPrefix, raw)).toEqual(refused),
  )
})

describe('the schema of text and secrets', () => {
  it.each(['line\nbreak', 'tab\there', 'nul\0', ' leading', 'trailing ', 'snow☃', '', 12_345_678])(
    'refuses %j as an API key',
    (raw) => expect(fromFile(apiKey, raw)).toEqual(refused),
  )
  it.each(['a', 'abc:def-ghi==', 'with blank', 'ÿ'])('accepts %j as an API key', (raw) =>
    expect(fromFile(apiKey, raw)).toBe(raw),
  )
  it('accepts any letters in a password, but no control characters', () => {
    expect(fromFile(password, ' pässword☃ ')).toBe(' pässword☃ ')
    expect(fromFile(password, 'a\r')).toEqual(refused)
  })
  it('explains that a number needs quotes', () => expect(fromFile(password, 1234)).toContain('quotes'))
  it('limits names to one line of 256 characters', () => {
    expect(fromFile(label, 'x'.repeat(256))).toHaveLength(256)
    expect(fromFile(label, 'x'.repeat(257))).toEqual(refused)
  })
  it('accepts any path of one line', () => {
    expect(fromFile(path, 'ca.pem')).toBe('ca.pem')
    expect(fromFile(path, 5)).toEqual(refused)
    expect(fromFile(path, 'a\nb')).toEqual(refused)
  })
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
