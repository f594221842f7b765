/** All updates of a hub by one command: what is asked of the hub, in which order, and what is answered. */
import { describe, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'

const APPS = [
  { id: 'a.one', update: '2.0.0' },
  { id: 'b.two', update: '2.0.0' },
  { id: 'c.none' },
  { id: 'd.three', update: '2.0.0' },
]
const start = (hub: object = {}, env: Readonly<Record<string, string>> = {}) =>
  World.start({ hub: { apps: APPS, ...hub }, env })
const installs = ({ hub }: World) =>
  hub.requests.filter(({ operation }) => operation === 'installFromAppStore').map(({ body }) => Object(body).id)

describe.concurrent('update-all', () => {
  test.each(['4', '1'])('installs each update that waits, with %s at a time on the hub', async (most) => {
    await using world = await start({}, { HUB_MAX_REQUESTS: most })
    expect(await world.ask('home/cmd/update-all')).toMatchObject({
      ok: true,
      command: 'update-all',
      app: null,
      data: { updated: ['a.one', 'b.two', 'd.three'] },
    })
    expect(installs(world)).toEqual(['a.one', 'b.two', 'd.three'])
    expect(await world.ask('home/cmd/update-all')).toMatchObject({ ok: true, data: { updated: [] } })
    expect(installs(world)).toHaveLength(3)
  })

  test('goes on after an update that fails, and names what was done', async () => {
    await using world = await start()
    world.hub.behave('answer-status', { status: 500, operation: 'installFromAppStore', times: 1 })
    const answer = await world.ask('home/cmd/update-all')
    expect(answer).toMatchObject({ ok: false, error: { code: 'hub_failed' }, data: { done: ['b.two', 'd.three'] } })
    expect(answer.error?.message).toMatch(/^1 of 3 updates failed; a\.one: /)
    expect(await world.ask('home/cmd/update-all')).toMatchObject({ ok: true, data: { updated: ['a.one'] } })
  })

  test('says what it could not do where the bridge ends meanwhile', async () => {
    await using world = await start()
    world.hub.behave('slow-headers', { ms: 500, times: 1, operation: 'installFromAppStore' })
    const { observer } = world
    await observer.publish('hub2mqtt/home/cmd/update-all', '')
    await until('the first', () => installs(world).length === 1)
    await world.bridge.stop()
    expect(observer.texts('hub2mqtt/home/result/update-all').map((text) => JSON.parse(text))).toMatchObject([
      {
        ok: false,
        error: { code: 'expired', message: expect.stringMatching(/^2 of 3 updates failed; b\.two: /) },
        data: { done: ['a.one'] },
      },
    ])
    expect(installs(world)).toHaveLength(1)
  })

  test('shows the progress of each app, leaves a line in the log for each, and is one at a time', async () => {
    await using world = await start()
    world.hub.behave('slow-headers', { ms: 1000, times: 1, operation: 'installFromAppStore' })
    const first = world.ask('home/cmd/update-all', '{"transaction":"first"}')
    await until('the first', () => installs(world).length === 1)
    const { observer } = world
    await observer.publish('hub2mqtt/home/cmd/update-all', '{"transaction":"second"}')
    const results = () => observer.texts('hub2mqtt/home/result/update-all').map((text) => JSON.parse(text))
    await until('the refusal', () => results().some(({ transaction }) => transaction === 'second'))
    expect(results()).toMatchObject([{ transaction: 'second', error: { code: 'busy' } }])
    await first
    await until('the end', () => results().length === 2)
    for (const id of ['a.one', 'b.two', 'd.three']) {
      const steps = () => observer.texts(`hub2mqtt/home/app/${id}/update`).map((text) => JSON.parse(text).in_progress)
      expect(steps(), id).toContain(true)
      await until(`the end of the progress of ${id}`, () => steps().at(-1) === false)
    }
    const lines = world.bridge.lines.map((line) => JSON.parse(line)).filter(({ by }) => by === 'update-all')
    expect(lines.map(({ command, app, outcome }) => [command, app, outcome])).toEqual(
      ['a.one', 'b.two', 'd.three'].map((id) => ['install', id, 'ok']),
    )
  })
})
