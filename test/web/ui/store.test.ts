import { expect, test } from 'vitest'
import { Store } from '../../../src/web/ui/app/live/store.ts'

test('hubs are listed in natural order, as apps are', () => {
  const store = new Store('hub2mqtt', null)
  const state = ['hub10', 'hub2', 'Hub1'].map((hub): [string, string] => [`hub2mqtt/${hub}/state`, 'online'])
  const at = '2026-01-05T12:00:00Z'
  store.snapshot({ type: 'snapshot', at, state, recent: [], since: {}, usage: {}, refusals: {}, log_level: 'info' })
  expect(store.hubs.value.map(({ name }) => name)).toEqual(['Hub1', 'hub2', 'hub10'])
})
