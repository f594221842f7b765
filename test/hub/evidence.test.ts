/** Tests that the bridge offers every feature of a hub, except while there is evidence that the hub lacks it. */
import { describe, expect } from 'vitest'
import { until } from '../support/until.ts'
import { anApp, connected, listed, test } from './support.ts'

const POLLS = { realtime: false, pollInterval: 100, pollIntervalFallback: 100 }
const OLDER = { ...POLLS, emulated: { flavour: 'older' } } as const
const RARELY = { ...OLDER, pollInterval: 60_000, pollIntervalFallback: 60_000 } as const

test.concurrent('a hub that follows only the reference is fully usable', async ({ emulate, hold }) => {
  const emulated = await emulate({ flavour: 'reference' })
  const watched = hold(emulated.url)
  const { hub } = watched
  await connected(watched)
  expect(hub.status).toMatchObject({ online: true, api: 'managers', id: null, firmware: null, scopes: undefined })
  expect(hub.apps.all.size).toBe(emulated.apps.size)
  expect([hub.permits('speak'), hub.permits('garbageCollectApp')]).toEqual(['yes', 'yes'])
  await hub.call('speak', { text: 'Hello' })
  await hub.call('garbageCollectApp', { id: anApp(emulated) })
  expect(emulated.spoken).toEqual(['Hello'])
})

describe.concurrent('speech', () => {
  test('is not inferred from the list of voices on an older hub', async ({ emulate, hold }) => {
    const emulated = await emulate({ flavour: 'older' })
    emulated.behave('answer-status', { status: 404, operation: 'getVoices' })
    const { hub } = hold(emulated.url, POLLS)
    await until('online', () => hub.status.online)
    await hub.refresh()
    expect([hub.permits('speak'), hub.permits('garbageCollectApp')]).toEqual(['yes', 'yes'])
  })

  test('is offered by a newer hub that has voices', async ({ emulate, hold }) => {
    const emulated = await emulate({ flavour: 'older', version: '12.0.0' })
    const { hub } = hold(emulated.url, POLLS)
    await until('online', () => hub.status.online)
    expect([hub.permits('speak'), hub.permits('garbageCollectApp')]).toEqual(['yes', 'unsupported'])
  })

  test('is not withdrawn because of the page of a gateway', async ({ attach }) => {
    const { emulated, watched } = await attach(OLDER)
    const { hub } = watched
    emulated.behave('gateway-page', { status: 404, operation: 'say' })
    await expect(hub.call('speak', { text: 'x' })).rejects.toThrow()
    expect(hub.permits('speak')).toBe('yes')
  })

  test.for([
    ['404', 'answer-status', { status: 404, operation: 'say' }],
    ['the name of the error', 'missing-api-method', { operation: 'say' }],
  ] as const)(
    'is withdrawn after speaking was answered with %s, until the hub has other firmware',
    async ([, name, options], { attach }) => {
      const { emulated, watched } = await attach(OLDER)
      const { hub } = watched
      emulated.behave(name, options)
      await expect(hub.call('speak', { text: 'x' })).rejects.toMatchObject({ code: 'unsupported' })
      expect(hub.permits('speak')).toBe('unsupported')
      await hub.refresh()
      expect(hub.permits('speak')).toBe('unsupported')
      emulated.behaveWell()
      await emulated.reboot({ version: '8.2.0' })
      await until('the other firmware', () => hub.status.firmware === '8.2.0')
      expect(hub.permits('speak')).toBe('yes')
    },
  )
})

describe.concurrent('garbage collection', () => {
  test('is not withdrawn from all apps because of an app that was just removed', async ({ attach }) => {
    const { emulated, watched } = await attach(RARELY)
    const id = anApp(emulated)
    emulated.uninstall(id, { silent: true })
    for (let i = 0; i < 3; i++) await expect(watched.hub.call('garbageCollectApp', { id })).rejects.toThrow()
    expect(watched.hub.permits('garbageCollectApp')).toBe('yes')
  })

  test('is not withdrawn after a single 404, nor after two with a success between', async ({ attach }) => {
    const { emulated, watched } = await attach(OLDER)
    const id = anApp(emulated)
    for (let i = 0; i < 2; i++) {
      emulated.behave('answer-status', { status: 404, operation: 'garbageCollectApp', times: 1 })
      await expect(watched.hub.call('garbageCollectApp', { id })).rejects.toMatchObject({ code: 'unsupported' })
      await watched.hub.call('garbageCollectApp', { id })
    }
    expect(watched.hub.permits('garbageCollectApp')).toBe('yes')
  })

  test('is withdrawn after a second 404, or when the hub reports that it lacks the method', async ({ attach }) => {
    for (const [behaviour, calls] of [
      ['answer-status', 2],
      ['missing-api-method', 1],
    ] as const) {
      const { emulated, watched } = await attach(OLDER)
      if (behaviour === 'answer-status') emulated.behave(behaviour, { status: 404, operation: 'garbageCollectApp' })
      else emulated.behave(behaviour, { operation: 'garbageCollectApp' })
      for (let i = 0; i < calls; i++) {
        await expect(watched.hub.call('garbageCollectApp', { id: anApp(emulated) })).rejects.toMatchObject({
          code: 'unsupported',
        })
      }
      expect(watched.hub.permits('garbageCollectApp')).toBe('unsupported')
    }
  })
})

test.concurrent('a newer hub lacks speech and garbage collection without a request to speak, and its voices are read once', async ({
  emulate,
  hold,
}) => {
  const emulated = await emulate({ flavour: 'newer' })
  const { hub } = hold(emulated.url, POLLS)
  await until('online', () => hub.status.online)
  await hub.refresh()
  expect(hub.status.missing).toEqual(new Set(['speak', 'garbageCollectApp', 'getVoices']))
  expect(emulated.requests.filter(({ path }) => path.includes('voice'))).toHaveLength(1)
})

