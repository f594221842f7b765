/** Tests that apps keep their state while a hub sends nonsense, and never get the state of another hub's apps. */
import { describe, expect } from 'vitest'
import { readEndpoint } from '../../src/hub/endpoints.ts'
import { HttpGateway } from '../support/http-gateway.ts'
import { until } from '../support/until.ts'
import { anApp, asked, connected, test as hubTest, known, listed, QUICK, type Watched } from './support.ts'

const POLLS = { realtime: false, pollInterval: 1000, pollIntervalFallback: 1000 }
const test = hubTest.extend({ surroundings: { clock: QUICK } })
const polling = test.extend({ options: POLLS })
const idsOf = ({ hub }: Watched) => [...hub.apps.all.keys()]

describe.concurrent('an invalid list leaves every app as it was', () => {
  polling.for<[string, unknown]>([
    ['an error as text', { error: 'starting up' }],
    ['records without an id', { a: { name: 'A' }, b: { name: 'B' } }],
  ])('such as %s', async ([, value], { emulated, watched }) => {
    const ids = idsOf(watched)
    emulated.behave('wrong-shape', { operation: 'getApps', value })
    await until('offline', () => !watched.hub.status.online)
    expect(watched.hub.status.reason).toBe('nonsense')
    expect(idsOf(watched)).toEqual(ids)
    expect(watched.news).toEqual([])
  })

  polling.for([203, 206])('such as a part of it under status %i', async (status, { emulated, watched }) => {
    const ids = idsOf(watched)
    const most = Object.fromEntries([...emulated.apps].slice(1))
    emulated.behave('pretend', { operation: 'getApps', status, value: most })
    await until('offline', () => !watched.hub.status.online)
    expect(watched.hub.status.reason).toBe('nonsense')
    expect([idsOf(watched), watched.news]).toEqual([ids, []])
  })

  polling(
    'and an invalid entry leaves its app as it was, while the others are updated',
    async ({ emulated, watched }) => {
      const [bad = '', good = ''] = idsOf(watched)
      const value: Record<string, unknown> = {
        ...Object.fromEntries(emulated.apps),
        [bad]: 'restarting',
        ghost: { error: 'x' },
      }
      value[good] = { ...emulated.apps.get(good), version: '77.0.0' }
      const before = known(watched, bad)
      emulated.behave('wrong-shape', { operation: 'getApps', value })
      await until('the other app', () => known(watched, good)?.version === '77.0.0')
      expect(known(watched, bad)).toBe(before)
      expect(known(watched, 'ghost')).toBeUndefined()
      expect(watched.hub.status.online).toBe(true)
    },
  )
})

describe.concurrent('a list that lost more than half of its apps', () => {
  polling.for([0.3, 0])('is not believed immediately: %f of them', async (keep, { emulated, watched }) => {
    const ids = idsOf(watched)
    emulated.behave('half-list', { keep, times: 1 })
    emulated.forgetRequests()
    await until('another read', () => asked(emulated, 'getApps') > 3)
    expect([idsOf(watched), watched.news]).toEqual([ids, []])
  })

  polling('is not believed if it is empty before it has been read five times', async ({ emulated, watched }) => {
    const ids = idsOf(watched)
    emulated.behave('half-list', { keep: 0, times: 4 })
    emulated.forgetRequests()
    await until('the fifth read', () => asked(emulated, 'getApps') > 5)
    expect([idsOf(watched), watched.news]).toEqual([ids, []])
  })

  polling('is not believed while it still changes', async ({ emulated, watched }) => {
    const ids = idsOf(watched)
    emulated.behave('half-list', { keep: 0.1, times: 1 })
    emulated.forgetRequests()
    await until('the first read', () => asked(emulated, 'getApps') > 0)
    emulated.behaveWell()
    emulated.behave('half-list', { keep: 0.3, times: 1 })
    await until('the third read', () => asked(emulated, 'getApps') > 3)
    expect([idsOf(watched), watched.news]).toEqual([ids, []])
  })

  polling.for([1, 0])('is believed if it stays the same: %i of them', async (left, { emulated, watched }) => {
    for (const id of idsOf(watched).slice(left)) emulated.uninstall(id, { silent: true })
    await until('the list', () => watched.hub.apps.all.size === left)
  })
})

