import { describe, expect, test } from 'vitest'
import type { Json } from '../../src/base/json.ts'
import { type Condition, Holdings } from '../../src/bridge/holdings.ts'
import { createTopics } from '../../src/contract/topics.ts'
import { type AppPatch, patchApp } from '../../src/hub/app.ts'
import { UNKNOWN_STATUS } from '../../src/hub/status.ts'

const topics = createTopics('b')

function start(conditions: readonly Condition[] = ['discovery', 'settings.publish']) {
  const held: string[] = []
  const failed: string[] = []
  const holdings = new Holdings({
    topics,
    onFailure: (topic) => failed.push(topic),
    hold: (topic, payload) => held.push(payload === null ? `${topic} cleared` : `${topic} ${payload}`),
    applies: (when) => conditions.includes(when),
  })
  const app = (id: string, patch: AppPatch = {}, installing = false) =>
    holdings.set({ kind: 'app', hub: 'home', app: id }, { app: patchApp(undefined, id, patch), installing })
  const setting = (app: string, name: string, value: boolean | string) =>
    holdings.set({ kind: 'setting', hub: 'home', app, name }, { value })
  const take = () => held.splice(0).map((line) => line.replace(/ [{].*/, ' {}'))
  return { holdings, app, setting, held, failed, take }
}

describe('what is known of an owner', () => {
  test('is rendered into the rows of that owner alone', () => {
    const { app, take } = start()
    app('a/b')
    expect(take()).toEqual(['b/home/app/a%2Fb {}', 'b/home/app/a%2Fb/update {}'])
  })

  test('is rendered only into the rows that follow from what changed', () => {
    const { app, take } = start()
    app('x', { version: '1' })
    take()
    app('x', { version: '1', crash_count: 1 })
    expect(take()).toEqual(['b/home/app/x {}'])
    app('x', { version: '1', crash_count: 1 }, true)
    expect(take()).toEqual(['b/home/app/x {}', 'b/home/app/x/update {}'])
  })

  test('is rendered only where configuration asks for the row', () => {
    const { app, setting, take } = start([])
    app('x')
    setting('x', 'mode', true)
    expect(take()).toEqual(['b/home/app/x {}'])
  })

  test('keeps no other back when it cannot be rendered', () => {
    const { holdings, setting, failed, held } = start()
    const deep: Json = JSON.parse('['.repeat(20_000) + ']'.repeat(20_000))
    holdings.set({ kind: 'setting', hub: 'home', app: 'x', name: 'deep' }, { value: deep })
    setting('x', 'mode', true)
    expect(failed).toEqual(['b/home/app/x/setting/deep'])
    expect(held).toEqual(['b/home/app/x/setting/mode true'])
  })

  test('may leave a row as the broker has it, while nothing better is known', () => {
    const { holdings, take } = start()
    const facts = { commands: [], apps: new Map(), complete: false }
    holdings.set({ kind: 'hub', hub: 'home' }, { ...facts, status: UNKNOWN_STATUS })
    expect(take()).toEqual([])
    holdings.set({ kind: 'hub', hub: 'home' }, { ...facts, status: { ...UNKNOWN_STATUS, reason: 'unreachable' } })
    expect(take()).toEqual(['b/home/state offline', 'b/home/info {}'])
  })
})

describe('an owner that is gone', () => {
  test('leaves nothing, nor does anything below it', () => {
    const { holdings, app, setting, take } = start()
    app('x')
    app('y')
    setting('x', 'a b', 'on')
    take()
    holdings.drop({ kind: 'app', hub: 'home', app: 'x' })
    expect(take()).toEqual([
      'b/home/app/x/setting/a%20b cleared',
      'b/home/app/x cleared',
      'b/home/app/x/update cleared',
    ])
    holdings.drop({ kind: 'hub', hub: 'home' })
    expect(take()).toEqual([
      'b/home/app/y cleared',
      'b/home/app/y/update cleared',
      'b/home/state cleared',
      'b/home/info cleared',
      'b/home/summary cleared',
    ])
  })

  test('is rendered anew when it comes back as it was', () => {
    const { holdings, app, take } = start()
    app('x')
    holdings.drop({ kind: 'app', hub: 'home', app: 'x' })
    take()
    app('x')
    expect(take()).toEqual(['b/home/app/x {}', 'b/home/app/x/update {}'])
  })

  test('of which nothing was known is cleared all the same: the broker may know more', () => {
    const { holdings, take } = start()
    holdings.drop({ kind: 'setting', hub: 'home', app: 'x', name: 'mode' })
    expect(take()).toEqual(['b/home/app/x/setting/mode cleared'])
  })
})

describe('the topics of the table', () => {
  test('are read back by as few filters as match them all', () => {
    expect(topics.retainedFilters.toSorted()).toEqual([
      'b/+/app/+',
      'b/+/app/+/guard',
      'b/+/app/+/guard-memory',
      'b/+/app/+/history',
      'b/+/app/+/setting/+',
      'b/+/app/+/update',
      'b/+/guard-memory',
      'b/+/info',
      'b/+/state',
      'b/+/summary',
      'b/bridge/discovery',
      'b/bridge/health',
      'b/bridge/log-level',
      'b/fleet',
      'b/rollout/+',
    ])
  })

  test('that hold nothing are known too', () => {
    expect(topics.transientFilters.toSorted()).toEqual([
      ...['b/+/app/+/event', 'b/+/event', 'b/bridge/presence', 'b/bridge/probe'],
    ])
  })

  test('say whose they are', () => {
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
