import { describe, expect } from 'vitest'
import type { AppSeed, EmulatedHub } from '../../src/emulator/hub.ts'
import { readEndpoint } from '../../src/hub/endpoints.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/until.ts'
import { agree, anApp, asked, connected, KEYS, known, test } from './support.ts'

test.concurrent('an app is read again although memory is current, and listeners get the changes first', async ({
  attach,
}) => {
  const { emulated, watched } = await attach({ pollInterval: 3_600_000 })
  const id = anApp(emulated)
  emulated.behave('lose-events')
  emulated.disable(id)
  expect((await watched.hub.apps.getApp(id)).enabled).toBe(true)
  const heard = new Promise((resolve) => {
    watched.hub.apps.subscribe(({ changes }) => resolve(changes[0]?.after?.enabled))
  })
  expect((await watched.hub.apps.readApp(id)).enabled).toBe(false)
  expect(known(watched, id)?.enabled).toBe(false)
  expect(await heard).toBe(false)
  emulated.uninstall(id)
  await expect(watched.hub.apps.readApp(id)).rejects.toMatchObject({ code: 'unknown_app' })
})

describe.concurrent('polling repairs what the realtime channel misses:', () => {
  test('a lost event', async ({ attach }) => {
    const { emulated, watched } = await attach({ pollInterval: 200, pollIntervalFallback: 200 })
    const id = anApp(emulated)
    emulated.behave('lose-events')
    emulated.uninstall(id)
    await until('the removal', () => known(watched, id) === undefined)
  })

  test('the event of a confirmed write, within seconds', async ({ attach }) => {
    const { emulated, watched } = await attach({ pollInterval: 3_600_000 })
    const id = anApp(emulated)
    emulated.behave('lose-events')
    await watched.hub.call('disableApp', { id })
    await until('the change', () => known(watched, id)?.enabled === false)
    expect(watched.hub.status.realtime).toBe('connected')
  })

  test('the effect of a write without an answer, with the channel turned off', async ({ attach }) => {
    const options = { realtime: false, pollIntervalFallback: 3_600_000 }
    const { emulated, watched } = await attach(options)
    const id = anApp(emulated)
    emulated.behave('execute-then-reset')
    await expect(watched.hub.call('disableApp', { id })).rejects.toMatchObject({ code: 'no_answer' })
    emulated.behaveWell()
    await until('the change', () => known(watched, id)?.enabled === false)
    emulated.behave('execute-then-reset')
    const enable = { section: 'manager', item: 'apps', method: 'PUT', path: `/app/${id}/enable` } as const
    await expect(watched.hub.callEndpoint(readEndpoint(enable))).rejects.toMatchObject({ code: 'no_answer' })
    emulated.behaveWell()
    await until('the second change', () => known(watched, id)?.enabled)
  })

  test('all events, because the channel is refused', async ({ emulate, hold }) => {
    const emulated = await emulate()
    emulated.behave('refuse-handshake')
    const watched = hold(emulated.url, { pollIntervalFallback: 200 })
    const id = await until('the list', () => watched.hub.apps.complete && anApp(emulated))
    emulated.crash(id)
    await until('the crash', () => known(watched, id)?.crashed)
    expect(watched.hub.status.realtime).toBe('polling')
  })

  test('repeated events in the wrong order', async ({ attach }) => {
    const { emulated, watched } = await attach({ pollInterval: 300 })
    emulated.behave('duplicate-events')
    emulated.behave('reorder-events')
    const id = anApp(emulated)
    for (let i = 0; i < 5; i++) {
      emulated.disable(id)
      emulated.enable(id)
    }
    await until('agreement', () => agree(emulated, watched))
  })
})

