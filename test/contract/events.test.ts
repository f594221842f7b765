import { expect, test } from 'vitest'
import { eventsOf } from '../../src/contract/events.ts'
import { APP_KEYS, type AppPatch, patchApp } from '../../src/hub/app.ts'

test('each key of an app causes an event when it changes, except usage figures', () => {
  const full: AppPatch = {
    ...{ name: 'A', version: '1.0.0', enabled: true, state: 'running', crashed: false, crash_count: 0 },
    ...{ crash_message: 'oh', autoupdate: true, channel: 'live', origin: 'appstore', update_available: true },
    ...{ latest_version: '2', cpu_percent: 1, memory_bytes: 1, has_settings: true, sdk: 3, author: 'A' },
    compatibility: '1',
  }
  const before = patchApp(undefined, 'a', full)
  const silent = APP_KEYS.filter((key) => {
    if (key === 'id') return false
    expect(before[key], key).not.toBeNull()
    return eventsOf({ id: 'a', before, after: { ...before, [key]: null } }, 0).length === 0
  })
  expect(silent).toEqual(['cpu_percent', 'memory_bytes'])
})
