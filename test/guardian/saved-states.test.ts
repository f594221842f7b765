import { expect, test } from 'vitest'
import { SavedStates } from '../../src/guardian/saved-states.ts'

const memory = (at: string) =>
  JSON.stringify({ enabled: true, offered: null, updated: { at, from: '1', to: '2', crashes: 0 } })

test('a payload with a time that Date cannot parse is ignored', () => {
  const saved = new SavedStates()
  saved.add('guardMemory', 'home', 'read', memory('2026-11-23T10:00:00+01:00'))
  saved.add('guardMemory', 'home', 'unread', memory('2026-11-23T10:00:00+01'))
  expect(saved.take('home', 'read')?.memory?.enabled).toBe(true)
  expect(saved.take('home', 'unread')).toEqual({ guard: null, history: [], memory: null })
})
