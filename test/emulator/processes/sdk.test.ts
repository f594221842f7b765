import { describe, expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { APP, running, runningApp, written } from './support.ts'

describe('the web API of an app', () => {
  test('answers by method and path, with parameters, query and body', async () => {
    const hub = await runningApp(`
      export default ({ app }) => {
        app.api.get('/', () => ({ id: app.id, version: app.version }))
        app.api.get('/lights/:light', ({ params, query }) => ({ ...params, ...query }))
        app.api.post('/lights/:light', async ({ body }) => body)
        app.api.delete('/lights/:light', () => {})
      }
    `)
    expect(await hub.ask('GET /')).toEqual({ id: APP, version: '1.0.0' })
    expect(await hub.ask('GET /lights/a%20b?c=d')).toEqual({ light: 'a b', c: 'd' })
    expect(await hub.ask('POST /lights/x', { on: [true] })).toEqual({ on: [true] })
    expect(await hub.ask('DELETE /lights/x')).toBeNull()
    await expect(hub.ask('PUT /lights/x')).rejects.toMatchObject({ status: 404 })
    await expect(hub.ask('GET /lights')).rejects.toMatchObject({ status: 404 })
  })

  test('answers errors as the app specifies, or as 500, and the app continues', async () => {
    const hub = await runningApp(`
      export default ({ app }) => {
        app.api.get('/teapot', () => { throw Object.assign(new Error('short and stout'), { status: 418, code: 'teapot' }) })
        app.api.get('/bug', async () => { undefined.x })
        app.api.get('/endless', () => { const value = {}; value.value = value; return value })
        app.api.get('/strange', () => { throw Object.assign(new Error('x'), { status: 200 }) })
      }
    `)
    await expect(hub.ask('GET /teapot')).rejects.toMatchObject({
      status: 418,
      error: 'teapot',
      message: 'short and stout',
    })
    await expect(hub.ask('GET /bug')).rejects.toMatchObject({ status: 500, error: 'internal_error' })
    await expect(hub.ask('GET /endless')).rejects.toMatchObject({ status: 500 })
    await expect(hub.ask('GET /strange')).rejects.toMatchObject({ status: 500 })
    expect(hub.record).toMatchObject({ state: 'running', crashed: false })
  })

  test('is 503 if the app does not run, and for requests in progress when it ends', async () => {
    const hub = await runningApp(`
      export default ({ app }) => {
        app.api.get('/never', () => new Promise(() => {}))
        app.api.get('/die', () => process.exit(1))
      }
    `)
    const waiting = hub.ask('GET /never').catch((error: unknown) => error)
    await expect(hub.ask('GET /die')).rejects.toMatchObject({ status: 503 })
    expect(await waiting).toMatchObject({ status: 503 })
    await hub.untilCrashed()
    await expect(hub.ask('GET /die')).rejects.toMatchObject({ status: 503, error: 'not_running' })
  })
})

describe('the hub in an app', () => {
  test('has the operations of its managers, other apps and a voice', async () => {
    const asked: unknown[] = []
    const hub = await runningApp(
      `
      export default async ({ app, hub }) => {
        app.emit('apps', await hub.manager('apps').getApp({ id: 'x' }))
        await hub.app('com.example.other').put('/light', { query: { a: 'b' }, body: { on: true } })
        await hub.speak('hello')
      }
    `,
      {
        inApp: {
          call: (id, request) => {
            asked.push([id, request])
            return Promise.resolve({ id: 'x' })
          },
        },
      },
    )
    expect(hub.emitted).toEqual([['apps', { id: 'x' }]])
    expect(asked).toEqual([
      [APP, { section: 'manager', item: 'apps', operation: 'getApp', args: { id: 'x' } }],
      [
        APP,
        {
          section: 'app',
          item: 'com.example.other',
          operation: 'put',
          args: { path: '/light', query: { a: 'b' }, body: { on: true } },
        },
      ],
      [APP, { section: 'manager', item: 'speech-output', operation: 'say', args: { text: 'hello' } }],
    ])
  })

  test('refuses every invalid call, with status and code, and the app continues', async () => {
    const hub = await runningApp(`
      export default async ({ app, hub }) => {
        const settings = hub.manager('settings')
        const endless = {}
        endless.self = endless
        const tasks = [
          () => settings.get(5),
          () => settings.get('x'.repeat(1024)),
          () => settings.unset(),
          () => settings.set(5, 1),
          () => settings.set(null, 1),
          () => settings.set({}, 1),
          () => settings.set('a', 1n),
          () => settings.set('a', endless),
          () => settings.set('a', 'x'.repeat(3e6)),
          () => hub.manager('apps').getApp('com.example.r'),
          () => hub.manager('apps').getApp(null),
          () => hub.manager('apps').getApp(new Date(0)),
          () => hub.manager('apps').on('app.update', () => {}),
          () => hub.speak('x'),
          () => hub.manager('x'.repeat(1024)).on('app.update', () => {}),
          () => hub.manager('x'.repeat(1024)).getApps(),
          () => hub.manager(5).getApps(),
          () => hub.app(5).get('/x'),
        ]
        for (const task of tasks) await task().catch(({ name, status, code }) => app.emit('refused', [name, status, code]))
        app.emit('all', await settings.all())
      }
    `)
    const refused = (code: string, status = 400) => ['refused', ['HubError', status, code]]
    expect(hub.emitted).toEqual([
      ...Array.from({ length: 6 }, () => refused('invalid_name')),
      ...Array.from({ length: 2 }, () => refused('invalid_value')),
      refused('too_large', 413),
      ...Array.from({ length: 3 }, () => refused('invalid_parameter')),
      ...Array.from({ length: 2 }, () => refused('missing_scopes', 403)),
      ...Array.from({ length: 4 }, () => refused('invalid_parameter')),
      ['all', {}],
    ])
    expect(hub.apps.output(APP)).not.toContain('not understood')
  })

  test('refuses with a stack that leads to the line of the app', async () => {
    const hub = await runningApp('export default async ({ hub }) => {\n  await hub.speak("x")\n}')
    await hub.untilCrashed()
    expect(hub.record.crashedMessage).toMatch(/^HubError: Missing Scopes: homey\.app\.readonly\n/)
    expect(hub.record.crashedMessage).toMatch(/ \(?\/app\.js:2:3\)?/)
  })

  test('sends events until the app unsubscribes, or ends', async () => {
    const folder = written(`
      export default async ({ app, hub }) => {
        const manager = hub.manager('apps')
        const hear = ({ id }) => {
          app.emit('heard', id)
          if (id === 'last') manager.off('app.update', hear)
        }
        await manager.on('app.update', hear)
      }
    `)
    const listeners = new Map<string, (event: string, payload: unknown) => void>()
    const hub = await running(folder, {
      inApp: {
        subscribe: (_id, uri, listener) => {
          listeners.set(uri, listener)
          return () => void listeners.delete(uri)
        },
      },
    })
    const tell = listeners.get('homey:manager:apps')
    tell?.('app.update', { id: 'first' })
    tell?.('app.create', { id: 'other' })
    tell?.('app.update', { id: 'last' })
    await until('the end of the subscription', () => listeners.size === 0)
    expect(hub.emitted).toEqual([
      ['heard', 'first'],
      ['heard', 'last'],
    ])
    hub.apps.restart(APP)
    await until('a new one', () => listeners.size === 1)
    hub.apps.disable(APP)
    await hub.untilState('stopped')
    expect(listeners.size).toBe(0)
  })
})
