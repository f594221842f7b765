/** Tests that a list with thousands of changes is applied in several turns of the event loop without losing events. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { holdsTooMany, parseJson } from '../../src/base/json.ts'
import type { AppPatch } from '../../src/hub/app.ts'
import { AppManager, type AppsUpdate } from '../../src/hub/app-manager.ts'
import { decodeApps } from '../../src/hub/decode.ts'
import { FakeClock } from '../support/fake-clock.ts'

const list = (size: number, patch: AppPatch = {}) =>
  new Map<string, AppPatch | undefined>(Array.from({ length: size }, (_, i) => [`app.${i}`, patch]))

function manage(lists: Map<string, AppPatch | undefined>[]) {
  const client = {
    call: () => Promise.resolve(lists.shift() ?? new Map()),
    hub: { confirm: () => Promise.resolve(), listSigned: true },
  }
  // The manager calls only these methods of the client.
  const manager = new AppManager(
    client as never,
    new FakeClock(),
    () => true,
    () => {},
  )
  const news: AppsUpdate[] = []
  manager.subscribe((one) => news.push(one))
  return { manager, news }
}

test('listeners get at most 500 changes in a turn, and only the last one reports that the list was read', async () => {
  const { manager, news } = manage([list(1200)])
  const completeAt: boolean[] = []
  manager.subscribe(() => completeAt.push(manager.complete))
  await manager.refresh()
  expect(news.map(({ changes, read, silent }) => [changes.length, read, silent])).toEqual([
    [500, false, true],
    [500, false, true],
    [200, true, true],
  ])
  expect(completeAt).toEqual([false, false, true])
  expect(manager.all.size).toBe(1200)
})

test.each(['the first list', 'a later list'])(
  'events between the turns of %s are newer than the list',
  async (which) => {
    const lists =
      which === 'the first list' ? [list(1200, { state: 'running' })] : [list(1200), list(1200, { state: 'running' })]
    const { manager, news } = manage(lists)
    if (lists.length > 1) await manager.refresh()
    news.length = 0
    const end = manager.subscribe(() => {
      end()
      manager.receive({ type: 'delete', id: 'app.0' })
      manager.receive({ type: 'delete', id: 'app.1199' })
      manager.receive({ type: 'update', id: 'app.1198', patch: { state: 'crashed' } })
      manager.receive({ type: 'create', id: 'app.new', patch: { state: 'starting' } })
    })
    await manager.refresh()
    expect(manager.all.size).toBe(1199)
    expect(['app.0', 'app.1199', 'app.1198', 'app.new', 'app.7'].map((id) => manager.all.get(id)?.state)).toEqual([
      undefined,
      undefined,
      'crashed',
      'starting',
      'running',
    ])
    expect(news.filter(({ read }) => read)).toHaveLength(1)
  },
)

test('an app that a new filter hides between the turns does not reappear', async () => {
  const { manager } = manage([list(1200), list(1200)])
  const end = manager.subscribe(() => {
    end()
    manager.setFilter((id) => id !== 'app.1199')
  })
  await manager.refresh()
  expect(manager.all.size).toBe(1199)
})

test('an app that one filter hides and the next one shows again before the hub is read causes no change', async () => {
  const { manager, news } = manage([list(10), list(10), list(10)])
  await manager.refresh()
  manager.setFilter((id) => id !== 'app.7')
  manager.setFilter(() => true)
  const before = news.length
  await manager.refresh()
  expect(manager.all.size).toBe(10)
  const told = news.slice(before).filter(({ changes }) => changes.length > 0)
  expect(told.map(({ changes, silent }) => [changes.map(({ id }) => id), silent])).toEqual([[['app.7'], true]])
})

test('a destroyed manager applies nothing more', async () => {
  const { manager, news } = manage([list(1200)])
  const end = manager.subscribe(() => {
    end()
    manager.destroy()
  })
  await manager.refresh()
  expect(news).toHaveLength(1)
  expect(manager.all.size).toBe(0)
})

test.each(['after', 'during'])('events %s a read add no more than 5,000 apps', async (when) => {
  const { manager } = manage([list(4999)])
  const read = manager.refresh()
  if (when === 'after') await read
  for (let i = 0; i < 20; i += 1) manager.receive({ type: 'create', id: `sent.${i}`, patch: {} })
  manager.receive({ type: 'create', id: 'app.7', patch: { state: 'crashed' } })
  await read
  expect(manager.all.size).toBe(5000)
  expect(manager.all.get('app.7')?.state).toBe('crashed')
})

test('more than 5,000 apps are not a list', () => {
  const named = (size: number) => Object.fromEntries(Array.from({ length: size }, (_, i) => [`a${i}`, { id: `a${i}` }]))
  expect(decodeApps(named(5000)).size).toBe(5000)
  expect(() => decodeApps(named(5001))).toThrow(expect.objectContaining({ code: 'nonsense' }))
})

test('JSON is read unchanged, up to 200,000 values, whatever its texts contain', () => {
  const property = fc.property(fc.json(), (text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text))
  })
  fc.assert(property)
  const parsed = (text: string) => [holdsTooMany(text), parseJson(text) !== undefined]
  expect(parsed(`[${'0,'.repeat(199_999)}0]`)).toEqual([false, true])
  expect(parsed(`[${'0,'.repeat(200_000)}0]`)).toEqual([true, false])
  expect(parsed('['.repeat(200_001) + ']'.repeat(200_001))).toEqual([true, false])
  expect(parsed(JSON.stringify(',[{\\"'.repeat(300_000)))).toEqual([false, true])
  expect(parsed(`"${',\\"'.repeat(300_000)}`)).toEqual([false, false])
})
