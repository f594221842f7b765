import { describe, expect } from 'vitest'
import { retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { ALL_SCOPES, KEY, World } from '../support/world.ts'
import { test } from '../support/world-test.ts'

/** Returns whether the broker holds exactly the apps of the hub, and their current states. */
async function agrees({ hub, broker }: World): Promise<boolean> {
  const held = [...(await retainedOn(broker.port))].filter(([topic]) => /^hub2mqtt\/home\/app\/[^/]+$/.test(topic))
  const states = Object.fromEntries(held.map(([topic, text]) => [topic.split('/').at(-1), JSON.parse(text).state]))
  const wanted = Object.fromEntries([...hub.apps.values()].map(({ id, state }) => [id, state]))
  return JSON.stringify(Object.entries(states).sort()) === JSON.stringify(Object.entries(wanted).sort())
}

describe.concurrent('a subscriber', () => {
  test('finds messages of other programs under the same first level unchanged', async ({ world }) => {
    const foreign = ['kitchen/state', 'kitchen/info', 'kitchen/app/x', 'kitchen/app/x/setting/y', 'state', 'kitchen']
    const say = (text: string) =>
      Promise.all(foreign.map((name) => world.observer.publish(`hub2mqtt/${name}`, text, { retain: true })))
    await say('before')
    await world.restart()
    await until('the first list', () => world.bridge.lines.some((line) => line.includes('hub online')))
    await say('after')
    await world.observer.publish('hub2mqtt/home/app/ghost', '{}', { retain: true })
    await until('the repair of ours', () => world.observer.last('hub2mqtt/home/app/ghost') === '')
    for (const name of foreign) expect(world.observer.texts(`hub2mqtt/${name}`), name).toEqual(['before', 'after'])
  })
})

describe.concurrent('an app that configuration leaves out', () => {
  test('is not on MQTT at all: no state, no event, no command', async () => {
    await using world = await World.start({ env: { APPS_EXCLUDE: 'com.athom.*' } })
    const app = 'com.athom.hue'
    expect(world.hub.apps.has(app)).toBe(true)
    world.hub.crash(app)
    expect((await world.request(`home/app/${app}/cmd/get`)).error?.code).toBe('unknown_app')
    const all = await world.request('home/cmd/get-apps')
    expect(Object.keys(all.data ?? {})).toHaveLength(world.hub.apps.size - 1)
    expect((await world.request('home/cmd/get-apps', '{"filter":{"id":"com.athom.hue"}}')).data).toEqual({})
    expect(
      world.observer.seen.filter(
        ({ topic }) =>
          topic.startsWith(`hub2mqtt/home/app/${app}`) && !topic.includes('/cmd/') && !topic.includes('/result/'),
      ),
    ).toEqual([])
  })
})

describe.concurrent('a published setting that cannot be published with its current value', () => {
  const id = 'com.example.app'
  const deep = JSON.parse('['.repeat(70) + ']'.repeat(70))
  const large = 'x'.repeat(65 * 1024)
  const publish = 'settings:\n  publish:\n    com.example.app: { fine: switch, odd: text, missing: text }\n'
  const topic = `hub2mqtt/home/app/${id}/setting`

  const startWith = async (settings: Record<string, unknown>) => {
    const world = await World.start({ file: publish, hub: { apps: [{ id, settings }] } })
    const set = async (name: string, value: unknown) => {
      const path = `/api/manager/apps/app/${id}/setting/${name}`
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ value })
      expect((await fetch(world.hub.url + path, { method: 'PUT', headers, body })).status).toBe(200)
    }
    const warnings = (words: string) =>
      world.bridge.lines.filter((line) => line.includes('"level":"warn"') && line.includes(words)).length
    const problems = (): string[] => JSON.parse(world.observer.last('hub2mqtt/bridge/health') ?? '').problems
    const untilProblems = (wanted: readonly string[]) => {
      // When the clock jumps, pending requests time out, so the hub may be unreachable for a moment.
      let jumpedAt = 0
      return until(`the problems ${wanted.join()}`, () => {
        if (JSON.stringify(problems()) === JSON.stringify(wanted)) return true
        if (performance.now() - jumpedAt > 1000) {
          world.clock.jump(20_000)
          jumpedAt = performance.now()
        }
        return false
      })
    }
    return { world, set, warnings, untilProblems }
  }
  const problem = ['settings whose published values differ from those of the hubs (see the log): 1']

  test('does not keep other settings of its app from being published, and is reported once until it changes', async () => {
    const { world, set, warnings, untilProblems } = await startWith({ fine: true, odd: 'a' })
    await using _ = world
    const { observer } = world
    await until(
      'the settings',
      () => observer.last(`${topic}/fine`) === 'true' && observer.last(`${topic}/odd`) === '"a"',
    )
    await set('odd', deep)
    await world.request(`home/app/${id}/cmd/set-setting/fine`, 'false')
    await until('our write', () => observer.last(`${topic}/fine`) === 'false')
    await set('fine', true)
    await world.settle()
    await until('the write of another', () => observer.last(`${topic}/fine`) === 'true')
    await untilProblems(problem)
    await world.settle()
    expect(warnings('cannot be read')).toBe(1)
    expect(observer.last(`${topic}/odd`)).toBe('"a"')
    expect(observer.texts(`${topic}/missing`)).toEqual([])
    await set('odd', 'b')
    await world.settle()
    await until('the value', () => observer.last(`${topic}/odd`) === '"b"')
    await untilProblems([])
    await set('odd', deep)
    await world.settle()
    await until('the second warning', () => warnings('cannot be read') === 2)
  })

  test('does not keep other settings from being published if it is not published itself', async () => {
    const { world, warnings, untilProblems } = await startWith({ fine: true, other: deep })
    await using _ = world
    await until('the setting', () => world.observer.last(`${topic}/fine`) === 'true')
    await world.settle()
    expect(world.observer.texts(`${topic}/missing`)).toEqual([])
    expect(warnings('setting')).toBe(0)
    await untilProblems([])
  })

  test('is reported if the key may no longer read it, until it may again', async () => {
    const { world, set, warnings, untilProblems } = await startWith({ fine: true, odd: 'a' })
    await using _ = world
    await until('the setting', () => world.observer.last(`${topic}/odd`) === '"a"')
    world.hub.setKeys({ [KEY]: ['hub.app.readonly'], other: ALL_SCOPES })
    await world.request('home/cmd/refresh')
    await untilProblems(['settings whose published values differ from those of the hubs (see the log): 3'])
    expect(warnings('the API key lacks hub.app.control')).toBe(3)
    expect(world.observer.last(`${topic}/odd`)).toBe('"a"')
    world.hub.setKeys({ [KEY]: ALL_SCOPES })
    await set('odd', 'b')
    await world.request('home/cmd/refresh')
    await until('the value', () => world.observer.last(`${topic}/odd`) === '"b"')
    await untilProblems([])
  })

  test('is reported once if it is too large, until it is smaller', async () => {
    const { world, set, warnings, untilProblems } = await startWith({ fine: true, odd: large })
    await using _ = world
    await until('the setting', () => world.observer.last(`${topic}/fine`) === 'true')
    await untilProblems(problem)
    await world.settle()
    await set('odd', `${large}.`)
    await world.settle()
    expect(warnings('too large to be published')).toBe(1)
    await set('odd', 'small')
    await world.settle()
    await until('the value', () => world.observer.last(`${topic}/odd`) === '"small"')
    await untilProblems([])
    await set('odd', large)
    await world.settle()
    await until('nothing', () => world.observer.last(`${topic}/odd`) === '')
    expect(warnings('too large to be published')).toBe(2)
  })

  test('is not reported while the hub postpones reads', async () => {
    const { world, warnings } = await startWith({ fine: true })
    await using _ = world
    await until('the setting', () => world.observer.last(`${topic}/fine`) === 'true')
    world.hub.behave('answer-status', { operation: 'getAppSettings', status: 429 })
    world.hub.forgetRequests()
    const asked = (operation: string) => world.hub.requests.filter((request) => request.operation === operation)
    await until('two reads', async () => {
      await world.request('home/cmd/refresh')
      return asked('getAppSettings').length >= 2
    })
    expect(asked('getAppSetting')).toEqual([])
    expect(warnings('setting')).toBe(0)
  })
})

