import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeLevel, encodeLevel, Template, widest } from '../../src/contract/templates.ts'

describe('a topic level', () => {
  test('keeps harmless characters and writes every other byte as %XX', () => {
    expect(encodeLevel('com.athom.hue_2-x')).toBe('com.athom.hue_2-x')
    expect(encodeLevel('a/b +#$é\0\n')).toBe('a%2Fb%20%2B%23%24%C3%A9%00%0A')
    expect(['', '.', '..', '...', '.a', 'a..', 'é.'].map(encodeLevel)).toEqual([
      '%',
      '%2E',
      '%2E%2E',
      '...',
      '.a',
      'a..',
      '%C3%A9.',
    ])
  })

  test('can be decoded for any id, and no two ids share one', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (one, other) => {
        expect(decodeLevel(encodeLevel(one))).toBe(one)
        expect(encodeLevel(one)).toMatch(/^(%|([A-Za-z0-9._-]|%[0-9A-F]{2})+)$/)
        if (one !== other) expect(encodeLevel(one)).not.toBe(encodeLevel(other))
      }),
    )
  })

  test('is accepted in one spelling only: another one would bypass a rule of the broker', () => {
    expect(decodeLevel('%C3%A9')).toBe('é')
    expect(decodeLevel('a%20b')).toBe('a b')
    for (const other of ['%c3%a9', 'é', '%61', 'com%2Ex']) expect(decodeLevel(other), other).toBeUndefined()
  })

  test('that is not valid text, or stands for no id, is refused, wherever the error is', () => {
    for (const level of ['', '%C3', 'a%C3b', '%2', '%4', '%2G', '%G2', '%zz', '%FF', '%%', 'a%', '%2E%'])
      expect(decodeLevel(level), level).toBeUndefined()
  })
})

describe('a template', () => {
  const plain = new Template('{base}/bridge/state', 'b')
  const app = new Template('{base}/{hub}/app/{app}', 'a/b')
  const setting = new Template('{base}/{hub}/app/{app}/setting/{name}', 'b')

  test('gives the topic for its parameters, each as one level', () => {
    expect(plain.fill({})).toBe('b/bridge/state')
    expect(app.fill({ hub: 'home', app: 'x' })).toBe('a/b/home/app/x')
    expect(setting.fill({ hub: 'home', app: 'com/x', name: 'a b' })).toBe('b/home/app/com%2Fx/setting/a%20b')
  })

  test('gives the filter of all its topics', () => {
    expect([plain, app, setting].map((template) => template.fill())).toEqual([
      'b/bridge/state',
      'a/b/+/app/+',
      'b/+/app/+/setting/+',
    ])
  })

  test('finds the parameters of its own topics, still encoded', () => {
    expect(plain.match('b/bridge/state')).toEqual({})
    expect(app.match('a/b/home/app/com%2Fx')).toEqual({ hub: 'home', app: 'com%2Fx' })
    expect(setting.match('b/home/app/x/setting/y')).toEqual({ hub: 'home', app: 'x', name: 'y' })
  })

  test.each([
    'a/b/home/app',
    'a/b/home/app/x/y',
    'a/b/home/apps/x',
    'a/bb/home/app/x',
    'c/d/home/app/x',
    'xa/b/home/app/x',
    'a/b',
    '',
  ])('finds no parameters in a topic of another: %j', (topic) => {
    expect(app.match(topic)).toBeUndefined()
  })
})

test('of several filters those remain that no other includes, each once', () => {
  expect(widest(['b/+/state', 'b/home/state', 'b/+/state', 'b/+/+/x', 'b/home'])).toEqual([
    'b/+/state',
    'b/+/+/x',
    'b/home',
  ])
  expect(widest(['b/home/+', 'b/+/state'])).toEqual(['b/home/+', 'b/+/state'])
  expect(widest(['b/+', 'b/+/+'])).toEqual(['b/+', 'b/+/+'])
  expect(widest([])).toEqual([])
})
