import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import {
  anyValue,
  decodeText,
  duration,
  durationMs,
  either,
  inner,
  MAX_JSON_DEPTH,
  MAX_PAYLOAD_BYTES,
  object,
  type PayloadKind,
  peekTransaction,
  someOf,
  speech,
  word,
} from '../../src/contract/payload.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

function read(kind: PayloadKind<unknown>, text: string): unknown {
  return kind.read(text).input()
}
function refusal(kind: PayloadKind<unknown>, text: string): string {
  try {
    read(kind, text)
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid_payload' })
    return error instanceof Error ? error.message : ''
  }
  throw new Error(`${text} is not refused`)
}

const named = object({ name: v.pipe(v.string(), v.maxLength(3)), on: v.optional(v.boolean()) })

describe('a JSON object', () => {
  test('may be left out if no key is required, or be the word of a button', () => {
    const all = object({ on: v.optional(v.boolean()) })
    for (const text of ['', 'PRESS', '{}']) expect(read(all, text)).toEqual({})
    expect(refusal(all, 'press')).toBe('Expected JSON.')
  })

  test.each([
    ['', 'name: this key is required.'],
    ['nonsense', 'Expected JSON.'],
    ['[]', 'Expected a JSON object.'],
    ['null', 'Expected a JSON object.'],
    ['"name"', 'Expected a JSON object.'],
    ['7', 'Expected a JSON object.'],
    ['{"name":7}', 'name: expected string.'],
    ['{"name":"long"}', 'name: max length expected (<=3).'],
    ['{"name":"a","nmae":"b"}', 'nmae: there is no such key.'],
    ['{"name":"a","on":"yes"}', 'on: expected boolean.'],
  ])('that is invalid is refused with its field, never with its value: %s', (text, message) => {
    expect(refusal(named, text)).toBe(message)
  })

  test('with a long field name is refused with the beginning of the name', () => {
    expect(refusal(named, `{"name":"a","${'x'.repeat(100)}":1}`)).toBe(`${'x'.repeat(64)}: there is no such key.`)
  })

  test('has its envelope separated from its keys', () => {
    const { transaction, expiresAt, input } = named.read('{"name":"a","transaction":"t","expires_at":5}')
    expect({ transaction, expiresAt, input: input() }).toEqual({ transaction: 't', expiresAt: 5, input: { name: 'a' } })
    expect(named.read('{"name":"a"}')).toMatchObject({ transaction: null, expiresAt: null })
    expect(named.read('{"name":"a","transaction":0,"expires_at":0}')).toMatchObject({ transaction: 0, expiresAt: 0 })
  })

  test('has the time after which it must not be executed, and is refused if that time is not valid', () => {
    const at = (expires: string) => named.read(`{"expires_at":${expires}}`).expiresAt
    expect(at('"2026-01-02T03:04:05Z"')).toBe(Date.UTC(2026, 0, 2, 3, 4, 5))
    expect(at('"2026-01-02T03:04:05+02:00"')).toBe(Date.UTC(2026, 0, 2, 1, 4, 5))
    expect(at('"2026-01-02T03:04:05+0200"')).toBe(Date.UTC(2026, 0, 2, 1, 4, 5))
    expect(at('"2028-02-29T00:04-02:30"')).toBe(Date.UTC(2028, 1, 29, 2, 34))
    expect(at('"2026-01-02T03:04:05.123456789Z"')).toBe(Date.UTC(2026, 0, 2, 3, 4, 5, 123))
    for (const wrong of ['"2026-01-02T03:04:05+02"', '"soon"', 'true', '1e999', 'null'])
      expect(() => at(wrong), wrong).toThrow(/^expires_at: /)
    const whole = ['12026-01-02T03:04:05Z', '2026-01-02T03:04:05Z1', '2026-01-02T03:04:05+24:00']
    for (const text of [
      '2026-01-02 03:04:05Z',
      '2026-01-02T03:04:05 Z',
      '2026-01-02T03Z',
      '2026-01-02T24:00:00Z',
      ...whole,
    ])
      expect(() => at(`"${text}"`), text).toThrow(/^expires_at: expected a time such as /)
    for (const day of ['2026-02-29', '2030-02-30', '2030-04-31', '2030-00-10', '2030-13-01', '2030-01-00'])
      for (const time of ['T00:00:00Z', 'T00:00+01:00'])
        expect(() => at(`"${day}${time}"`), day).toThrow('expires_at: there is no such day.')
    expect(() => at('"2026-01-02T03:04:05+02"')).toThrow('its offset as Z or +hh:mm')
  })

  test('has a transaction of at most 256 characters, and only finite numbers', () => {
    const transaction = (text: string) => named.read(`{"transaction":${text}}`).transaction
    expect(transaction(`"${'x'.repeat(256)}"`)).toHaveLength(256)
    for (const wrong of [`"${'x'.repeat(257)}"`, '1e999', 'true', '{}'])
      expect(() => transaction(wrong), wrong).toThrow(/^transaction: /)
  })

  test('documents its keys and its envelope', () => {
    expect(named.enveloped).toBe(true)
    expect(v.is(named.schema, { name: 'a' })).toBe(true)
    expect(v.is(named.schema, {})).toBe(false)
  })
})

