import { describe, expect } from 'vitest'
import { until } from '../support/until.ts'
import { acknowledged, connected, events, HUE, hubOf, opened, sessionOf, test } from './support.ts'

const API = 'homey:manager:apps'

describe('a session', () => {
  test('receives nothing before it subscribes and after it unsubscribes', async ({ hub }) => {
    const session = await sessionOf(hub)
    hub.change(HUE, { version: '1' })
    await acknowledged(session.api, 'subscribe', API)
    hub.change(HUE, { version: '2' })
    expect(await events(hub, session)).toMatchObject([['app.update', { version: '2' }]])
    expect(await acknowledged(session.api, 'unsubscribe', API)).toEqual([null, null])
    hub.change(HUE, { version: '3' })
    await acknowledged(session.api, 'subscribe', API)
    expect(await events(hub, session)).toEqual([])
  })

  test('is refused for an unknown key, with a message that a client can parse', async () => {
    const { root } = connected(await hubOf())
    const refusal = { statusCode: 401, code: 401, error: 'unauthorized', error_description: expect.any(String) }
    expect((await acknowledged(root, 'handshakeClient', { token: 'wrong', homeyId: 'x' }))[0]).toEqual(refusal)
    for (const hostile of [null, 7, [], { token: {} }, '__proto__'])
      expect((await acknowledged(root, 'handshakeClient', hostile))[0]).toEqual(refusal)
  })

  test('cannot open the namespace on a connection without a handshake, even next to one with a handshake', async ({
    hub,
  }) => {
    await sessionOf(hub)
    const { manager } = connected(hub)
    expect(await opened(manager.socket('/api'))).toMatchObject({ data: { statusCode: 401 } })
    expect(hub.connections.sessions).toBe(1)
  })

  test('loses its connection by opening the namespace twice', async ({ hub }) => {
    const { manager, api } = await sessionOf(hub)
    manager._packet({ type: 0, nsp: '/api', data: {} })
    await until('the connection to drop', () => !api.connected)
    await until('the hub to end the session', () => hub.connections.sessions === 0)
  })

  test('may subscribe only with a scope that reads apps, and only to existing topics', async () => {
    const hub = await hubOf({ keys: { talker: ['homey.speech'], reader: ['hub.app.readonly'] } })
    const talker = await sessionOf(hub, 'talker')
    expect((await acknowledged(talker.api, 'subscribe', API))[0]).toMatchObject({ statusCode: 403, code: 403 })
    const reader = await sessionOf(hub, 'reader')
    expect((await acknowledged(reader.api, 'subscribe', API))[0]).toBeNull()
    for (const uri of ['homey:manager:flow', talker.api.id, null, {}])
      expect((await acknowledged(reader.api, 'subscribe', uri))[0]).toMatchObject({ statusCode: 404 })
    expect(hub.connections.subscribers).toBe(1)
  })

  test('survives messages without acknowledgement and of any shape', async ({ hub, session }) => {
    session.root.emit('handshakeClient')
    const stubborn = { toString: 1, valueOf: 1, toJSON: 1 }
    for (const event of ['subscribe', 'unsubscribe', 'api', 'error', 'unheard-of'])
      for (const payload of [
        null,
        [],
        'x',
        stubborn,
        { uri: stubborn, operation: stubborn, args: { id: stubborn } },
        { args: null, operation: '__proto__', uri: 'constructor' },
      ])
        session.api.emit(event, payload)
    hub.change(HUE, { version: '2' })
    expect(await events(hub, session)).toHaveLength(1)
  })
})

describe('calls over the session', () => {
  const call = (operation: string, args: object = {}, uri = API) => ({ uri, operation, args })

  test('have the same permissions as the REST routes', async () => {
    const hub = await hubOf({ keys: { reader: ['homey.app.readonly'] } })
    const { api } = await sessionOf(hub, 'reader')
    expect(await acknowledged(api, 'api', call('getApps'))).toEqual([null, Object.fromEntries(hub.apps)])
    expect((await acknowledged(api, 'api', call('enableApp', { id: HUE })))[0]).toMatchObject({
      statusCode: 403,
      error: 'missing_scopes',
    })
    expect(hub.requests.at(-1)).toMatchObject({ via: 'socket', method: 'API', operation: 'enableApp', status: 403 })
  })

  test('are refused with the status that REST has', async () => {
    const hub = await hubOf({ flavour: 'newer' })
    const { api } = await sessionOf(hub)
    const refusal = async (message: unknown) => (await acknowledged(api, 'api', message))[0]
    expect(await refusal(call('getApp', { id: 'nobody' }))).toMatchObject({ statusCode: 404, code: 404 })
    expect(await refusal(call('getApp'))).toMatchObject({ statusCode: 400 })
    expect(await refusal(call('garbageCollectApp', { id: HUE }))).toMatchObject({ statusCode: 404 })
    expect(await refusal(call('getApps', {}, 'homey:manager:system'))).toMatchObject({ statusCode: 404 })
    expect(await refusal(call('toString'))).toMatchObject({ statusCode: 404 })
    expect(await refusal('nonsense')).toMatchObject({ statusCode: 400 })
  })
})
