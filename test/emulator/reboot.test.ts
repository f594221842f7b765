import { describe, expect } from 'vitest'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { ask, backendOf, HUE, hubOf, KEY, subscribed, test } from './support.ts'

const PING = 'GET /system/ping'

describe('a reboot', () => {
  test('closes every connection and uses the same port again, with another version and id if requested', async () => {
    const hub = await hubOf({ id: 'one', version: '1.0.0' })
    const { url } = hub
    const session = await subscribed(hub)
    hub.change(HUE, { version: '8.0.0' }, { silent: true })
    await hub.reboot({ version: '2.0.0', id: 'two' })
    await until('the session to end', () => session.gone.length > 0)
    expect(session.gone).toEqual(['transport close'])
    expect(hub.connections).toEqual({ sockets: 0, sessions: 0, subscribers: 0 })
    expect(hub.url).toBe(url)
    expect((await ask(hub, PING)).headers).toMatchObject({ 'x-homey-id': 'two', 'x-homey-version': '2.0.0' })
    expect((await ask(hub, `GET /apps/app/${HUE}`)).json).toMatchObject({ version: '8.0.0' })
    await subscribed(hub)
  })

  test('takes as long as requested', async () => {
    const clock = new FakeClock()
    const hub = await hubOf({ clock })
    const rebooting = hub.reboot({ downMs: 5000 })
    await until('the hub to go down', () => clock.waits.includes(5000))
    await expect(ask(hub, PING)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await clock.advance(5000)
    await rebooting
    expect((await ask(hub, PING)).status).toBe(200)
  })

  test('is cancelled when the hub is closed', async () => {
    const clock = new FakeClock()
    const hub = await hubOf({ clock })
    const rebooting = hub.reboot({ downMs: 5000 })
    await until('the hub to go down', () => clock.waits.includes(5000))
    await hub.close()
    await rebooting
    await expect(ask(hub, PING)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  test('waits for the previous one', async ({ hub }) => {
    await Promise.all([hub.reboot({ version: '2.0.0' }), hub.reboot({ version: '3.0.0' })])
    expect(hub.version).toBe('3.0.0')
    expect((await ask(hub, PING)).status).toBe(200)
  })

  test('stops real apps and starts them again, and none is left when the hub is closed in between', async () => {
    const steps: string[] = []
    const lived = { start: () => void steps.push('start'), stop: () => void steps.push('stop') }
    const hub = await hubOf({ backend: () => ({ ...backendOf([]), ...lived }) })
    await hub.reboot()
    expect(steps).toEqual(['start', 'stop', 'start'])
    const rebooting = hub.reboot()
    await hub.close()
    await rebooting
    expect(steps.at(-1)).toBe('stop')
  })

  test('leaves no port open if the apps do not start', async () => {
    const port = await freePort()
    const start = () => Promise.reject(new Error('no apps today'))
    await expect(hubOf({ port, backend: () => ({ ...backendOf([]), start }) })).rejects.toThrow('no apps today')
    await hubOf({ port })
  })
})

test.each([
  ['goodbye', 'io server disconnect'],
  ['cut', 'transport close'],
] as const)('realtime sessions end by %s', async (how, reason) => {
  const hub = await hubOf()
  const session = await subscribed(hub)
  hub.dropRealtime(how)
  await until('the session to end', () => session.gone.length > 0)
  expect(session.gone).toEqual([reason])
  expect((await subscribed(hub)).api.connected).toBe(true)
})

describe('closing a hub', () => {
  test('works with open connections, twice if necessary, and by leaving the scope', async () => {
    let kept: EmulatedHub
    {
      await using hub = await EmulatedHub.start({ keys: { [KEY]: ['hub'] } })
      kept = hub
      await subscribed(hub)
      hub.recover(HUE)
      hub.behave('realtime-hung')
    }
    await Promise.all([kept.close(), kept.close()])
    expect(kept.connections.sockets).toBe(0)
  })
})