describe.concurrent('the realtime channel reconnects', () => {
  test.for(['goodbye', 'cut'] as const)(
    'after a %s, and changes in between are read',
    async (how, { emulated, watched }) => {
      const id = anApp(emulated)
      emulated.behave('lose-events')
      emulated.uninstall(id)
      emulated.behaveWell()
      emulated.dropRealtime(how)
      await until('the loss', () => watched.history.at(-1)?.startsWith('online polling'))
      await connected(watched)
      expect(known(watched, id)).toBeUndefined()
      emulated.crash(anApp(emulated))
      await until('agreement', () => agree(emulated, watched))
    },
  )

  test('after being dropped right after connecting, and is reported as connected only when it stays', async ({
    emulate,
    hold,
  }) => {
    const emulated = await emulate()
    emulated.behave('drop-realtime', { times: 2 })
    const watched = hold(emulated.url)
    await connected(watched)
    expect(watched.history.filter((entry) => entry.includes('connected'))).toHaveLength(1)
  })

  test('slowly if the key may not subscribe: a user must act', async ({ emulate, hold }) => {
    const clock = new FakeClock()
    const emulated = await emulate()
    emulated.behave('refuse-subscription', { status: 403 })
    hold(emulated.url, {}, { clock })
    await until('the slow retry', () => clock.waits.includes(60_000))
    expect(emulated.connections.sessions).toBeLessThanOrEqual(1)
  })
})

describe.concurrent('a hub that cannot be used is offline with a reason, and recovers', () => {
  test('when it is down, and reboots with new firmware', async ({ emulated, watched }) => {
    await emulated.reboot({ downMs: 1500, version: '99.0.0' })
    await until('offline', () => watched.history.find((entry) => entry === 'offline polling unreachable'))
    await connected(watched)
    expect(watched.hub.status.firmware).toBe('99.0.0')
    expect(watched.news).toEqual([])
  })

  test('when the key is unknown, tried again only once a minute', async ({ emulate, hold }) => {
    const clock = new FakeClock()
    const emulated = await emulate({ keys: {} })
    const watched = hold(emulated.url, { realtime: false }, { clock })
    await until('offline', () => watched.history.length > 0)
    expect(watched.history).toEqual(['offline polling unauthorized'])
    await until('the wait', () => clock.waits.includes(60_000))
    const asked = emulated.requests.length
    await clock.advance(59_000)
    expect(emulated.requests).toHaveLength(asked)
    emulated.setKeys(KEYS)
    await clock.advance(1_000)
    await until('online', () => watched.hub.status.online)
  })

  test.for([
    ['answer-status', { status: 500 }, 'failed'],
    ['not-json', {}, 'nonsense'],
    ['wrong-shape', { operation: 'getApps' }, 'nonsense'],
    ['never-answer', {}, 'no_answer'],
  ] as const)('when it answers %s', async ([behaviour, options, reason], { emulated, hold }) => {
    emulated.behave(behaviour, options)
    const watched = hold(emulated.url, { timeoutMs: reason === 'no_answer' ? 300 : 10_000 })
    await until('offline', () => watched.history[0])
    expect(watched.history[0]).toBe(`offline polling ${reason}`)
    emulated.behaveWell()
    await connected(watched)
    expect(agree(emulated, watched)).toBe(true)
  })

  test('but not after one failed read', async ({ emulate, hold }) => {
    const emulated = await emulate()
    const watched = hold(emulated.url, { realtime: false, pollIntervalFallback: 100 })
    await until('the list', () => watched.hub.apps.complete)
    emulated.behave('answer-status', { status: 500, times: 1, operation: 'getApps' })
    emulated.forgetRequests()
    await until('three reads', () => emulated.requests.filter(({ operation }) => operation === 'getApps').length > 2)
    expect(watched.history).toEqual(['online polling null'])
  })
})

test.concurrent('a key for speech only is usable, although it may not read the apps', async ({ emulate, hold }) => {
  const emulated = await emulate({ flavour: 'older', keys: { key: ['hub.speech'] } })
  const { hub } = hold(emulated.url)
  await until('online', () => hub.status.online)
  expect(hub.status.reason).toBe('forbidden')
  expect(hub.apps.complete).toBe(false)
  expect([hub.permits('speak'), hub.permits('restartApp')]).toEqual(['yes', 'forbidden'])
  await hub.call('speak', { text: 'Hello' })
  expect(emulated.spoken).toEqual(['Hello'])
})

