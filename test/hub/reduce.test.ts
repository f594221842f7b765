import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  APP_KEYS,
  type App,
  type AppEvent,
  type AppPatch,
  type Apps,
  type Change,
  patchApp,
  reduceEvent,
  reduceList,
} from '../../src/hub/app.ts'

const app = (id: string, patch: AppPatch = {}) => patchApp(undefined, id, patch)
const apps = (...list: App[]) => new Map(list.map((one) => [one.id, one]))
const reduce = (before: Apps, event: AppEvent) => [reduceEvent(before, event)].filter((change) => change !== undefined)
const read = (before: Apps, list: Record<string, AppPatch>, eventsDuringRead: AppEvent[] = []) =>
  reduceList(before, new Map(Object.entries(list)), eventsDuringRead)

function applied(before: Apps, changes: Change[]): Map<string, App> {
  const map = new Map(before)
  for (const change of changes) {
    if (change.after === undefined) map.delete(change.id)
    else map.set(change.id, change.after)
  }
  return map
}

describe('an app', () => {
  test('always has every key, null if the hub reported nothing', () => {
    expect(Object.keys(app('a'))).toEqual(APP_KEYS)
    expect(Object.values(app('a')).slice(1)).toEqual(APP_KEYS.slice(1).map(() => null))
  })

  test('keeps values that a partial update does not contain', () => {
    const before = app('a', { name: 'A', state: 'running', memory_bytes: 5 })
    expect(patchApp(before, 'a', { enabled: true })).toEqual({ ...before, enabled: true })
  })

  test('has no usage figures unless it runs', () => {
    const running = app('a', { state: 'running', cpu_percent: 1.5, memory_bytes: 100 })
    expect(running).toMatchObject({ cpu_percent: 1.5, memory_bytes: 100 })
    expect(patchApp(running, 'a', { state: 'stopped' })).toMatchObject({ cpu_percent: null, memory_bytes: null })
  })

  test('is a new object when a patch changes any of its keys', () => {
    const before = app('a', { state: 'running' })
    // Leave out `update_severity`, because it depends on other keys.
    for (const key of APP_KEYS.slice(1).filter((key) => key !== 'update_severity')) {
      const patch: AppPatch = { [key]: 'changed' }
      expect(patchApp(before, 'a', patch), key).toEqual({
        ...before,
        ...(key === 'state' && { cpu_percent: null, memory_bytes: null }),
        ...patch,
      })
    }
  })

  test('is the same reference if a patch changes nothing', () => {
    const before = app('a', { name: 'A', state: 'running' })
    expect(patchApp(before, 'a', { name: 'A' })).toBe(before)
  })
})

describe('reduce', () => {
  test('reports an app that is added, changed and removed', () => {
    const one = app('a', { state: 'running' })
    expect(reduce(apps(), { type: 'create', id: 'a', patch: { state: 'running' } })).toEqual([
      { id: 'a', before: undefined, after: one },
    ])
    expect(reduce(apps(one), { type: 'update', id: 'a', patch: { state: 'stopped' } })).toEqual([
      { id: 'a', before: one, after: app('a', { state: 'stopped' }) },
    ])
    expect(reduce(apps(one), { type: 'delete', id: 'a' })).toEqual([{ id: 'a', before: one, after: undefined }])
  })

  test('does not let a list undo an event that overtook it', () => {
    const stopped = app('a', { state: 'stopped' })
    const stop: AppEvent = { type: 'update', id: 'a', patch: { state: 'stopped' } }
    expect(read(apps(stopped), { a: { state: 'running' } }, [stop])).toEqual([])
    expect(read(apps(), { a: {} }, [{ type: 'delete', id: 'a' }])).toEqual([])
    expect(read(apps(app('n')), {}, [{ type: 'create', id: 'n', patch: {} }])).toEqual([])
  })

  test('applies any list by changes that are never empty, and then reports no other change', () => {
    const id = fc.constantFrom('a', 'b', 'c', 'd')
    const patch: fc.Arbitrary<AppPatch> = fc.record(
      {
        name: fc.constantFrom('x', 'y', null),
        state: fc.constantFrom('running', 'stopped', null),
        memory_bytes: fc.nat(3),
      },
      { requiredKeys: [] },
    )
    const event: fc.Arbitrary<AppEvent> = fc.oneof(
      fc.record({ type: fc.constantFrom('create' as const, 'update' as const), id, patch }),
      fc.record({ type: fc.constant('delete' as const), id }),
    )
    fc.assert(
      fc.property(fc.array(event), fc.dictionary(id, patch), (events, list) => {
        let known: Map<string, App> = new Map()
        for (const one of events) {
          const changes = reduce(known, one)
          for (const change of changes) expect(change.before).not.toEqual(change.after)
          known = applied(known, changes)
        }
        const reached = applied(known, read(known, list))
        expect(reached).toEqual(apps(...Object.entries(list).map(([key, value]) => app(key, value))))
        expect(read(reached, list)).toEqual([])
      }),
    )
  })
})

test('a change of any single part of an offer changes the step', () => {
  const known = patchApp(undefined, 'x', { version: '1.0.0', update_available: true, latest_version: '1.1.0' })
  expect(known.update_severity).toBe('minor')
  expect(patchApp(known, 'x', { version: '1.1.0' }).update_severity).toBe('none')
  expect(patchApp(known, 'x', { latest_version: '2.0.0' }).update_severity).toBe('major')
  expect(patchApp(known, 'x', { update_available: false }).update_severity).toBe('none')
  expect(patchApp(known, 'x', { latest_version: null }).update_severity).toBeNull()
})
