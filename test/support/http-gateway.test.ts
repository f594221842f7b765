import { expect, test } from 'vitest'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { HttpGateway, type Reply } from './http-gateway.ts'

const KEY = 'a-key'

async function behindGateway() {
  await using open = new AsyncDisposableStack()
  const hub = open.use(await EmulatedHub.start({ keys: { [KEY]: ['hub.app'] }, settleMs: 0 }))
  const gateway = open.use(await HttpGateway.to(hub.port))
  const request = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${gateway.port}/api/manager/${path}`, {
      redirect: 'manual',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      ...init,
    })
  const moved = open.move()
  return { hub, gateway, request, [Symbol.asyncDispose]: () => moved.disposeAsync() }
}

const page: Reply = { status: 404, headers: { 'content-type': 'text/html' }, text: '<h1>404</h1>' }

test('without a rule everything is forwarded unchanged', async () => {
  await using world = await behindGateway()
  const answer = await world.request('system/ping')
  expect(answer.status).toBe(200)
  expect(answer.headers.get('x-homey-id')).toBe(world.hub.id)
  expect(Object.keys(Object(await (await world.request('apps/app')).json()))).toEqual([...world.hub.apps.keys()])
})

test('a rule answers instead of the hub until the rule is removed', async () => {
  await using world = await behindGateway()
  const end = world.gateway.rule(() => page)
  const answer = await world.request('apps/app')
  expect([answer.status, await answer.text()]).toEqual([404, page.text])
  expect(world.hub.requests).toEqual([])
  end()
  expect((await world.request('apps/app')).status).toBe(200)
})

test('a request whose answer is cut is executed by the hub', async () => {
  await using world = await behindGateway()
  const id = [...world.hub.apps.keys()][0] ?? ''
  world.gateway.rule(({ method }) => (method === 'DELETE' ? { change: () => 'cut' } : undefined))
  await expect(world.request(`apps/app/${id}`, { method: 'DELETE' })).rejects.toThrow()
  expect(world.hub.apps.has(id)).toBe(false)
})

test('a request that is cut never reaches the hub', async () => {
  await using world = await behindGateway()
  world.gateway.rule(() => 'cut')
  await expect(world.request('apps/app')).rejects.toThrow()
  expect(world.hub.requests).toEqual([])
})