describe.concurrent('an identity', () => {
  test('that is missing once counts neither as another identity nor as proof', async ({ emulated, hold }) => {
    // Disable polls, because a poll might be in progress.
    const watched = hold(emulated.url, { ...POLLS, pollInterval: 3_600_000, pollIntervalFallback: 3_600_000 })
    await listed(watched)
    const { id, firmware } = watched.hub.status
    const lost: string[] = []
    watched.hub.apps.subscribe(({ changes }) => lost.push(...changes.map((change) => change.id)))
    emulated.behave('no-identity')
    const { length } = emulated.requests
    await expect(watched.hub.refresh()).rejects.toMatchObject({ code: 'nonsense' })
    expect(emulated.requests.slice(length).filter(({ key }) => key !== undefined)).toEqual([])
    emulated.behaveWell()
    await watched.hub.refresh()
    expect(lost).toEqual([])
    expect(watched.hub.status).toMatchObject({ id, firmware, online: true })
  })

  test('that ends with a space, which is not a part of a header, is the same', async ({ emulated, hold }) => {
    const watched = hold(emulated.url, POLLS)
    await listed(watched)
    const { id } = watched.hub.status
    emulated.behave('other-identity', { id: `${id} ` })
    await watched.hub.refresh()
    expect(watched.hub.status.id).toBe(id)
  })

  test('that arrives late is used after the next reads', async ({ emulate, hold }) => {
    const emulated = await emulate()
    emulated.behave('no-identity')
    const watched = hold(emulated.url, POLLS)
    await listed(watched)
    expect(watched.hub.status).toMatchObject({ id: null, online: true })
    emulated.behaveWell()
    await until('the identity', () => watched.hub.status.id !== null && watched.hub.status.firmware !== null)
    expect(watched.news).toEqual([])
  })

  polling('that differs clears nothing before the list of the other hub was read', async ({ emulated, watched }) => {
    const ids = idsOf(watched)
    emulated.behave('wrong-shape', { operation: 'getApps', value: { error: 'starting up' } })
    await emulated.reboot({ id: 'another' })
    await until('offline', () => watched.history.at(-1)?.includes('nonsense'))
    expect(idsOf(watched)).toEqual(ids)
    emulated.behaveWell()
    await until('the other hub', () => watched.hub.status.id === 'another' && watched.hub.status.online)
    expect(watched.news).toEqual([])
  })
})

describe.concurrent('a hub that is replaced with another', () => {
  const FIRST = [{ id: 'only.on.first' }, { id: 'on.both', name: 'Of the first' }]
  const SECOND = [{ id: 'only.on.second' }, { id: 'on.both', name: 'Of the second' }]

  test.for([
    ['whose lists have its identity', false],
    ['whose lists lack its identity', true],
  ])(
    '%s, is reported by its state only, and never under the id of the previous one',
    async ([, withoutHeaders], { emulate, hold, open }) => {
      const first = await emulate({ id: 'first', apps: FIRST })
      const second = await emulate({ id: 'second', apps: SECOND })
      for (const hub of [first, second]) if (withoutHeaders) hub.behave('no-identity', { operation: 'getApps' })
      const gateway = open.use(await HttpGateway.to(first.port))
      const watched = hold(`http://127.0.0.1:${gateway.port}`, POLLS)
      const wrong: string[] = []
      watched.hub.apps.subscribe(({ changes }) => {
        for (const { id, after } of changes) {
          const at = id.endsWith('first') ? 'first' : id.endsWith('second') ? 'second' : after?.name?.split(' ').at(-1)
          if (after !== undefined && watched.hub.status.id !== null && watched.hub.status.id !== at) wrong.push(id)
        }
      })
      await listed(watched)
      gateway.moveTo(second.port)
      await until('the other hub', () => watched.hub.status.id === 'second' && watched.hub.status.online)
      expect(idsOf(watched).sort()).toEqual(['on.both', 'only.on.second'])
      expect(known(watched, 'on.both')?.name).toBe('Of the second')
      expect([wrong, watched.news]).toEqual([[], []])
    },
  )

  test('is ignored in the session with the previous one', async ({ emulate, hold, open }) => {
    const first = await emulate({ id: 'first', apps: FIRST })
    const second = await emulate({ id: 'second', apps: SECOND })
    const gateway = open.use(await HttpGateway.to(first.port))
    const watched = hold(`http://127.0.0.1:${gateway.port}`, { pollInterval: 2000, pollIntervalFallback: 2000 })
    await connected(watched)
    gateway.moveTo(second.port)
    await until('the other hub', () => watched.hub.status.id === 'second')
    first.install({ id: 'new.on.first' })
    await until('a session with the other', () => second.connections.subscribers === 1)
    expect(first.connections.subscribers).toBe(0)
    expect(known(watched, 'new.on.first')).toBeUndefined()
    expect(watched.news).toEqual([])
  })
})

test.concurrent('a realtime packet of more than 20,000 values is not read, and ends the channel', async ({
  emulate,
  hold,
  open,
}) => {
  const emulated = await emulate()
  const gateway = open.use(await HttpGateway.to(emulated.port))
  const watched = hold(`http://127.0.0.1:${gateway.port}`, { pollInterval: 3_600_000 })
  await connected(watched)
  const id = anApp(emulated)
  const send = (name: string, values: number) => {
    const record = `{"id":"${id}","name":"${name}","x":[${'0,'.repeat(values)}0]}`
    gateway.sendText(`42/api,["homey:manager:apps","app.update",${record}]`)
  }
  send('small enough', 19_900)
  await until('the event', () => known(watched, id)?.name === 'small enough')
  const names: unknown[] = []
  watched.hub.apps.subscribe(({ changes }) => names.push(...changes.map(({ after }) => after?.name)))
  send('too large', 20_000)
  await until('the loss', () => watched.hub.status.realtime === 'polling')
  expect(names).not.toContain('too large')
})