test('a nested object is not an array', () => {
  const outer = object({ filter: inner({ state: v.optional(v.string()) }) })
  expect(read(outer, '{"filter":{"state":"x"}}')).toEqual({ filter: { state: 'x' } })
  expect(refusal(outer, '{"filter":[]}')).toBe('filter: expected Object.')
  expect(refusal(outer, '{"filter":{"stat":1}}')).toBe('filter.stat: there is no such key.')
})

describe('an object that requires one key', () => {
  const some = someOf({ autoupdate: v.optional(v.boolean()), channel: v.optional(v.string()) })

  test('has at least that one, and no unknown ones', () => {
    expect(read(some, '{"channel":"test"}')).toEqual({ channel: 'test' })
    for (const none of ['', '{}', '{"transaction":1}'])
      expect(refusal(some, none)).toBe('Expected autoupdate or channel.')
    expect(refusal(some, '{"chanel":"test"}')).toBe('chanel: there is no such key.')
  })

  test('has an envelope, and its documentation states that it is not empty', () => {
    expect(some.read('{"transaction":1}').transaction).toBe(1)
    expect(some.enveloped).toBe(true)
    expect([{}, { channel: 'x' }, { channel: 1 }].map((value) => v.is(some.schema, value))).toEqual([
      false,
      true,
      false,
    ])
  })
})

describe('a word', () => {
  const onOff = word([
    ['ON', true],
    ['OFF', false],
  ])

  test('stands for its value, and no other word is accepted', () => {
    expect(read(onOff, 'ON')).toBe(true)
    expect(read(onOff, 'OFF')).toBe(false)
    for (const text of ['on', '', 'toString', '{"transaction":1}'])
      expect(refusal(onOff, text)).toBe('Expected ON, OFF.')
  })

  test('has no envelope, and the documentation lists it', () => {
    expect(onOff.read('ON')).toMatchObject({ transaction: null, expiresAt: null })
    expect(onOff.enveloped).toBe(false)
    expect(['ON', 'OFF', 'on'].map((text) => v.is(onOff.schema, text))).toEqual([true, true, false])
  })
})

describe('any value', () => {
  test('is the JSON value, or else the text, and has no envelope', () => {
    expect(read(anyValue, '{"transaction":1}')).toEqual({ transaction: 1 })
    expect(anyValue.read('{"transaction":1}')).toMatchObject({ transaction: null, expiresAt: null })
    expect(read(anyValue, 'ON')).toBe('ON')
    expect(read(anyValue, ' 7 ')).toBe(7)
    expect(anyValue.enveloped).toBe(false)
  })

  test.each([
    ['[', ']'],
    ['{"a":', '}'],
  ])('is nested at most as deep as the contract permits: %s', (open, close) => {
    const nested = (levels: number) => `${open.repeat(levels)}1${close.repeat(levels)}`
    expect(read(anyValue, nested(MAX_JSON_DEPTH))).toEqual(JSON.parse(nested(MAX_JSON_DEPTH)))
    expect(refusal(anyValue, nested(MAX_JSON_DEPTH + 1))).toBe('Expected JSON of at most 32 levels.')
    expect(refusal(object({}), nested(MAX_JSON_DEPTH + 1))).toBe('Expected JSON of at most 32 levels.')
  })

  test('is measured without brackets that are part of a string or closed again', () => {
    const brackets = '['.repeat(MAX_JSON_DEPTH + 1)
    for (const text of [`"${brackets}"`, `"\\"${brackets}"`, `"\\\\","${brackets}"`])
      expect(read(anyValue, `[${text}]`), text).toEqual(JSON.parse(`[${text}]`))
    expect(refusal(anyValue, `["\\\\",${brackets}`)).toBe('Expected JSON of at most 32 levels.')
    const siblings = `[${Array(MAX_JSON_DEPTH + 1)
      .fill('{"a":[]}')
      .join()}]`
    expect(read(anyValue, siblings)).toEqual(JSON.parse(siblings))
  })
})

