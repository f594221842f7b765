import { describe, expect } from 'vitest'
import { until } from '../support/until.ts'
import { KEY, World } from '../support/world.ts'
import { test } from '../support/world-test.ts'

test.concurrent('a refused raw value is not read as an envelope, so no part of it is published or logged', async () => {
  await using world = await World.start({ env: { COMMANDS_DENY: 'set-setting' } })
  const { app, observer, bridge } = world
  const refusal = await world.request(`home/app/${app}/cmd/set-setting/login`, '{"transaction":"hunter2"}')
  expect(refusal).toMatchObject({ transaction: null, error: { code: 'not_allowed' } })
  await until('the event', () => world.events(app).some(({ event_type }) => event_type === 'command_failed'))
  await world.request('bridge/cmd/ping')
  const shown = observer.seen.filter(({ topic, text }) => !topic.includes('/cmd/') && text.includes('hunter2'))
  expect(shown.map(({ topic }) => topic)).toEqual([])
  expect(bridge.lines.filter((line) => line.includes('hunter2'))).toEqual([])
})

describe.concurrent('the API key', () => {
  test('is in nothing that the bridge sends or logs, whatever the hub does with it', async ({ world }) => {
    const { app, hub, observer } = world
    hub.behave('answer-status', { status: 400, description: `Bearer ${KEY} is not welcome`, operation: 'restartApp' })
    const refused = await world.request(`home/app/${app}/cmd/restart`)
    expect(refused.error?.message).toBe('The hub refused: 400, Bearer *** is not welcome.')
    await world.request(`home/app/${app}/cmd/set-setting/echo`, JSON.stringify({ deep: [`x${KEY}`] }))
    expect((await world.request(`home/app/${app}/cmd/get-setting/echo`)).data).toEqual({ deep: ['x***'] })
    hub.change(app, { name: `${KEY} lamp`, version: KEY })
    await until('the name', () => world.state(app)?.['name'] === '*** lamp')
    hub.crash(app, `Error: ${KEY}`)
    await until('the crash', () => world.events(app).some(({ event_type }) => event_type === 'crashed'))
    await world.request('bridge/cmd/ping')
    const shown = observer.seen.filter(({ topic, text }) => !topic.includes('/cmd/') && text.includes(KEY))
    expect(shown.map(({ topic }) => topic)).toEqual([])
  })

  test('is removed completely, even where a text of the hub is truncated', async () => {
    const part = KEY.slice(0, 8)
    await using world = await World.start({ env: { DISCOVERY_FORMAT: 'device' } })
    const { app, hub, observer, bridge } = world
    // These are the length limits of errors, Home Assistant names, log lines, names and crash messages.
    for (const length of [100, 200, 300, 1024]) {
      const text = `${'x'.repeat(length - KEY.length + 1)}${KEY}`
      hub.behave('answer-status', { status: 400, description: text, operation: 'restartApp' })
      expect((await world.request(`home/app/${app}/cmd/restart`)).error?.message).toMatch(/\*\*\*\.$|x\.$/)
      hub.change(app, { name: text, version: text, author: text })
      await until('the name', () => String(world.state(app)?.['name']).length === text.length - KEY.length + 3)
      hub.crash(app, text)
      await until('the crash', () => world.state(app)?.['crashed'] === true)
      hub.recover(app)
      await until('the recovery', () => world.state(app)?.['crashed'] === false)
    }
    await world.settle()
    const shown = observer.seen.filter(({ topic, text }) => !topic.includes('/cmd/') && text.includes(part))
    expect(shown.map(({ topic }) => topic)).toEqual([])
    expect(bridge.lines.filter((line) => line.includes(part))).toEqual([])
  })

  test("is not in the hub's own record of an app, which is answered up to 1 MiB", async () => {
    await using world = await World.start({
      hub: { apps: [{ id: 'the.app', record: { icon: `/x?key=${KEY}`, exitSignal: 'SIGKILL' } }] },
    })
    const ask = () => world.request('home/app/the.app/cmd/get', '{"raw":true}')
    expect((await ask()).data).toMatchObject({ raw: { icon: '/x?key=***', exitSignal: 'SIGKILL' } })
    world.hub.change('the.app', { novelty: 'x'.repeat(1024 * 1024) }, { silent: true })
    expect(await ask()).toMatchObject({ ok: false, error: { code: 'hub_failed' } })
  })
})