test.concurrent('a hostile id has its own topic, which is harmless and can be decoded', async () => {
  const ids = ['a/b', '+', '#', '$SYS', 'x\0y', '.', '..', 'ü 😀', '__proto__', 'constructor', '%41']
  await using world = await World.start({ hub: { apps: ids.map((id) => ({ id })) } })
  const held = await retainedOn(world.broker.port)
  const found = [...held.keys()].filter((topic) => /^hub2mqtt\/home\/app\/[^/]+$/.test(topic))
  expect(found.map((topic) => JSON.parse(held.get(topic) ?? '').id).sort()).toEqual([...ids].sort())
  expect((await world.request('home/app/a%2Fb/cmd/get')).data).toMatchObject({ id: 'a/b' })
  expect((await world.request('home/app/%2E%2E/cmd/restart')).error?.code).toBe('invalid_payload')
})

describe.concurrent.each([
  ['empty-list', 4],
  ['foreign-ids', 1],
] as const)('a hub that starts together with the bridge', (fault, times) => {
  test(`and answers ${fault} first (${times}) clears nothing that the broker holds, and installs nothing`, async () => {
    await using world = await World.start()
    const { hub, observer } = world
    await world.settle()
    observer.forget()
    await world.bridge.stop()
    hub.behave('reset-before-executing', { times: 2 })
    hub.behave(fault, { times })
    hub.forgetRequests()
    await world.restart()
    const lists = () => hub.requests.filter(({ operation }) => operation === 'getApps').length
    await until('the whole list', () => lists() > times, 20_000)
    await world.settle()
    expect(await agrees(world)).toBe(true)
    expect(world.clearedApps()).toEqual([])
    expect(observer.seen.filter(({ text }) => text.includes('"installed"'))).toEqual([])
  })
})