describe('a duration', () => {
  const wait = object({ wait: duration })

  test.each([
    ['1s', 1000],
    ['1000ms', 1000],
    ['15m', 900_000],
    ['2h', 7_200_000],
    ['2d', 172_800_000],
    ['8760h', 31_536_000_000],
    ['999999999ms', 999_999_999],
  ])('is a number and a unit: %s', (text, ms) => {
    expect(read(wait, JSON.stringify({ wait: text }))).toEqual({ wait: text })
    expect(durationMs('wait', text)).toBe(ms)
  })

  test.each(['', '10', 's', '1w', '1.5h', '-1s', ' 1s', '1s ', '1 s', '1h30m', '1234567890ms'])(
    'is not valid: "%s"',
    (text) => {
      expect(refusal(wait, JSON.stringify({ wait: text }))).toBe('wait: expected a duration such as 30s, 15m or 2h.')
    },
  )

  test.each(['999ms', '0s', '366d', '8761h', '525601m'])('is between a second and a year: %s is not', (text) => {
    expect(() => durationMs('wait', text)).toThrow(
      expect.objectContaining({
        code: 'invalid_payload',
        message: 'wait: expected a duration from 1s to a year.',
      }),
    )
  })
})

describe('text to speak', () => {
  test('is a text, trimmed, or an object with one', () => {
    expect(read(speech, ' Good morning\n')).toEqual({ text: 'Good morning' })
    expect(read(speech, ' {"text":" as it is "}')).toEqual({ text: ' as it is ' })
    expect(read(speech, '["no object"]')).toEqual({ text: '["no object"]' })
  })

  test('has an envelope as an object only', () => {
    expect(speech.read('{"text":"x","transaction":1}').transaction).toBe(1)
    expect(speech.read('x')).toMatchObject({ transaction: null, expiresAt: null })
    expect(speech.enveloped).toBe(true)
  })

  test.each([
    ['', 'text: non empty expected (!0).'],
    ['  ', 'text: non empty expected (!0).'],
    ['{"text":""}', 'text: non empty expected (!0).'],
    ['{}', 'text: this key is required.'],
    ['{"text":"x","voice":"y"}', 'voice: there is no such key.'],
    ['{', 'Expected JSON.'],
  ])('is not empty: %j is refused', (text, message) => {
    expect(refusal(speech, text)).toBe(message)
  })

  test('is documented in both forms', () => {
    const taken = ['x', '', { text: 'x' }, { text: '' }, { text: 'x', voice: 'y' }].map((value) =>
      v.is(speech.schema, value),
    )
    expect(taken).toEqual([true, false, true, false, false])
  })
})