test.concurrent('a key that lost the list and has it again is usable after the next read', async ({ attach }) => {
  const { emulated, watched } = await attach({ pollInterval: 200 })
  const { hub } = watched
  emulated.setKeys({ key: ['hub.app.control'] })
  await expect(hub.refresh()).rejects.toMatchObject({ code: 'forbidden' })
  expect(hub.permits('getApps')).toBe('forbidden')
  emulated.setKeys(KEYS)
  await until('the permissions', () => hub.permits('getApps') === 'yes')
  expect(hub.status).toMatchObject({ online: true, reason: null, realtime: 'connected' })
})

test.concurrent.for([
  [401, 'unauthorized'],
  [500, 'failed'],
] as const)(
  'a refresh that is answered %i also shows in the state of the hub',
  async ([status, reason], { attach }) => {
    const { emulated, watched } = await attach()
    emulated.behave('answer-status', { status, operation: 'getApps' })
    await expect(watched.hub.refresh()).rejects.toMatchObject({ code: reason })
    await until('the hub is offline', () => !watched.hub.status.online)
    expect(watched.hub.status.reason).toBe(reason)
  },
)

test.concurrent('an app that one list lacks stays, and the removal of another one is seen', async ({ attach }) => {
  const { emulated, watched } = await attach({ realtime: false })
  emulated.behave('half-list', { keep: 0.9, times: 1 })
  const { size } = watched.hub.apps.all
  const id = anApp(emulated)
  emulated.uninstall(id, { silent: true })
  await watched.hub.refresh()
  expect(watched.news).toEqual([`${id} gone`])
  expect(watched.hub.apps.all.size).toBe(size - 1)
})

test.concurrent('an app whose uninstall the hub has confirmed is removed by the next list', async ({ attach }) => {
  const { emulated, watched } = await attach({ realtime: false })
  const id = anApp(emulated)
  emulated.uninstall(id, { silent: true })
  watched.hub.apps.expectRemoved(id)
  emulated.forgetRequests()
  await watched.hub.refresh()
  expect([watched.news, asked(emulated, 'getApps')]).toEqual([[`${id} gone`], 1])
  // After an uninstallation is confirmed, the bridge accepts the app's absence only from the next list.
  emulated.install({ id })
  await watched.hub.refresh()
  emulated.behave('half-list', { keep: 0, times: 1 })
  await watched.hub.refresh()
  expect(known(watched, id)).toBeDefined()
})

describe.concurrent('the cache', () => {
  const reads = (emulated: EmulatedHub) =>
    emulated.requests.filter(({ operation }) => operation?.startsWith('getApp')).length

  test('answers while the realtime channel keeps it current, and a filter reads the hub', async ({
    emulated,
    watched,
  }) => {
    emulated.forgetRequests()
    const id = anApp(emulated)
    expect(Object.keys(await watched.hub.apps.getApps()).sort()).toEqual([...emulated.apps.keys()].sort())
    expect(await watched.hub.apps.getApp(id)).toMatchObject({ id, state: 'running' })
    expect(reads(emulated)).toBe(0)
    emulated.change(id, { state: 'stopped' }, { silent: true })
    const running = await watched.hub.apps.getApps({ state: 'running' })
    expect(Object.keys(running)).not.toContain(id)
    expect(Object.keys(running)).not.toEqual([])
    for (const [key, app] of Object.entries(running)) expect(app).toMatchObject({ id: key, state: 'running' })
    expect(reads(emulated)).toBe(1)
    emulated.change(id, { version: '77.0.0' }, { silent: true })
    expect(await watched.hub.apps.getApps({})).toMatchObject({ [id]: { version: '77.0.0' } })
  })

  test('does not answer before the first list, even if the realtime channel is up', async ({ emulate, hold }) => {
    const emulated = await emulate()
    emulated.behave('answer-status', { status: 403, operation: 'getApps' })
    const { hub } = hold(emulated.url)
    await until('the realtime channel', () => hub.status.realtime === 'connected')
    await expect(hub.apps.getApps()).rejects.toMatchObject({ code: 'forbidden' })
  })

  test('does not answer while nothing keeps it current', async ({ emulate, hold }) => {
    const emulated = await emulate()
    const watched = hold(emulated.url, { realtime: false })
    await until('the list', () => watched.hub.apps.complete)
    const id = anApp(emulated)
    emulated.change(id, { version: '77.0.0' }, { silent: true })
    expect(await watched.hub.apps.getApp(id)).toMatchObject({ version: '77.0.0' })
    expect(await watched.hub.apps.getApps()).toMatchObject({ [id]: { id, version: '77.0.0' } })
  })
})