describe.concurrent('a removed app stays removed', () => {
  test('if an update of it arrives late, and the list is read', async ({ emulated, watched }) => {
    const id = anApp(emulated)
    const record = emulated.apps.get(id)
    emulated.uninstall(id)
    await until('the removal', () => !watched.hub.apps.all.has(id))
    emulated.forgetRequests()
    emulated.emit('app.update', record)
    await until('the list', () => asked(emulated, 'getApps') > 0)
    expect(watched.news).toEqual([`${id} gone`])
    expect(known(watched, id)).toBeUndefined()
  })

  hubTest(
    'if the hub continues to send updates of it: the list is not read each time',
    async ({ emulated, watched }) => {
      emulated.forgetRequests()
      for (let i = 0; i < 50; i++) {
        emulated.emit('app.update', { id: 'ghost', version: `${i}` })
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      expect(known(watched, 'ghost')).toBeUndefined()
      expect(asked(emulated, 'getApps')).toBeLessThanOrEqual(2)
    },
  )

  test('if it was read before, and the answer arrives later', async ({ emulate, hold }) => {
    const emulated = await emulate()
    const watched = hold(emulated.url)
    await listed(watched)
    const id = anApp(emulated)
    emulated.behave('slow-headers', { ms: 500, operation: 'getApp' })
    const answer = expect(watched.hub.apps.getApp(id)).rejects.toMatchObject({ code: 'unknown_app' })
    await connected(watched)
    emulated.uninstall(id)
    await until('the removal', () => !watched.hub.apps.all.has(id))
    await answer
    expect(known(watched, id)).toBeUndefined()
    expect(watched.news).toEqual([`${id} gone`])
  })

  test('if a list overtook the event of its installation, and is read again', async ({ emulated, watched }) => {
    const id = anApp(emulated)
    const record = emulated.apps.get(id)
    emulated.uninstall(id, { silent: true })
    await watched.hub.apps.refresh()
    emulated.forgetRequests()
    emulated.emit('app.create', record)
    await until('the list', () => asked(emulated, 'getApps') > 0)
    expect(watched.news).toEqual([`${id} gone`])
    expect(known(watched, id)).toBeUndefined()
  })

  test('until a generic call installs it again, whose event is believed immediately', async ({ attach }) => {
    const store = [{ id: 'the.app', version: '2.0.0' }]
    const { emulated, watched } = await attach({
      emulated: { apps: [{ id: 'the.app' }, { id: 'another.app' }, { id: 'third.app' }], store },
    })
    emulated.uninstall('the.app', { silent: true })
    await watched.hub.apps.refresh()
    emulated.forgetRequests()
    const install = {
      section: 'manager',
      item: 'apps',
      method: 'POST',
      path: '/store',
      body: { id: 'the.app' },
    } as const
    await watched.hub.callEndpoint(readEndpoint(install))
    await until('the app', () => known(watched, 'the.app')?.version === '2.0.0')
    expect(asked(emulated, 'getApps')).toBe(0)
  })

  test('until a command installs it again: each step is reported', async ({ attach }) => {
    const { emulated, watched } = await attach({ emulated: { settleMs: 50 } })
    const id = 'com.harborlight.irrigation'
    emulated.install(id, { silent: true })
    await watched.hub.apps.refresh()
    emulated.uninstall(id, { silent: true })
    await watched.hub.apps.refresh()
    watched.news.length = 0
    await watched.hub.call('installFromAppStore', { appId: id })
    await until('the app', () => known(watched, id)?.state === 'running')
    expect(watched.news).toEqual([`${id} stopped`, `${id} starting`, `${id} running`])
  })

  test.for(['is found by the list', 'is reported after its removal'])(
    'until it is installed again, which %s',
    async (how, { emulated, watched }) => {
      const id = anApp(emulated)
      emulated.uninstall(id, { silent: true })
      await watched.hub.apps.refresh()
      if (how === 'is reported after its removal') {
        emulated.emit('app.delete', { id })
        emulated.behave('never-answer', { operation: 'getApps' })
      }
      emulated.install({ id, version: '1.0.1' })
      await until('the app', () => known(watched, id)?.version === '1.0.1')
    },
  )

  test('and an app that was installed without an event is found by an update', async ({ emulated, watched }) => {
    emulated.install({ id: 'new.app', version: '1.0.0' }, { silent: true })
    emulated.change('new.app', { version: '1.0.1' })
    await until('the app', () => known(watched, 'new.app')?.version === '1.0.1')
  })
})

polling('a record with another id is not an answer to the request for an app', async ({ emulated, watched }) => {
  const id = anApp(emulated)
  emulated.behave('wrong-shape', { operation: 'getApp', value: { error: 'starting up' } })
  await expect(watched.hub.call('getApp', { id })).rejects.toMatchObject({ code: 'nonsense' })
  emulated.behaveWell()
  emulated.behave('foreign-ids', { operation: 'getApp' })
  await expect(watched.hub.call('getApp', { id })).rejects.toMatchObject({ code: 'nonsense' })
})
