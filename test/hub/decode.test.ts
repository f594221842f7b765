import { describe, expect, test } from 'vitest'
import {
  decodeApp,
  decodeApps,
  decodeEvent,
  decodeJson,
  decodePatch,
  decodeRecord,
  decodeScopes,
  decodeSettings,
} from '../../src/hub/decode.ts'
import { HubError } from '../../src/hub/errors.ts'
import { grants } from '../../src/hub/status.ts'

function nonsense(decode: () => unknown): string {
  try {
    decode()
  } catch (error) {
    expect(error).toBeInstanceOf(HubError)
    expect(error).toMatchObject({ code: 'nonsense' })
    return error instanceof Error ? error.message : ''
  }
  throw new Error('it is taken')
}

describe('a record of the hub', () => {
  test('of an older hub is decoded', () => {
    const record = {
      id: 'a',
      name: 'A',
      version: '1.2.3',
      enabled: true,
      state: 'running',
      crashed: false,
      exitCount: 2,
      autoupdate: true,
      channel: 'stable',
      origin: 'appstore',
      updateAvailable: { version: '1.3.0', permissions: [] },
      usage: { cpu: 0.00417, mem: 31457280.4 },
      settings: true,
      sdk: 3,
      author: { name: 'Someone', email: 'x@y.z' },
      compatibility: '>=5.0.0',
    }
    expect(decodePatch(record)).toEqual({
      name: 'A',
      version: '1.2.3',
      enabled: true,
      state: 'running',
      crashed: false,
      crash_count: 2,
      autoupdate: true,
      channel: 'stable',
      origin: 'appstore',
      update_available: true,
      latest_version: '1.3.0',
      cpu_percent: 0.4,
      memory_bytes: 31457280,
      has_settings: true,
      sdk: 3,
      author: 'Someone',
      compatibility: '>=5.0.0',
    })
  })

  test('has the update as older and newer hubs report it', () => {
    const said = (updateAvailable: unknown) => decodePatch({ updateAvailable })
    expect(said(null)).toEqual({ update_available: false, latest_version: null })
    expect(said(false)).toEqual({ update_available: false, latest_version: null })
    expect(said(true)).toEqual({ update_available: true, latest_version: null })
    expect(said({})).toEqual({ update_available: true, latest_version: null })
    expect(said('2.11.0')).toEqual({ update_available: true, latest_version: '2.11.0' })
    expect(said('1.0.0-beta.3')).toEqual({ update_available: true, latest_version: '1.0.0-beta.3' })
    expect(said('12.34.5+build')).toEqual({ update_available: true, latest_version: '12.34.5+build' })
    for (const odd of ['yes', '', '1', 'v', 7, 'v1.2.3', '1.2.3 or so', '1.2x3', ['1.2.3']])
      expect(said(odd)).toEqual({ update_available: null, latest_version: null })
  })

  test('has a crash only if its state reports one, and prefers the newer count', () => {
    expect(decodePatch({ state: 'crashed' })).toEqual({ state: 'crashed', crashed: true })
    expect(decodePatch({ crashedCount: 3, exitCount: 9 })).toEqual({ crash_count: 3 })
  })

  test('of a newer hub has a crash, and no crash, as its state reports it if crashed is missing or null', () => {
    for (const rest of [{}, { crashed: null }]) {
      const newer = { crashedCount: 1, ...rest }
      expect(decodePatch({ ...newer, state: 'crashed' })).toMatchObject({ crashed: true })
      for (const state of ['starting', 'running', 'stopping', 'stopped'])
        expect(decodePatch({ ...newer, state })).toMatchObject({ crashed: false })
      expect(decodePatch({ ...newer, state: 'dancing' }).crashed ?? null).toBeNull()
    }
    expect(decodePatch({ crashed: null, state: 'crashed' })).toMatchObject({ crashed: true })
    expect(decodePatch({ crashed: true, crashedCount: 1, state: 'running' })).toMatchObject({ crashed: true })
    // A partial event, and a record of an older hub: neither shows whether the app has crashed.
    expect(decodePatch({ state: 'running' })).toEqual({ state: 'running' })
    expect(decodePatch({ crashed: null, exitCount: 1, state: 'stopped' })).toMatchObject({ crashed: null })
  })

  const NO_FIGURES = { crash_count: null, cpu_percent: null, memory_bytes: null }
  const ZERO = { crash_count: 0, cpu_percent: 0, memory_bytes: 0, sdk: 0 }
  const NO_UPDATE = { update_available: null, latest_version: null }
  test.each([
    ['nothing for unknown keys', { id: 'a', brandColor: '#fff', session: 's', novelty: {} }, {}],
    ['null for texts of a wrong type', { name: 1, author: 4 }, { name: null, author: null }],
    ['null for flags of a wrong type', { enabled: 'true', state: 'dancing' }, { enabled: null, state: null }],
    ['null for numbers of a wrong type', { sdk: '3', updateAvailable: [] }, { sdk: null, ...NO_UPDATE }],
    ['zero for a figure of zero', { crashedCount: 0, usage: { cpu: 0, mem: 0 }, sdk: 0 }, ZERO],
    ['no negative figures', { crashedCount: -1, usage: { cpu: -0.1, mem: -1 } }, NO_FIGURES],
    ['no half crashes, and no usage as text', { crashedCount: 1.5, usage: 'much' }, NO_FIGURES],
    ['no figures as text', { crashedCount: '2', usage: { cpu: '1', mem: Number.NaN } }, NO_FIGURES],
    ['no huge figures', { usage: { cpu: 1e308, mem: 2 ** 60 } }, { cpu_percent: null, memory_bytes: null }],
    ['no huge percentages', { usage: { cpu: 2 ** 60, mem: 1e308 } }, { cpu_percent: null, memory_bytes: null }],
  ])('has %s', (_, record, patch) => {
    expect(decodePatch(record)).toEqual(patch)
  })

  test('has a crash message of at most 1,024 characters, cut at a character boundary', () => {
    expect(decodePatch({ crashedMessage: 'x'.repeat(2000) }).crash_message).toHaveLength(1024)
    const cut = decodePatch({ crashedMessage: `${'x'.repeat(1023)}😀` }).crash_message
    expect(cut).toBe('x'.repeat(1023))
    const whole = `😀${'x'.repeat(1022)}`
    expect(decodePatch({ crashedMessage: whole }).crash_message).toBe(whole)
    expect(decodePatch({ crashedMessage: `${whole}y` }).crash_message).toBe(whole)
  })

  test('has only texts that strict JSON parsers accept, such as the one of Home Assistant', () => {
    const half = '\ud83d'
    const record = {
      name: half,
      version: half,
      author: { name: half },
      channel: half,
      origin: half,
      compatibility: half,
    }
    const patch = decodePatch({ ...record, crashedMessage: `Error ${half}`, updateAvailable: { version: half } })
    expect(JSON.stringify(patch)).not.toContain('\\ud83d')
    expect(patch).toMatchObject({ name: '\ufffd', crash_message: 'Error \ufffd', latest_version: '\ufffd' })
    expect(decodePatch({ name: `${'x'.repeat(1023)}${half}` }).name).toBe(`${'x'.repeat(1023)}\ufffd`)
    expect(decodePatch({ name: 'Ä 😀' }).name).toBe('Ä 😀')
  })
})

