import { expect, onTestFinished, test } from 'vitest'
import { EmulatedStore } from '../../src/emulator/public-store.ts'
import { World } from '../support/world.ts'

const ID = 'com.example.lamps'
const UPDATE = `hub2mqtt/home/app/${ID}/update`

test('with the option, state and update have the newest version and the changelog, also right after a restart, until a reload turns it off', async () => {
  const shop = await EmulatedStore.start([{ id: ID, live: '1.2.0', changelog: { en: 'Shines brighter' } }])
  onTestFinished(() => shop[Symbol.asyncDispose]())
  // The hub reports updates without their versions.
  const apps = [{ id: ID, name: 'Lamps', version: '1.0.0', update: '1.2.0' }]
  const [on, off] = ['updates: { store: true }', 'updates: { store: false }']
  await using world = await World.start({ hub: { flavour: 'newer', apps }, file: on, storeUrl: shop.url })
  const { observer } = world
  const update = () => JSON.parse(observer.last(UPDATE) ?? '{}')
  await world.settle()
  world.clock.jump(60_000)
  await observer.until('the changelog', () => update().release_summary !== undefined)
  expect(world.state(ID)).toMatchObject({ latest_version: '1.2.0', update_severity: 'minor' })
  expect(update()).toMatchObject({ latest_version: '1.2.0', release_summary: 'Shines brighter' })
  expect(shop.requests).toHaveLength(1)
  // The bridge sends no event, because it found the version during its start.
  expect(world.events(ID)).toEqual([])

  const before = observer.seen.length
  await world.restartUntilReady()
  await world.settle()
  const published = observer.seen.slice(before).filter(({ topic }) => topic.startsWith(`hub2mqtt/home/app/${ID}`))
  expect(published).toEqual([])
  expect(update()).toMatchObject({ latest_version: '1.2.0', release_summary: 'Shines brighter' })

  world.bridge.reload(off)
  await observer.until('the version to be unknown', () => world.state(ID)?.['latest_version'] === null)
  await observer.until('no changelog', () => update().release_summary === undefined)
  expect(update().latest_version).toContain('newer version')
  world.bridge.reload(on)
  world.clock.jump(60_000)
  await observer.until('the version', () => world.state(ID)?.['latest_version'] === '1.2.0')
})