describe('the bytes of a command', () => {
  test('are UTF-8, and at most 64 KiB of it', () => {
    expect(decodeText(bytes('Büro'))).toBe('Büro')
    expect(() => decodeText(new Uint8Array([0xff]))).toThrow('Expected UTF-8 text.')
    expect(decodeText(new Uint8Array(MAX_PAYLOAD_BYTES))).toHaveLength(64 * 1024)
    expect(() => decodeText(new Uint8Array(MAX_PAYLOAD_BYTES + 1))).toThrow('Expected at most 65536 bytes.')
  })

  test('may begin with a byte order mark, which only a raw text keeps', () => {
    const marked = (kind: PayloadKind<unknown>, text: string) => read(kind, decodeText(bytes(`\uFEFF${text}`)))
    for (const text of ['', 'a note', ' a note', '\uFEFFa note', '\uFEFF7', '{"name":', 'a\uFEFF'])
      expect(marked(anyValue, text), text).toBe(`\uFEFF${text}`)
    for (const text of ['7', 'null', '"a note"', '{"name":"a"}', ' [1]', '"\uFEFFa"'])
      expect(marked(anyValue, text), text).toEqual(JSON.parse(text))
    const optional = object({ on: v.optional(v.boolean()) })
    for (const text of ['', 'PRESS', '{}']) expect(marked(optional, text), text).toEqual({})
    expect(optional.read('\uFEFF{"transaction":"t"}').transaction).toBe('t')
    expect(peekTransaction(bytes('\uFEFF{"transaction":7,"nonsense":[]}'))).toBe(7)
    expect(() => marked(named, `\uFEFF{"name":"a"}`)).toThrow('Expected JSON.')
    const onOff = word([['ON', true]])
    expect(marked(onOff, 'ON')).toBe(true)
    for (const text of ['ON', '{"name":"a"}'])
      expect(marked(either(onOff, named), text)).toEqual(read(either(onOff, named), text))
    for (const text of ['a note', '{"text":"a note"}']) expect(marked(speech, text)).toEqual({ text: 'a note' })
  })

  test('have a readable transaction even if the rest is nonsense, so that the refusal is matched to its command', () => {
    const peeked = ['{"transaction":7,"nonsense":[]}', '{"transaction":"t","expires_at":"soon"}', '{}', '[]', 'x']
    expect(peeked.map((text) => peekTransaction(bytes(text)))).toEqual([7, 't', null, null, null])
    const refused = [`{"transaction":7,"a":1e400}`, `{"a":${'9'.repeat(20)},"transaction":"t"}`]
    expect(refused.map((text) => peekTransaction(bytes(text)))).toEqual([7, 't'])
    expect(peekTransaction(bytes(`{"transaction":7,"a":${'['.repeat(33)}${']'.repeat(33)}}`))).toBe(7)
    expect(peekTransaction(bytes(`{"transaction":${'9'.repeat(20)}}`))).toBeNull()
    const deep = `{"transaction":7,"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`
    expect([7, null]).toContain(peekTransaction(bytes(deep)))
    expect(peekTransaction(bytes('{"transaction":{}}'))).toBeNull()
    expect(peekTransaction(new Uint8Array([0xff]))).toBeNull()
  })
})

describe('a number', () => {
  const numbers = object({ value: v.number() })

  const ROUNDED = [
    '1e400 -1e999 12345678901234567891 -9007199254740993 9007199254740993.0 -9007199254740993.000e0',
    '123456789012345678901e0 900719925474099.3E+1 90071992547409930e-1',
  ].flatMap((group) => group.split(' '))

  test.each([...ROUNDED, `${'1'.repeat(300)}e3`])('that would be rounded is refused: %s', (text) => {
    expect(() => anyValue.read(text).input()).toThrow('do not change')
    expect(() => anyValue.read(`{"deep":[${text}]}`).input()).toThrow('do not change')
    expect(() => numbers.read(`{"value":${text}}`)).toThrow('do not change')
    expect(() => numbers.read(`{"transaction":${text},"value":1}`)).toThrow('do not change')
  })

  const EXACT = [
    '9007199254740991 9007199254740992 -1 1e3 1e21 1.7e308 -1.7976931348623157E+308 18446744073709551616',
    '18446744073709551616.0e0 12345678901234567000 9007199254740993.5 0.1234567890123456789 1e-400 -0',
    '0e99999999999999999999 0.0e-99999999999999999999',
  ].flatMap((group) => group.split(' '))

  test.each([...EXACT, `0.${'0'.repeat(60_000)}1e60001`, `1${'0'.repeat(60_000)}e-60000`])(
    'that is exact is accepted: %s',
    (text) => {
      expect(anyValue.read(text).input()).toBe(JSON.parse(text))
    },
  )

  test('in a text is left unchanged', () => {
    expect(anyValue.read('"12345678901234567891"').input()).toBe('12345678901234567891')
    expect(anyValue.read('call 12345678901234567891').input()).toBe('call 12345678901234567891')
  })
})
