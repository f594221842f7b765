import { describe, expect, test } from 'vitest'
import { eventsOf } from '../../src/contract/events.ts'
import { APP_KEYS, type AppPatch, patchApp } from '../../src/hub/app.ts'

const AT = '2026-01-01T00:00:00.000Z'
const MS = Date.parse(AT)
const base: AppPatch = { name: 'A', version: '1.0.0', enabled: true, state: 'running', crashed: false, crash_count: 0 }
const app = (patch: AppPatch = {}) => patchApp(undefined, 'a', { ...base, ...patch })
const told = (from: AppPatch, to: AppPatch) => eventsOf({ id: 'a', before: app(from), after: app(to) }, MS)

describe('a subscriber gets an event', () => {
  test('for an app that is installed and for one that is removed', () => {
    expect(eventsOf({ id: 'a', before: undefined, after: app() }, MS)).toEqual([
      { event_type: 'installed', app: 'a', changed: [], at: AT },
    ])
    expect(eventsOf({ id: 'a', before: app(), after: undefined }, MS)).toMatchObject([{ event_type: 'removed' }])
  })

  test('for a new version, with both versions', () => {
    const [event, ...more] = told({ update_available: true }, { version: '2.0.0', update_available: false })
    expect(event).toMatchObject({
      event_type: 'updated',
      from: '1.0.0',
      to: '2.0.0',
      changed: ['version', 'update_available', 'update_severity'],
    })
    expect(more).toEqual([])
  })

  test('for a crash with its message and count, and for the recovery', () => {
    const crash: AppPatch = { state: 'crashed', crashed: true, crash_message: 'boom', crash_count: 1 }
    expect(told({}, crash)).toMatchObject([{ event_type: 'crashed', message: 'boom', count: 1 }])
    expect(told(crash, { ...crash, state: 'running', crashed: false })).toMatchObject([
      { event_type: 'recovered' },
      { event_type: 'started' },
    ])
  })

  test('for a second crash before recovery from the first', () => {
    const crash: AppPatch = { crashed: true, crash_count: 1 }
    expect(told(crash, { ...crash, crash_count: 2 })).toMatchObject([{ event_type: 'crashed', count: 2 }])
  })

  test('for enabling, disabling, starting and stopping', () => {
    expect(told({}, { enabled: false, state: 'stopped' }).map((event) => event.event_type)).toEqual([
      'disabled',
      'stopped',
    ])
    expect(told({ enabled: false, state: 'stopped' }, {}).map((event) => event.event_type)).toEqual([
      'enabled',
      'started',
    ])
  })

  test('for any other change: changed', () => {
    expect(told({}, { state: 'stopping' })).toMatchObject([{ event_type: 'changed', changed: ['state'] }])
    expect(told({}, { autoupdate: true })).toMatchObject([{ event_type: 'changed', changed: ['autoupdate'] }])
  })
})

test('each key of an app causes an event when it changes, except usage figures', () => {
  const full: AppPatch = {
    ...{ ...base, crash_message: 'oh', autoupdate: true, channel: 'live', origin: 'appstore', update_available: true },
    ...{ latest_version: '2', cpu_percent: 1, memory_bytes: 1, has_settings: true, sdk: 3, author: 'A' },
    compatibility: '1',
  }
  const before = app(full)
  const silent = APP_KEYS.filter((key) => {
    if (key === 'id') return false
    expect(before[key], key).not.toBeNull()
    return eventsOf({ id: 'a', before, after: { ...before, [key]: null } }, MS).length === 0
  })
  expect(silent).toEqual(['cpu_percent', 'memory_bytes'])
})
