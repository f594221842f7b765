import { describe, expect } from 'vitest'
import { retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'
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

test.concurrent('a published setting that cannot be published with its current value is a problem until it can', async () => {
  const id = 'com.example.app'
  await using world = await World.start({
    file: `settings: {publish: {${id}: {mode: text}}}\n`,
    hub: { apps: [{ id, settings: { mode: 'x'.repeat(65 * 1024) } }] },
  })
  const problems = () => JSON.parse(world.observer.last('hub2mqtt/bridge/health') ?? '{}').problems
  const problem = 'settings whose published values differ from those of the hubs (see the log): 1'
  await until('the problem', () => problems()?.join() === problem)
  await world.request(`home/app/${id}/cmd/set-setting/mode`, '"small"')
  await until('no problem', async () => {
    await world.settle()
    return problems()?.length === 0
  })
  expect(world.observer.last(`hub2mqtt/home/app/${id}/setting/mode`)).toBe('"small"')
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
