/** Tests the progress of an install. `contract/installs.test.ts` tests its result. */
import { describe, expect } from 'vitest'
import { until } from '../support/until.ts'
import { World, type WorldOptions } from '../support/world.ts'
import { test as worldTest } from '../support/world-test.ts'

const APP = 'the.app'
const apps = [{ id: APP, version: '1.0.0', update: '1.1.0' }, { id: 'another.app' }]
const cmd = (command: string) => `home/app/${APP}/cmd/${command}`

/** Makes polls too rare to happen, because a test cannot observe their timers. */
const optionsWith = (env: WorldOptions['env'] = {}): WorldOptions => ({
  hub: { apps },
  env: { HUB_POLL_INTERVAL: '1h', HUB_POLL_INTERVAL_FALLBACK: '1h', ...env },
})
const test = worldTest.extend({ options: optionsWith() })

const inProgress = ({ observer }: World) =>
  JSON.parse(observer.last(`hub2mqtt/home/app/${APP}/update`) ?? '{}').in_progress

test.concurrent('an install that takes longer than a call may shows its progress until the hub has another version, and is then ok', async () => {
  await using world = await World.start(optionsWith({ HUB_TIMEOUT: '300ms' }))
  world.hub.behave('never-answer', { operation: 'installFromAppStore' })
  const answer = world.request(cmd('install'))
  await until('a check', () => {
    const order = world.hub.requests.map(({ operation }) => operation)
    return order.lastIndexOf('getApps') > order.indexOf('installFromAppStore') && order.includes('installFromAppStore')
  })
  expect(inProgress(world)).toBe(true)
  world.hub.install(APP)
  expect(await answer).toMatchObject({ ok: true })
  await until('the end of the progress', () => inProgress(world) === false)
  expect(world.requestCount('installFromAppStore')).toBe(1)
})

describe.concurrent('an install that the hub confirms before it is done', () => {
  /** Returns each state of the update entity: whether an install is in progress, and the installed version. */
  const shown = ({ observer }: World) =>
    observer.texts(`hub2mqtt/home/app/${APP}/update`).map((text) => {
      const { in_progress, installed_version } = JSON.parse(text || '{}')
      return `${in_progress} ${installed_version}`
    })

  /** Resolves when the hub has confirmed the install and the bridge has read the list again. */
  async function confirmed(world: World): Promise<void> {
    world.hub.behave('pretend', { operation: 'installFromAppStore', value: null })
    expect(await world.request(cmd('install'))).toMatchObject({ ok: true })
    expect(await world.request('home/cmd/refresh')).toMatchObject({ ok: true })
    expect(shown(world)).toEqual(['false 1.0.0', 'true 1.0.0'])
  }

  test.each(['true', 'false'])('shows progress until the hub has its version (realtime: %s)', async (realtime) => {
    await using world = await World.start(optionsWith({ HUB_REALTIME: realtime }))
    await confirmed(world)
    world.hub.install(APP)
    expect(await world.request('home/cmd/refresh')).toMatchObject({ ok: true })
    await until('the end of the progress', () => shown(world).at(-1) === 'false 1.1.0')
    expect(shown(world)).not.toContain('true 1.1.0')
    expect(shown(world).filter((one) => one === 'false 1.0.0')).toHaveLength(1)
  })

  test('shows progress for a minute at most', async ({ world }) => {
    await confirmed(world)
    world.clock.jump(60_000)
    await until('the end of the progress', () => shown(world).at(-1) === 'false 1.0.0')
  })

  test('shows no progress after a second attempt fails', async ({ world }) => {
    await confirmed(world)
    world.hub.behaveWell()
    world.hub.behave('answer-status', { status: 400, operation: 'installFromAppStore' })
    expect(await world.request(cmd('install'))).toMatchObject({ ok: false })
    await until('the end of the progress', () => shown(world).at(-1) === 'false 1.0.0')
  })

  test('shows no progress if its app was hidden and is shown again', async ({ world }) => {
    await confirmed(world)
    world.bridge.reload(`apps: { exclude: [${APP}] }\n`)
    await until('the app to go', () => world.observer.last(`hub2mqtt/home/app/${APP}/update`) === '')
    world.bridge.reload('apps: { exclude: [] }\n')
    await until('the app to come back', () => world.observer.last(`hub2mqtt/home/app/${APP}/update`) !== '')
    expect(shown(world).at(-1)).toBe('false 1.0.0')
  })
})
