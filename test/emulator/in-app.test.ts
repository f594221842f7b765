import { describe, expect } from 'vitest'
import type { AppSeed, EmulatedHub } from '../../src/emulator/hub.ts'
import { acknowledged, ask, backendOf, test as base, hubOf, KEY, subscribed } from './support.ts'

const permissions = ['hub.app.readonly', 'homey.speech', 'hub.app.control', 'hub.notifications']
const APPS: readonly AppSeed[] = [
  { id: 'asking', permissions, settings: { mine: 1 } },
  { id: 'modest' },
  { id: 'other', settings: { secret: 2 } },
]
const test = base.extend<{ readonly hub: EmulatedHub }>({
  hub: async ({ task: _ }, use) => use(await hubOf({ flavour: 'older', apps: APPS })),
})
const manager = (item: string, operation: string, args = {}) => ({ section: 'manager', item, operation, args })

describe('an app may call its hub', () => {
  test('for operations that its permissions allow, and gets the answers that a client gets', async ({ hub }) => {
    const list = await hub.inApp.call('asking', manager('apps', 'getApps'))
    expect(list).toEqual((await ask(hub, 'GET /apps/app')).json)
    await hub.inApp.call('asking', manager('speech-output', 'say', { text: 'Hello' }))
    expect(hub.spoken).toEqual(['Hello'])
  })

  test('for no other operations', async ({ hub }) => {
    const refused = { status: 403, message: 'Missing Scopes: homey.app' }
    await expect(hub.inApp.call('asking', manager('apps', 'restartApp', { id: 'other' }))).rejects.toMatchObject(
      refused,
    )
    await expect(hub.inApp.call('modest', manager('apps', 'getApps'))).rejects.toMatchObject({ status: 403 })
    await expect(hub.inApp.call('asking', manager('apps', 'getApp'))).rejects.toMatchObject({ status: 400 })
    await expect(hub.inApp.call('gone', manager('system', 'ping'))).rejects.toMatchObject({ status: 404 })
    await expect(hub.inApp.call('asking', manager('apps', 'constructor'))).rejects.toMatchObject({ status: 500 })
    const elsewhere = { ...manager('apps', 'getApps'), section: 'flow' }
    await expect(hub.inApp.call('asking', elsewhere)).rejects.toMatchObject({ status: 500 })
  })

  test('for its own settings without any permission, and not for those of the hub', async ({ hub }) => {
    await ask(hub, 'PUT /settings/setting/mine', { body: { value: 'of the hub' } })
    expect(await hub.inApp.call('asking', manager('settings', 'getSetting', { name: 'mine' }))).toBe(1)
    await hub.inApp.call('modest', manager('settings', 'setSetting', { name: 'mine', value: [2] }))
    expect(hub.settings('modest')).toEqual({ mine: [2] })
    await hub.inApp.call('modest', manager('settings', 'unsetSetting', { name: 'mine' }))
    expect(await hub.inApp.call('modest', manager('settings', 'getSettings'))).toEqual({})
    expect((await ask(hub, 'GET /settings/setting')).json).toEqual({ mine: 'of the hub' })
  })

  test('to show a notification, which names the app', async ({ hub }) => {
    await hub.inApp.call('asking', manager('notifications', 'createNotification', { excerpt: 'The door is open.' }))
    const { json } = await ask(hub, 'GET /notifications/notification')
    expect(Object.values(Object(json))).toMatchObject([{ ownerUri: 'homey:app:asking', excerpt: 'The door is open.' }])
    const long = hub.inApp.call('asking', manager('notifications', 'createNotification', { excerpt: 'x'.repeat(4001) }))
    await expect(long).rejects.toMatchObject({ status: 400 })
  })
})

describe('an app may subscribe', () => {
  test('to the manager of apps, until it unsubscribes', ({ hub }) => {
    const heard: unknown[] = []
    const end = hub.inApp.subscribe('asking', 'homey:manager:apps', (...event) => heard.push(event))
    hub.uninstall('other')
    end()
    hub.uninstall('modest')
    expect(heard).toEqual([['app.delete', { id: 'other' }]])
  })

  test('to other apps and to itself, with the permission', ({ hub }) => {
    const heard: unknown[] = []
    hub.inApp.subscribe('asking', 'homey:app:other', (...event) => heard.push(event))
    hub.inApp.subscribe('modest', 'homey:app:modest', (...event) => heard.push(event))
    hub.inApp.emit('other', 'rang', { times: 2 })
    hub.inApp.emit('modest', 'heard', null)
    expect(heard).toEqual([
      ['rang', { times: 2 }],
      ['heard', null],
    ])
    const listen = (uri: string) => () => hub.inApp.subscribe('modest', uri, () => {})
    expect(listen('homey:app:other')).toThrow('Missing Scopes: homey.app.control')
    expect(listen('homey:manager:apps')).toThrow('Missing Scopes: homey.app.readonly')
    expect(listen('homey:app:nobody')).toThrow('There are no events with this URI')
    expect(listen('homey:manager:flow')).toThrow('There are no events with this URI')
  })
})

describe('clients and apps', () => {
  test('receive the events of an app that they have subscribed to', async () => {
    const hub = await hubOf({ apps: APPS, keys: { [KEY]: ['hub'], reader: ['hub.app.readonly'] } })
    const { api } = await subscribed(hub)
    const heard = new Promise((resolve) => api.once('homey:app:other', (...event) => resolve(event)))
    expect((await acknowledged(api, 'subscribe', 'homey:app:other'))[0]).toBeNull()
    hub.inApp.emit('other', 'rang', { times: 2 })
    expect(await heard).toEqual(['rang', { times: 2 }])
    const reader = await subscribed(hub, 'reader')
    const [refusal] = await acknowledged(reader.api, 'subscribe', 'homey:app:other')
    expect(refusal).toMatchObject({ statusCode: 403 })
  })

  test('call the web API of an app by its own paths', async () => {
    const asked: unknown[] = []
    const hub = await hubOf({
      backend: ({ inApp }) => ({
        ...backendOf([{ id: 'door', permissions: ['hub.app.control'] }]),
        output: () => 'a line\n',
        request(id, { method, path, query, body }) {
          asked.push([id, method, path, query, body])
          const again = { section: 'app', item: id, operation: 'get', args: { path: '/' } }
          return path === '/self' ? inApp.call(id, again) : Promise.resolve({ open: true })
        },
      }),
    })
    expect((await ask(hub, 'POST /api/app/door/a%20b/c?x=1', { body: [1] })).json).toEqual({ open: true })
    expect((await ask(hub, 'GET /api/app/door')).json).toEqual({ open: true })
    expect((await ask(hub, 'GET /api/app/door/self')).json).toEqual({ open: true })
    expect((await ask(hub, 'POST /apps/app/door/crashlog', { body: { message: '' } })).json).toBe('a line\n')
    expect(asked).toEqual([
      ['door', 'POST', '/a%20b/c', { x: '1' }, [1]],
      ['door', 'GET', '/', {}, undefined],
      ['door', 'GET', '/self', {}, undefined],
      ['door', 'GET', '/', {}, undefined],
    ])
    expect((await ask(hub, 'GET /api/app/nobody/status')).status).toBe(404)
    expect((await ask(hub, 'PATCH /api/app/door/')).status).toBe(404)
    expect((await ask(hub, 'GET /api/app')).status).toBe(404)
    expect((await ask(hub, 'GET /api/app//')).status).toBe(404)
    expect((await ask(hub, 'GET /api/app/%E0%A4%A/x')).status).toBe(400)
    expect((await ask(hub, 'GET /api/app/door/', { key: null })).status).toBe(401)
  })
})