test.concurrent.for([undefined, 'getApps'] as const)(
  'a hub without a licence is offline for that reason, and the key is not blamed (to %s)',
  async (operation, { emulated, hold }) => {
    const refusal = { status: 403, error: 'forbidden', description: 'Subscription Inactive' }
    emulated.behave('answer-status', { ...refusal, ...(operation && { operation }) })
    const { hub, history } = hold(emulated.url, POLLS)
    await until('offline', () => history[0])
    expect(history[0]).toBe('offline polling subscription')
    await expect(hub.call('getApps', {})).rejects.toMatchObject({ code: 'subscription', status: 403 })
  },
)

describe.concurrent('from a hub that signs its answers', () => {
  test('an unsigned empty list is not believed: its apps stay, and it is offline until its own answer arrives', async ({
    attach,
  }) => {
    const { emulated, watched } = await attach(OLDER)
    const { hub, history, news } = watched
    const { size } = emulated.apps
    emulated.behave('gateway-answer', { text: '{}', operation: 'getApps' })
    await until('offline', () => !hub.status.online)
    expect(history.at(-1)).toBe('offline polling failed')
    await expect(hub.refresh()).rejects.toMatchObject({ code: 'failed', status: 200 })
    expect(hub.apps.all.size).toBe(size)
    emulated.behaveWell()
    await until('online', () => hub.status.online)
    expect(news).toEqual([])
  })

  test.for([
    [200, '{}'],
    [200, 'null'],
    [204, undefined],
    [404, '{"error":"not found"}'],
    [500, '{"error":"missing_api_method"}'],
  ] as const)(
    'an unsigned %i %s is no evidence about apps, settings, logs and operations',
    async ([status, text], { attach }) => {
      const { emulated, watched } = await attach(RARELY)
      const { hub, news } = watched
      const id = anApp(emulated)
      const before = hub.apps.all.get(id)
      const isStandIn = { code: expect.stringMatching(/^(?:failed|unsupported)$/), status, foreign: true }
      const answers = { status, ...(text !== undefined && { text }) }
      for (let times = 0; times < 3; times += 1) {
        emulated.behave('gateway-answer', { ...answers, operation: 'getApp', times: 1 })
        await expect(hub.apps.readApp(id)).rejects.toMatchObject(isStandIn)
        emulated.behave('gateway-answer', { ...answers, operation: 'getAppSettings', times: 1 })
        await expect(hub.call('getAppSettings', { id })).rejects.toMatchObject(isStandIn)
        emulated.behave('gateway-answer', { ...answers, operation: 'getAppSetting', times: 1 })
        await expect(hub.call('getAppSetting', { id, name: 'x' })).rejects.toMatchObject(isStandIn)
        emulated.behave('gateway-answer', { ...answers, operation: 'getVoices', times: 1 })
        await expect(hub.call('getVoices', {})).rejects.toMatchObject(isStandIn)
      }
      expect(hub.apps.all.get(id)).toBe(before)
      expect(news).toEqual([])
      expect(hub.status.missing.has('getVoices')).toBe(false)
    },
  )

  test.for([401, 403, 429, 502])('an unsigned %i is still a refusal', async (status, { attach }) => {
    const { emulated, watched } = await attach(OLDER)
    emulated.behave('gateway-answer', { status, text: '{}', operation: 'getAppSettings', times: 1 })
    const failure = await watched.hub.call('getAppSettings', { id: anApp(emulated) }).catch((error: unknown) => error)
    expect(failure).toMatchObject({ status })
    expect(failure).not.toMatchObject({ code: 'failed', foreign: true })
  })
})

test.concurrent('answers are believed without a signature if only pings are signed', async ({ emulate, hold }) => {
  const emulated = await emulate({ flavour: 'older' })
  for (const operation of ['getApps', 'getApp', 'getSessionMe', 'getVoices'] as const)
    emulated.behave('no-identity', { operation })
  const watched = hold(emulated.url, POLLS)
  await listed(watched)
  for (const id of [...emulated.apps.keys()]) emulated.uninstall(id, { silent: true })
  await until('the empty list', () => watched.hub.apps.all.size === 0)
  expect(watched.hub.status.online).toBe(true)
})

test.concurrent.for([400, 403, 404, 405, 500, 501, 503])(
  'a hub that answers %i to a read of the permissions is online without them',
  async (status, { emulate, hold }) => {
    const emulated = await emulate({ flavour: 'older' })
    emulated.behave('answer-status', { status, operation: 'getSessionMe' })
    const watched = hold(emulated.url, POLLS)
    await listed(watched)
    expect(watched.hub.status).toMatchObject({ online: true, reason: null, scopes: undefined })
  },
)

test.concurrent('permissions that the hub could not report are read with the next list', async ({ emulate, hold }) => {
  const emulated = await emulate({ flavour: 'older' })
  emulated.behave('gateway-page', { status: 200, operation: 'getSessionMe' })
  const watched = hold(emulated.url, POLLS)
  await listed(watched)
  expect(watched.hub.status).toMatchObject({ online: true, scopes: undefined })
  emulated.behaveWell()
  await until('the permissions', () => watched.hub.status.scopes !== undefined)
  emulated.behave('answer-status', { status: 503, operation: 'getSessionMe' })
  await watched.hub.refresh()
  expect(watched.hub.status).toMatchObject({ online: true, reason: null, scopes: ['hub.app', 'hub.speech'] })
})

test.concurrent('the realtime namespace is opened with the token from the handshake', async ({ emulate, hold }) => {
  const emulated = await emulate()
  emulated.behave('namespace-token')
  await connected(hold(emulated.url))
})
