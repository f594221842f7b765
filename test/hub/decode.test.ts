import { describe, expect, test } from 'vitest'
import { decodeApps, decodeEvent, decodePatch, decodeScopes } from '../../src/hub/decode.ts'
import { grants } from '../../src/hub/scopes.ts'

describe('a record of the hub', () => {
  test('of an older hub is understood', () => {
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

  test('says of an update what older and newer hubs can say', () => {
    const said = (updateAvailable: unknown) => decodePatch({ updateAvailable })
    expect(said(null)).toEqual({ update_available: false, latest_version: null })
    expect(said(false)).toEqual({ update_available: false, latest_version: null })
    expect(said(true)).toEqual({ update_available: true, latest_version: null })
    expect(said({})).toEqual({ update_available: true, latest_version: null })
    expect(said('2.11.0')).toEqual({ update_available: true, latest_version: '2.11.0' })
    expect(said('1.0.0-beta.3')).toEqual({ update_available: true, latest_version: '1.0.0-beta.3' })
    for (const odd of ['yes', '', '1', 'v', 7])
      expect(said(odd)).toEqual({ update_available: null, latest_version: null })
  })

  test('means a crash by its state alone, and prefers the newer count', () => {
    expect(decodePatch({ state: 'crashed' })).toEqual({ state: 'crashed', crashed: true })
    expect(decodePatch({ crashedCount: 3, exitCount: 9 })).toEqual({ crash_count: 3 })
  })

  test('leaves out what it does not speak of, and ignores what nobody knows', () => {
    expect(decodePatch({ id: 'a', brandColor: '#fff', session: 's', novelty: {} })).toEqual({})
  })

  test('of wrong types is null where it is wrong', () => {
    const wrong = { name: 1, enabled: 'true', state: 'dancing', crashedCount: -1, usage: { cpu: '1', mem: Number.NaN } }
    expect(decodePatch({ ...wrong, author: 4, sdk: '3', updateAvailable: [] })).toEqual({
      name: null,
      enabled: null,
      state: null,
      crash_count: null,
      cpu_percent: null,
      memory_bytes: null,
      author: null,
      sdk: null,
      update_available: null,
      latest_version: null,
    })
  })

  test('cuts a crash message at 1,024 characters and never inside of one', () => {
    expect(decodePatch({ crashedMessage: 'x'.repeat(2000) }).crash_message).toHaveLength(1024)
    const cut = decodePatch({ crashedMessage: `${'x'.repeat(1023)}😀` }).crash_message
    expect(cut).toBe('x'.repeat(1023))
  })
})

describe('a list of apps', () => {
  test('keeps the good records beside the bad ones, whatever they are called', () => {
    const list: unknown = JSON.parse('{"a":{"id":"a"},"b":null,"__proto__":{"id":"__proto__"},"c":{"name":"C"}}')
    const apps = decodeApps(list)
    expect([...apps.keys()]).toEqual(['a', 'b', '__proto__', 'c'])
    expect([...apps.values()].map((patch) => patch !== undefined)).toEqual([true, false, true, false])
  })

  test('that is none is nonsense', () => {
    const lists = [{ error: 'starting up' }, { error: {} }, { a: { id: 'b' } }, { a: { id: 'a' }, b: 1, c: null }]
    for (const nonsense of [null, [], 'apps', 3, ...lists]) {
      expect(() => decodeApps(nonsense)).toThrow(expect.objectContaining({ code: 'nonsense' }))
    }
  })
})

describe('a realtime message', () => {
  test('is an event if it names one and an app', () => {
    expect(decodeEvent('app.update', { id: 'a', enabled: false })).toEqual({
      type: 'update',
      id: 'a',
      patch: { enabled: false },
    })
    expect(decodeEvent('app.delete', { id: 'a', name: 'x' })).toEqual({ type: 'delete', id: 'a' })
  })

  test('of any other kind is passed over', () => {
    for (const [name, payload] of [
      ['app.update', null],
      ['app.update', { name: 'no id' }],
      ['app.update', { id: '' }],
      ['app.dance', { id: 'a' }],
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
    expect(decodeScopes('nonsense')).toBeUndefined()
  })

  test('grant what they prefix, part by part', () => {
    expect(grants(['hub.app'], 'hub.app.control')).toBe(true)
    expect(grants(['hub'], 'hub.speech')).toBe(true)
    expect(grants(['hub.app.readonly'], 'hub.app')).toBe(false)
    expect(grants(['hub.app'], 'hub.application')).toBe(false)
    expect(grants([], 'hub.app')).toBe(false)
    expect(grants(undefined, 'hub.app')).toBe(true)
  })
})
