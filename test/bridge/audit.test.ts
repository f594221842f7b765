import { describe, expect } from 'vitest'
import { until } from '../support/until.ts'
import { KEY, World } from '../support/world.ts'
import { test } from '../support/world-test.ts'

const lines = ({ bridge }: World) => bridge.lines.map((line) => JSON.parse(line))
const audits = (world: World) => lines(world).filter(({ msg, level }) => msg === 'command' && level === 'info')

test.concurrent('the audit is written at any log level, and records each change of the level', async () => {
  await using world = await World.start({ env: { COMMANDS_DENY: 'disable' } })
  expect(await world.request('bridge/cmd/log-level', 'fatal')).toMatchObject({ ok: true })
  await world.request(`home/app/${world.app}/cmd/restart`, '{"transaction":"t1"}')
  await world.request(`home/app/${world.app}/cmd/disable`, '{"transaction":"t2"}')
  await world.request('bridge/cmd/ping')
  expect(audits(world)).toMatchObject([
    { command: 'log-level', hub: null, app: null, transaction: null, outcome: 'ok' },
    { command: 'restart', hub: 'home', app: world.app, transaction: 't1', outcome: 'ok' },
    { command: 'disable', hub: 'home', app: world.app, transaction: 't2', outcome: 'not_allowed' },
  ])
  expect(lines(world).find(({ msg }) => msg === 'log level changed')).toMatchObject({ log_level: 'fatal' })
})

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

  test('is as secret if a reload set it', async () => {
    const other = 'another-key-for-tests'
    const file = (key: string) => `hubs: {attic: {url: "http://127.0.0.1:9", api_key: ${key}}}\n`
    await using world = await World.start({ file: file('first-key-for-tests'), env: { HUB_NAME: 'home' } })
    world.bridge.reload(file(other))
    await world.request(`home/app/${world.app}/cmd/set-setting/echo`, JSON.stringify(other))
    expect((await world.request(`home/app/${world.app}/cmd/get-setting/echo`)).data).toBe('***')
  })
})
