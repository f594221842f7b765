import { describe, expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { APP, running, runningApp, written } from './support.ts'

test('the web API of an app is 503 if the app does not run, and for requests in progress when it ends', async () => {
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

  test('refuses a date as arguments, and events of a name that is too long', async () => {
    const hub = await runningApp(`
      export default async ({ app, hub }) => {
        const tasks = [
          () => hub.manager('apps').getApp(new Date(0)),
          () => hub.manager('x'.repeat(1024)).on('app.update', () => {}),
        ]
        for (const task of tasks) await task().catch(({ status, code }) => app.emit('refused', [status, code]))
      }
    `)
    expect(hub.emitted).toEqual(Array(2).fill(['refused', [400, 'invalid_parameter']]))
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