describe('an answer', () => {
  test('about an app is the record of the requested app', () => {
    expect(decodeApp({ id: 'a', name: 'A' }, { id: 'a' })).toEqual({ name: 'A' })
    for (const other of [null, [], 'a', { id: 'b' }, { name: 'A' }, { error: 'starting up' }])
      expect(nonsense(() => decodeApp(other, { id: 'a' }))).toContain('not the app')
    for (const id of ['', '\ud800']) expect(nonsense(() => decodeApp({ id }, { id }))).toContain('not the app')
  })

  test('with a record, or with settings, is an object and passed on unchanged', () => {
    const value = { id: 'a', novelty: [1, { x: null }] }
    expect(decodeRecord(value, { id: 'a' })).toBe(value)
    expect(decodeSettings(value)).toBe(value)
    expect(nonsense(() => decodeRecord(value, { id: 'b' }))).toContain('not the app')
    for (const none of [null, 7, 'text', [value]]) {
      expect(nonsense(() => decodeRecord(none, { id: 'a' }))).toContain('not the app')
      expect(nonsense(() => decodeSettings(none))).toContain('without a settings')
    }
  })

  test('of a generic call is any JSON, up to 64 levels deep', () => {
    const nested = (levels: number) => JSON.parse(`${'['.repeat(levels)}1${']'.repeat(levels)}`)
    for (const value of [null, true, 7, 'text', {}, nested(64)]) expect(decodeJson(value)).toBe(value)
    for (const levels of [65, 5000]) {
      expect(nonsense(() => decodeJson(nested(levels)))).toContain('more than 64 levels')
      expect(nonsense(() => decodeSettings({ deep: nested(levels) }))).toContain('more than 64 levels')
    }
  })
})

