import { describe, expect } from 'vitest'
import { ENTRIES } from '../../src/emulator/core/table.ts'
import { ask, HUE, hubOf, PUMP, test } from './support.ts'

describe('apps over REST', () => {
  test.each(['GET /apps/app/', 'POST /apps/store/', `GET /apps/app/${HUE}/setting//`])(
    'accepts the trailing slash of %s',
    async (line) => {
      const body = line.startsWith('POST') ? { body: { id: PUMP } } : {}
      expect((await ask(await hubOf(), line, body)).status).toBe(200)
    },
  )

  test.each([
    'GET /apps/app/nobody',
    'PUT /apps/app/nobody/enable',
    'DELETE /apps/app/nobody',
    'GET /apps/app/nobody/setting',
    'GET /apps/app/__proto__',
    'GET /apps/app/constructor/setting',
    `GET /apps/app/${HUE}/setting/nothing`,
    `DELETE /apps/app/${HUE}/setting/nothing`,
    'GET /apps/nowhere',
    'POST /apps/app',
    'GET /zones/zone',
    'GET /',
    'GET /api',
    'GET /apps/app/..',
  ])('answers 404 with a body to %s', async (line) => {
    expect(await ask(await hubOf(), line)).toMatchObject({ status: 404, json: { error: 'not_found' } })
  })

  test('refuses a change that is not an object, or has a field of the wrong type', async ({ hub }) => {
    for (const body of [{ autoupdate: 'yes' }, []])
      expect((await ask(hub, `PUT /apps/app/${HUE}`, { body })).status).toBe(400)
  })

  test('keeps settings of any JSON value under any name', async ({ hub }) => {
    const name = 'a/b %é'
    const path = `/apps/app/${HUE}/setting/${encodeURIComponent(name)}`
    for (const value of [null, false, 0, '', [1, { a: null }], { deep: { er: 'x' } }]) {
      expect((await ask(hub, `PUT ${path}`, { body: { value } })).status).toBe(200)
      expect((await ask(hub, `GET ${path}`)).json).toEqual(value)
      expect(hub.settings(HUE)[name]).toEqual(value)
    }
    expect((await ask(hub, `DELETE ${path}`)).status).toBe(200)
    expect((await ask(hub, `GET ${path}`)).status).toBe(404)
    expect((await ask(hub, `PUT ${path}`, { body: {} })).status).toBe(400)
  })

  test('handles a setting called __proto__ like any other', async ({ hub }) => {
    const line = `/apps/app/${HUE}/setting/__proto__`
    await ask(hub, `PUT ${line}`, { raw: '{"value":{"polluted":true},"__proto__":{"polluted":true}}' })
    expect((await ask(hub, `GET ${line}`)).json).toEqual({ polluted: true })
    expect((await ask(hub, `GET /apps/app/${HUE}/setting`)).text).toContain('"__proto__":{"polluted":true}')
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })

  test('refuses to install an app that the store does not have, from an unknown channel, or without an id', async ({
    hub,
  }) => {
    expect((await ask(hub, 'POST /apps/store', { body: { id: 'nobody' } })).status).toBe(404)
    expect((await ask(hub, 'POST /apps/store', { body: { id: PUMP, channel: 'beta' } })).status).toBe(400)
    expect((await ask(hub, 'POST /apps/store', { body: {} })).status).toBe(400)
    expect((await ask(hub, 'POST /apps/store')).status).toBe(400)
  })
})

describe('the generations', () => {
  test('the newer one requires a message for a crash log', async () => {
    const hub = await hubOf({ flavour: 'newer' })
    expect((await ask(hub, `POST /apps/app/${HUE}/crashlog`, { body: {} })).status).toBe(400)
    expect((await ask(hub, `POST /apps/app/${HUE}/crashlog`, { body: { message: '' } })).status).toBe(200)
  })

  test('the older one keeps the settings of an uninstalled app unless it is asked to purge them', async () => {
    const hub = await hubOf({ flavour: 'older' })
    const reinstall = async (query: string) => {
      await ask(hub, `PUT /apps/app/${PUMP}/setting/mine`, { body: { value: 1 } })
      await ask(hub, `DELETE /apps/app/${PUMP}${query}`)
      await ask(hub, 'POST /apps/store', { body: { id: PUMP } })
      return hub.settings(PUMP)['mine']
    }
    expect(await reinstall('')).toBe(1)
    expect(await reinstall('?purgeSettings=true')).toBeUndefined()
  })
})

test.each(ENTRIES)(
  'permissions lets a key use $name with the permission of its row, and with no other',
  async (entry) => {
    const { item, endpoint } = entry
    const { method, path, needs, only } = endpoint
    const isOpen = needs === 'nothing'
    const enough = isOpen || needs === 'key' ? [] : [needs]
    const flavour = only?.includes('older') === false ? 'newer' : 'older'
    const hub = await hubOf({ flavour, keys: { none: [], enough } })
    const line = `${method} /${item}${path.replace(':id', 'nobody').replace(':name', 'nothing')}`
    expect((await ask(hub, line, { key: null })).status).toBe(isOpen ? 200 : 401)
    expect((await ask(hub, line, { key: 'none' })).status === 403).toBe(enough.length > 0)
    expect((await ask(hub, line, { key: 'enough' })).status).not.toBe(403)
  },
)

describe('answers and requests', () => {
  test.each([
    ['null', 200, 'null'],
    ['empty', 200, ''],
    ['204', 204, ''],
  ] as const)('an empty result is sent as %s', async (nothing, status, text) => {
    const hub = await hubOf({ nothing })
    expect(await ask(hub, `PUT /apps/app/${HUE}/enable`)).toMatchObject({ status, text })
  })

  test('a body that is not JSON is refused with 400 and one that is too long with 413', async ({ hub }) => {
    const line = `PUT /apps/app/${HUE}/setting/x`
    expect((await ask(hub, line, { raw: '{"value":' })).status).toBe(400)
    expect((await ask(hub, line, { body: { value: 'x'.repeat(1024 * 1024) } })).status).toBe(413)
    expect((await ask(hub, line, { body: { value: 'x'.repeat(1024 * 1023) } })).status).toBe(200)
  })

  test('malformed percent encoding is refused with 400', async ({ hub }) => {
    expect((await ask(hub, 'GET /apps/app/%E0%A4%A')).status).toBe(400)
    expect((await ask(hub, `GET /apps/app/${HUE}/setting/%`)).status).toBe(400)
    expect((await ask(hub, 'GET /system/ping?id=%')).status).toBe(200)
  })

  test('requests and their statuses are recorded, up to a limit', async () => {
    const hub = await hubOf({ memory: 3 })
    await ask(hub, `PUT /apps/app/${HUE}/setting/x`, { body: { value: 1 } })
    expect(hub.requests).toEqual([
      {
        at: expect.any(Number),
        via: 'rest',
        method: 'PUT',
        path: `/api/manager/apps/app/${HUE}/setting/x`,
        operation: 'setAppSetting',
        key: 'secret',
        body: { value: 1 },
        status: 200,
        executed: true,
      },
    ])
    for (const path of ['/a', '/b', '/c']) await ask(hub, `GET ${path}`, { key: null })
    expect(hub.requests.map(({ path, status }) => [path, status])).toEqual([
      ['/api/manager/a', 404],
      ['/api/manager/b', 404],
      ['/api/manager/c', 404],
    ])
  })
})
