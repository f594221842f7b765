import { describe, expect, test } from 'vitest'
import { maySecret, readTyped } from '../../../src/web/ui/app/views/app/value.ts'

const ROUNDED = expect.stringContaining('too many digits')

describe('a number that is typed for a setting', () => {
  test.each(['0', '-21.5', '9007199254740992', '-9007199254740994', '5.0', '1.5e1', '1e21', '0.1'])(
    'is accepted unchanged: %s',
    (typed) => {
      expect(readTyped('number', ` ${typed} `, 1)).toEqual({ ok: true, value: Number(typed) })
      expect(readTyped('json', `{"a":[${typed}]}`, {})).toEqual({ ok: true, value: { a: [Number(typed)] } })
    },
  )

  test.each(['9007199254740993', '-9007199254740993', '12345678901234567891', '9007199254740993.0'])(
    'is refused if it would be rounded: %s',
    (typed) => {
      expect(readTyped('number', typed, 1)).toEqual({ ok: false, message: ROUNDED })
      expect(readTyped('json', `{"a":[${typed}]}`, {})).toEqual({ ok: false, message: ROUNDED })
      expect(readTyped('json', `"${typed}"`, {})).toEqual({ ok: true, value: typed })
      expect(readTyped('text', typed, '')).toEqual({ ok: true, value: typed })
    },
  )

  test.each(['1,5', '+9007199254740993', '0x20000000000001', '"1"', '[1]', 'null', 'NaN', '-Infinity', '1 2'])(
    'is refused if it is not a decimal number: %s',
    (typed) => {
      expect(readTyped('number', typed, 1)).toEqual({ ok: false, message: 'Enter a number, such as 21.5.' })
    },
  )
})

describe('the value of a setting', () => {
  test.each([
    ['number', '  ', 'Enter a value.'],
    ['number', '1e999', 'A number is too large, or values are nested too deeply.'],
    ['json', '{"a":[1e999]}', 'A number is too large, or values are nested too deeply.'],
    ['json', '['.repeat(40) + ']'.repeat(40), 'A number is too large, or values are nested too deeply.'],
    ['json', '{"a":', 'This is not valid JSON.'],
  ] as const)('is refused as a %s: %s', (kind, typed, message) => {
    expect(readTyped(kind, typed, {})).toEqual({ ok: false, message })
  })

  test('keeps the line ends of Windows when it is edited, if they were used throughout', () => {
    const typed = 'one\ntwo\n3\n'
    expect(readTyped('text', typed, 'one\r\ntwo\r\n')).toEqual({ ok: true, value: 'one\r\ntwo\r\n3\r\n' })
    expect(readTyped('text', typed, 'one\r\ntwo\n')).toEqual({ ok: true, value: typed })
  })

  test.each([
    ['wachtwoord', 'x'],
    ['account', { access_token: 'x' }],
    ['devices', [{ id: 1, apiKey: 'x' }]],
    ['server', 'https://admin:hunter2@192.168.1.5/'],
    ['stored', ' {"login": {"password": "x"}}'],
    ['deep', JSON.stringify(Array.from({ length: 100 }).reduce((inner) => [inner], 'x'))],
  ])('may be a secret because of its name or its content: %s', (name, value) => {
    expect(maySecret(name, value)).toBe(true)
  })

  test.each([
    ['spinner', 'on'],
    ['server', 'https://192.168.1.5:8443/a@b'],
    ['note', '{not JSON, password'],
    ['list', [1, null, { name: 'x' }]],
  ])('is not a secret without such a sign: %s', (name, value) => {
    expect(maySecret(name, value)).toBe(false)
  })
})
