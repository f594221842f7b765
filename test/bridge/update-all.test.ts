import { expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'

const APPS = [
  { id: 'a.one', update: '2.0.0' },
  { id: 'b.two', update: '2.0.0' },
  { id: 'c.none' },
  { id: 'd.three', update: '2.0.0' },
]
const installs = ({ hub }: World) =>
  hub.requests.filter(({ operation }) => operation === 'installFromAppStore').map(({ body }) => Object(body).id)

test.concurrent('update-all shows the progress of each app, logs a line for each, and installs one at a time', async () => {
  await using world = await World.start({ hub: { apps: APPS } })
  world.hub.behave('slow-headers', { ms: 1000, times: 1, operation: 'installFromAppStore' })
  const first = world.request('home/cmd/update-all', '{"transaction":"first"}')
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
