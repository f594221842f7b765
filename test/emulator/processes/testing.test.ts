import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Start } from 'hub2mqtt/sdk'
import { startApp, type TestOptions } from 'hub2mqtt/sdk/testing'
import { expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { hubOf } from '../support.ts'
import { APP, running, written } from './support.ts'

async function inTest(folder: string, options: TestOptions = {}) {
  const { default: start }: { default: Start } = await import(pathToFileURL(join(folder, 'app.js')).href)
  return await startApp(start, { id: APP, ...options })
}

test('an app behaves in a test as on a hub', async () => {
  const folder = written(`
    export default async ({ app, hub, log }) => {
      const settings = hub.manager('settings')
      settings.on('change', (name, value) => app.emit('changed', [name, value]))
      await settings.set('count', (await settings.get('count')) + 1)
      await settings.set('date', new Date(0))
      await settings.unset('old')
      app.api.get('/lights/:light', ({ params, query, body }) => ({ params, query, body, nothing: undefined }))
      app.api.post('/echo', ({ body }) => body)
      app.api.put('/none', () => {})
      app.api.delete('/known', () => { throw Object.assign(new Error('no such light'), { status: 404, code: 'unknown' }) })
      app.api.delete('/unknown', () => { throw new TypeError('oh') })
      app.api.delete('/endless', () => { const value = {}; value.value = value; return value })
      app.api.delete('/strange', () => { throw Object.assign(new Error('x'), { status: 200 }) })
      app.emit('all', [await settings.all(), await settings.get('absent'), { app: app.id, version: app.version }])
      app.emit('bare')
      log('a line', { of: 1 })
    }
  `)
  const settings = { count: 1, old: true }
  const hub = await running(folder, { settings })
  const app = await inTest(folder, { settings })
  const stored = { count: 2, date: '1970-01-01T00:00:00.000Z' }
  expect(hub.emitted).toEqual([
    ['all', [stored, null, { app: APP, version: '1.0.0' }]],
    ['bare', null],
  ])
  expect(app.emitted).toEqual(hub.emitted)
  expect(Object.fromEntries(hub.apps.settings(APP))).toEqual(stored)
  expect(app.settings).toEqual(stored)
  // The output of the app arrives on a different channel from its events.
  await until('the line', () => hub.apps.output(APP).endsWith('\n'))
  expect(app.lines).toEqual(hub.apps.output(APP).trimEnd().split('\n'))

  const path = '/lights/dining%20room?on=true&a=%26'
  expect(await app.get(path)).toEqual(await hub.ask(`GET ${path}`))
  expect(await app.get(path)).toMatchObject({ params: { light: 'dining room' }, query: { on: 'true', a: '&' } })
  for (const body of [null, 0, '', [1, { a: null }], { deep: { date: '1970' } }]) {
    for (const answer of [await app.post('/echo', body), await hub.ask('POST /echo', body)])
      expect(answer).toEqual(body)
  }
  for (const answer of [await app.put('/none'), await hub.ask('PUT /none')]) expect(answer).toBeNull()
  await expect(hub.ask('PUT /lights/x')).rejects.toMatchObject({ status: 404 })
  for (const [wrong, wanted] of [
    ['/known', 404],
    ['/unknown', 500],
    ['/endless', 500],
    ['/strange', 500],
    ['/absent', 404],
  ] as const) {
    const refused: unknown = await hub.ask(`DELETE ${wrong}`).catch((error: unknown) => error)
    const { status, error: code, message } = Object(refused)
    expect(status).toBe(wanted)
    await expect(app.delete(wrong)).rejects.toMatchObject({ name: 'HubError', status, code, message })
  }
  await expect(app.delete('/unknown')).rejects.toMatchObject({ cause: new TypeError('oh') })

  hub.apps.setSetting(APP, 'count', { deep: [null] })
  hub.apps.unsetSetting(APP, 'count')
  app.setSetting('count', { deep: [null] })
  app.unsetSetting('count')
  await until('both changes', () => hub.emitted.length === app.emitted.length)
  expect(JSON.parse(JSON.stringify(app.emitted))).toEqual(hub.emitted)
  expect(hub.emitted.slice(2)).toEqual([
    ['changed', ['count', { deep: [null] }]],
    ['changed', ['count', null]],
  ])
})

test('values that a hub refuses, or stores as null, are handled the same way in a test', async () => {
  const folder = written(`
    export default async ({ app, hub }) => {
      const settings = hub.manager('settings')
      const endless = {}
      endless.self = endless
      const tasks = [
        () => settings.set('nothing', undefined),
        () => settings.set('function', () => {}),
        () => settings.set('', 1),
        () => settings.set('x'.repeat(201), 1),
        () => settings.set('half \\ud800', 1),
        () => settings.set('a\\0b', 1),
        () => settings.set(5, 1),
        () => settings.set(null, 1),
        () => settings.set({}, 1),
        () => settings.unset(),
        () => settings.get(5),
        () => settings.get('x'.repeat(1024)),
        () => settings.set('big', 'x'.repeat(256 * 1024)),
        () => settings.set('bigger', 'x'.repeat(3e6)),
        () => settings.set('a', 1n),
        () => settings.set('a', endless),
        () => settings.set('one more', 1),
        () => settings.set('name 7', 'changed'),
        () => hub.manager('apps').getApp('com.example.r'),
        () => hub.manager('apps').getApp(null),
        () => hub.manager('x'.repeat(1024)).getApps(),
        () => hub.manager(5).getApps(),
        () => hub.app(5).get('/x'),
        () => hub.speak(),
        () => hub.speak(5),
      ]
      for (const task of tasks) await task().catch(({ status, code, message }) => app.emit('refused', [status, code, message]))
      app.emit('nothing', () => {})
      app.emit('all', await settings.all())
    }
  `)
  const settings = Object.fromEntries(Array.from({ length: 998 }, (_, index) => [`name ${index}`, index]))
  const { inApp } = await hubOf({ flavour: 'older', apps: [{ id: APP, permissions: ['hub.speech'] }] })
  const hub = await running(folder, { settings, inApp: { call: inApp.call } })
  const app = await inTest(folder, { settings })
  expect(app.emitted).toEqual(hub.emitted)
  const codes = app.emitted.flatMap(([event, refused]) => (event === 'refused' ? [Object(refused).slice(0, 2)] : []))
  expect(codes).toEqual([
    ...Array.from({ length: 10 }, () => [400, 'invalid_name']),
    [413, 'too_large'],
    [413, 'too_large'],
    [400, 'invalid_value'],
    [400, 'invalid_value'],
    [413, 'too_many'],
    ...Array.from({ length: 5 }, () => [400, 'invalid_parameter']),
    [400, 'missing_parameter'],
    [400, 'invalid_parameter'],
  ])
  expect(app.settings).toEqual({ ...settings, 'name 7': 'changed', nothing: null, function: null })
  expect(app.spoken).toEqual([])
  expect(() => app.setSetting('', 1)).toThrow(expect.objectContaining({ status: 400, code: 'invalid_name' }))
  expect(() => app.setSetting('a', undefined)).toThrow(expect.objectContaining({ code: 'invalid_value' }))
})

test('the test answers for the hub and for other apps, sends events and receives spoken texts', async () => {
  const folder = written(`
    export default async ({ app, hub }) => {
      app.emit('one', await hub.manager('apps').getApp({ id: 'x', nothing: undefined }))
      app.emit('other', await hub.app('com.example.lights').put('/hall', { query: { a: 'b' }, body: { on: true } }))
      for (const ask of [() => hub.manager('apps').getApps(), () => hub.manager('constructor').toString(), () => hub.app('x').get('/')])
        await ask().catch(({ name, status, message }) => app.emit('refused', [name, status, message]))
      await hub.manager('system').reboot().catch(({ status }) => app.emit('denied', status))
      const hear = ({ id }) => {
        app.emit('heard', id)
        hub.manager('apps').off('app.update', hear)
      }
      await hub.manager('apps').on('app.update', hear)
      await hub.app('com.example.lights').on('light', (light) => hub.speak(light + ' is on'))
      app.on('stop', async () => app.emit('goodbye'))
    }
  `)
  const asked: unknown[] = []
  const app = await inTest(folder, {
    managers: {
      apps: { getApp: (args) => args },
      system: {
        reboot: () => {
          throw Object.assign(new Error('no'), { status: 403 })
        },
      },
    },
    apps: { 'com.example.lights': { put: (request) => asked.push(request) } },
  })
  expect(asked).toEqual([{ path: '/hall', query: { a: 'b' }, body: { on: true } }])
  app.appEvent('com.example.lights', 'light', 'hall')
  app.appEvent('com.example.lights', 'dark', 'hall')
  app.managerEvent('apps', 'app.create', { id: 'y' })
  app.managerEvent('apps', 'app.update', { id: 'y' })
  app.managerEvent('apps', 'app.update', { id: 'z' })
  await app.stop()
  const lacks = 'The test has no answer: pass startApp'
  expect(app.emitted).toEqual([
    ['one', { id: 'x' }],
    ['other', 1],
    ['refused', ['HubError', 404, `${lacks} managers['apps'].getApps`]],
    ['refused', ['HubError', 404, `${lacks} managers['constructor'].toString`]],
    ['refused', ['HubError', 404, `${lacks} apps['x'].get`]],
    ['denied', 403],
    ['heard', 'y'],
    ['goodbye', null],
  ])
  expect(app.spoken).toEqual(['hall is on'])
})

test('an exception at the start of an app reaches its test', async () => {
  await expect(startApp(() => Promise.reject(new RangeError('oh')))).rejects.toThrow(new RangeError('oh'))
})