describe('a list of apps', () => {
  test('keeps valid records next to invalid ones, whatever their ids are', () => {
    const list: unknown = JSON.parse(
      '{"a":{"id":"a"},"b":null,"__proto__":{"id":"__proto__"},"c":{"name":"C"},"d":{"id":"D"},"e":{"id":"e"},' +
        '"":{"id":""},"\\ud83d":{"id":"\\ud83d"},"f":{"id":"f"},"g":{"id":"g"}}',
    )
    const apps = decodeApps(list)
    const valid = [...apps].flatMap(([id, patch]) => (patch === undefined ? [] : [id]))
    expect([...apps.keys()].slice(0, 6)).toEqual(['a', 'b', '__proto__', 'c', 'd', 'e'])
    expect(valid).toEqual(['a', '__proto__', 'e', 'f', 'g'])
  })

  test('that is not a list is nonsense', () => {
    const lists = [
      { error: 'starting up' },
      { error: {} },
      { error: 'x', error_description: 'y', stack: 'z' },
      { a: { id: 'b' } },
      { a: { id: 'a' }, b: 1, c: null },
    ]
    for (const none of [null, [], 'apps', 3, ...lists])
      expect(nonsense(() => decodeApps(none))).toContain('not a list of apps')
  })
})

describe('a realtime message', () => {
  test('is an event if it names one and an app', () => {
    expect(decodeEvent('app.update', { id: 'a', enabled: false })).toEqual({
      type: 'update',
      id: 'a',
      patch: { enabled: false },
    })
    expect(decodeEvent('app.create', { id: 'a', enabled: true })).toEqual({
      type: 'create',
      id: 'a',
      patch: { enabled: true },
    })
    expect(decodeEvent('app.delete', { id: 'a', name: 'x' })).toEqual({ type: 'delete', id: 'a' })
  })

  test('of any other kind is ignored', () => {
    for (const [name, payload] of [
      ['app.update', null],
      ['app.update', { name: 'no id' }],
      ['app.update', { id: '' }],
      ['app.create', { id: '\ud83d' }],
      ['app.dance', { id: 'a' }],
      ['', { id: 'a' }],
      ['app.update', 'a'],
      [7, { id: 'a' }],
    ]) {
      expect(decodeEvent(name, payload)).toBeUndefined()
    }
  })
})

describe('scopes', () => {
  test('are read in either spelling, the intersected ones first', () => {
    expect(decodeScopes({ scopes: ['homey'], intersectedScopes: ['homey.app.readonly', 7] })).toEqual([
      'hub.app.readonly',
    ])
    expect(decodeScopes({ scopes: ['hub.app'] })).toEqual(['hub.app'])
    for (const none of ['nonsense', null, undefined, {}, { scopes: 'hub.app' }])
      expect(decodeScopes(none)).toBeUndefined()
  })

  test('are limited in number and length', () => {
    const many = Array.from({ length: 50_000 }, (_, i) => `homey.${i}`)
    expect(decodeScopes({ scopes: ['homey.x'.repeat(1_000), ...many] })).toEqual(
      many.slice(0, 500).map((scope) => scope.replace('homey', 'hub')),
    )
  })

  test('grant all scopes that they prefix, part by part', () => {
    expect(grants(['hub.app'], 'hub.app.control')).toBe(true)
    expect(grants(['hub'], 'hub.speech')).toBe(true)
    expect(grants(['hub.app.readonly'], 'hub.app')).toBe(false)
    expect(grants(['hub.app'], 'hub.application')).toBe(false)
    expect(grants([], 'hub.app')).toBe(false)
    expect(grants(undefined, 'hub.app')).toBe(true)
  })
})
