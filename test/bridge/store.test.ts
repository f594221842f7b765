import { expect, onTestFinished, test } from 'vitest'
import { EmulatedStore } from '../../src/emulator/public-store.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'

const ID = 'com.example.lamps'
const UPDATE = `hub2mqtt/home/app/${ID}/update`

/** Starts a hub that reports updates without their versions, and a store with a version and its changelog. */
async function open(file = '') {
  const shop = await EmulatedStore.start([{ id: ID, live: '1.2.0', changelog: { en: 'Shines brighter' } }])
  onTestFinished(() => shop[Symbol.asyncDispose]())
  const apps = [{ id: ID, name: 'Lamps', version: '1.0.0', update: '1.2.0' }]
  const world = await World.start({ hub: { flavour: 'newer', apps }, file, storeUrl: shop.url })
  onTestFinished(() => world[Symbol.asyncDispose]())
  await world.settle()
  const update = () => JSON.parse(world.observer.last(UPDATE) ?? '{}')
  return { shop, world, update }
}

/** Advances the clock past the first request to the store, in steps that keep the connection to the broker up. */
async function twoMinutes(world: World) {
  const end = world.clock.elapsed() + 120_000
  while (world.clock.elapsed() < end) await world.settle()
}

test('with the option, state and update have the newest version and the changelog, also right after a restart', async () => {
  const { shop, world, update } = await open('updates: { store: true }')
  const { observer } = world
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
})

test('without the option the store gets no requests; a reload turns it on and off, and off clears the data from the store', async () => {
  const { shop, world, update } = await open('updates: { store: false }')
  await twoMinutes(world)
  expect(shop.requests).toEqual([])
  expect(world.state(ID)).toMatchObject({ update_available: true, latest_version: null, update_severity: null })
  expect(update()).not.toHaveProperty('release_summary')
  world.bridge.reload('updates: { store: true }')
  await until('the line', () => world.bridge.lines.some((line) => line.includes('in the public store')))
  world.clock.jump(60_000)
  await world.observer.until('the version', () => world.state(ID)?.['latest_version'] === '1.2.0')
  world.bridge.reload('updates: { store: false }')
  await world.observer.until('the version to be unknown', () => world.state(ID)?.['latest_version'] === null)
  await world.observer.until('no changelog', () => update().release_summary === undefined)
  expect(update().latest_version).toContain('newer version')
  await twoMinutes(world)
  expect(shop.requests).toHaveLength(1)
})