test.concurrent('destroy unsubscribes, clears everything, calls no more listeners, and can be repeated', async ({
  emulated,
  watched,
}) => {
  expect(emulated.connections.subscribers).toBe(1)
  const told = watched.history.length
  await watched.hub.destroy()
  await watched.hub.destroy()
  await until('the end of the session', () => emulated.connections.sessions === 0 && emulated.connections.sockets === 0)
  emulated.crash(anApp(emulated))
  expect(watched.hub.apps.all.size).toBe(0)
  expect(watched.news).toEqual([])
  expect(watched.history).toHaveLength(told)
  await expect(watched.hub.call('getApps', {})).rejects.toMatchObject({ code: 'unreachable' })
})

test.concurrent('destroy with time for writes waits for the one that was sent, and sends none that waits or comes later', async ({
  attach,
}) => {
  const { emulated, watched } = await attach({ maxRequests: 1 })
  const restart = () => watched.hub.call('restartApp', { id: anApp(emulated) })
  emulated.behave('slow-headers', { ms: 500, operation: 'restartApp' })
  const sent = restart()
  await until('the request', () => asked(emulated, 'restartApp') === 1)
  const waiting = expect(restart()).rejects.toMatchObject({ code: 'unreachable' })
  const ended = watched.hub.destroy(10_000)
  await expect(restart()).rejects.toMatchObject({ code: 'unreachable' })
  await expect(sent).resolves.toBeNull()
  await Promise.all([ended, waiting])
  expect(asked(emulated, 'restartApp')).toBe(1)
})

test.concurrent('destroy aborts a write that takes longer', async ({ emulated, watched: { hub } }) => {
  emulated.behave('never-answer', { operation: 'restartApp' })
  const sent = hub.call('restartApp', { id: anApp(emulated) })
  const aborted = expect(sent).rejects.toMatchObject({ code: 'no_answer' })
  await until('the request', () => asked(emulated, 'restartApp') === 1)
  await hub.destroy(50)
  await aborted
})

test.concurrent('destroying only the apps ends their subscription, their listeners and every read, and can be repeated', async ({
  attach,
}) => {
  const { emulated, watched } = await attach({ pollInterval: 50, pollIntervalFallback: 50 })
  const { hub } = watched
  const id = anApp(emulated)
  hub.apps.destroy()
  hub.apps.destroy()
  await until('the end of the session', () => emulated.connections.sessions === 0)
  await until('the polling', () => hub.status.realtime === 'polling')
  emulated.forgetRequests()
  emulated.crash(id)
  hub.apps.receive({ type: 'update', id, patch: { state: 'stopped' } })
  await hub.apps.refresh()
  await hub.refresh()
  expect(hub.apps.all.size).toBe(0)
  expect(hub.apps.complete).toBe(false)
  expect(watched.news).toEqual([])
  expect(asked(emulated, 'getApps')).toBe(0)
  await expect(hub.apps.getApps()).rejects.toMatchObject({ code: 'unreachable' })
  await expect(hub.apps.getApp(id)).rejects.toMatchObject({ code: 'unreachable' })
  expect(emulated.connections).toMatchObject({ sessions: 0, subscribers: 0 })
})

test.concurrent('a poll is a single request for the list', async ({ emulate, hold }) => {
  const seeds: AppSeed[] = []
  const emulated = await emulate({ apps: seeds })
  const watched = hold(emulated.url, { realtime: false, pollIntervalFallback: 50 })
  await until('the list', () => watched.hub.status.online)
  emulated.forgetRequests()
  await until('three polls', () => emulated.requests.length > 2)
  expect(new Set(emulated.requests.map(({ operation }) => operation))).toEqual(new Set(['getApps']))
})
