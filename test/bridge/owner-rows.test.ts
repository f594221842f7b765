import { describe, expect, test } from 'vitest'
import type { Json } from '../../src/base/json.ts'
import { type Condition, OwnerRows, rowTable } from '../../src/bridge/owner-rows.ts'
import { countsOf } from '../../src/contract/publications.ts'
import { createTopics } from '../../src/contract/topics.ts'
import { type AppPatch, patchApp } from '../../src/hub/app.ts'
import { UNKNOWN_STATUS } from '../../src/hub/status.ts'

const topics = createTopics('b')

function start(conditions: readonly Condition[] = ['discovery', 'settings.publish']) {
  const held: string[] = []
  const failed: string[] = []
  const link = {
    hold: (topic: string, payload: string | null) =>
      void held.push(payload === null ? `${topic} cleared` : `${topic} ${payload}`),
  }
  const log = { error: ({ topic }: { readonly topic: string }) => void failed.push(topic) }
  const table = rowTable(topics, link, log, (when) => conditions.includes(when))
  const app = (id: string) => {
    const rows = new OwnerRows({ kind: 'app', hub: 'home', app: id }, table)
    const set = (patch: AppPatch = {}, installing = false) =>
      rows.set({ app: patchApp(undefined, id, patch), installing })
    return { rows, set }
  }
  const setting = (app: string, name: string) => new OwnerRows({ kind: 'setting', hub: 'home', app, name }, table)
  const hub = () => new OwnerRows({ kind: 'hub', hub: 'home' }, table)
  const take = () => held.splice(0).map((line) => line.replace(/ [{].*/, ' {}'))
  return { table, app, setting, hub, held, failed, take }
}

describe('the facts about an owner', () => {
  test('are rendered into the rows of that owner only', () => {
    const { app, take } = start()
    app('a/b').set()
    expect(take()).toEqual(['b/home/app/a%2Fb {}', 'b/home/app/a%2Fb/update {}'])
  })

  test('are rendered only into the rows that depend on a change', () => {
    const { app, take } = start()
    const { set } = app('x')
    set({ version: '1' })
    take()
    set({ version: '1', crash_count: 1 })
    expect(take()).toEqual(['b/home/app/x {}'])
    set({ version: '1', crash_count: 1 }, true)
    expect(take()).toEqual(['b/home/app/x {}', 'b/home/app/x/update {}'])
  })

  test('are rendered into one row if only usage figures changed, as no other row has them', () => {
    const { table, take } = start()
    const rows = new OwnerRows({ kind: 'app', hub: 'home', app: 'x' }, table)
    const facts = (usage: AppPatch) => {
      const known = { version: '1', update_available: true, state: 'running' } as const
      return { app: patchApp(undefined, 'x', { ...known, ...usage }), installing: true }
    }
    rows.set(facts({ cpu_percent: 1, memory_bytes: 1 }))
    take()
    rows.set(facts({ cpu_percent: 2, memory_bytes: 2 }))
    expect(take()).toEqual(['b/home/app/x {}'])
    rows.setUsage({ app: facts({ cpu_percent: 3, memory_bytes: 3 }).app })
    expect(take()).toEqual(['b/home/app/x {}'])
  })

  test('are rendered only if configuration asks for the row', () => {
    const { app, setting, take } = start([])
    app('x').set()
    setting('x', 'mode').set({ value: true })
    expect(take()).toEqual(['b/home/app/x {}'])
  })

  test('that cannot be rendered into one row do not prevent the others', () => {
    const { setting, failed, held } = start()
    const deep: Json = JSON.parse('['.repeat(20_000) + ']'.repeat(20_000))
    setting('x', 'deep').set({ value: deep })
    setting('x', 'mode').set({ value: true })
    expect(failed).toEqual(['b/home/app/x/setting/deep'])
    expect(held).toEqual(['b/home/app/x/setting/mode true'])
  })

  test('may leave a row on the broker unchanged until they are known', () => {
    const { hub, take } = start()
    const rows = hub()
    const facts = { commands: [], counts: countsOf(new Map()), complete: false }
    rows.set({ ...facts, status: UNKNOWN_STATUS })
    expect(take()).toEqual([])
    rows.set({ ...facts, status: { ...UNKNOWN_STATUS, reason: 'unreachable' } })
    expect(take()).toEqual(['b/home/state offline', 'b/home/info {}'])
  })
})

describe('an owner that is removed', () => {
  test('is rendered again when it returns unchanged', () => {
    const { app, take } = start()
    const { rows, set } = app('x')
    set()
    rows.clear()
    take()
    set()
    expect(take()).toEqual(['b/home/app/x {}', 'b/home/app/x/update {}'])
  })

  test('without known facts is cleared too, because the broker may have its rows', () => {
    const { setting, take } = start()
    setting('x', 'mode').clear()
    expect(take()).toEqual(['b/home/app/x/setting/mode cleared'])
  })
})

describe('the topics of the table', () => {
  test('have an owner', () => {
    expect(topics.parse('b/home/app/a%2Fb/setting/x%20y')?.owner).toEqual({
      kind: 'setting',
      hub: 'home',
      app: 'a/b',
      name: 'x y',
    })
    expect(topics.parse('b/bridge/info')?.name).toBe('bridgeInfo')
    expect(topics.parse('b/home/info')?.owner).toEqual({ kind: 'hub', hub: 'home' })
    expect(topics.parse('b/home/app/x/event')?.owner).toEqual({ kind: 'app', hub: 'home', app: 'x' })
    for (const topic of ['b/bridge/event', 'b/bridge/summary', 'c/home/state', 'b/home']) {
      expect(topics.parse(topic), topic).toBeUndefined()
    }
  })
})
