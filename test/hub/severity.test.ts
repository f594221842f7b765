import { expect, test } from 'vitest'
import { type AppPatch, patchApp } from '../../src/hub/app.ts'

test.each<[said: AppPatch, severity: string | null]>([
  [{ version: '1.2.3', update_available: true, latest_version: '1.2.4' }, 'patch'],
  [{ version: '1.2.3', update_available: true, latest_version: '2.0.0' }, 'major'],
  [{ version: '1.2.3', update_available: false, latest_version: null }, 'none'],
  [{ version: '1.2.3', update_available: true, latest_version: null }, null],
  [{ version: '1.2.3' }, null],
])('an app for which the hub reports %o has the step of its update: %s', (said, severity) => {
  expect(patchApp(undefined, 'x', said).update_severity).toBe(severity)
})

test('a change of any single part of an offer changes the step', () => {
  const known = patchApp(undefined, 'x', { version: '1.0.0', update_available: true, latest_version: '1.1.0' })
  expect(known.update_severity).toBe('minor')
  expect(patchApp(known, 'x', { version: '1.1.0' }).update_severity).toBe('none')
  expect(patchApp(known, 'x', { latest_version: '2.0.0' }).update_severity).toBe('major')
  expect(patchApp(known, 'x', { update_available: false }).update_severity).toBe('none')
  expect(patchApp(known, 'x', { latest_version: null }).update_severity).toBeNull()
})
