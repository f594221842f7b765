import { expect, onTestFinished, test } from 'vitest'
import { addSettings, newApp, openHubData } from '../../../src/emulator/data/state.ts'
import { ProcessApps } from '../../../src/emulator/processes/process-apps.ts'
import { until } from '../../support/until.ts'
import { World } from '../../support/world.ts'
import { isAlive, quickClock } from './support.ts'

const PUMP = 'net.lindqvist.heatpump'
const DOORBELL = 'nl.vandermolen.doorbell'
const LEAK = 'dev.quietbytes.scripts'

async function worldOf(ids: readonly string[], settings: Readonly<Record<string, Record<string, unknown>>> = {}) {
  const data = await openHubData({ store: 'config/demo/store' })
  onTestFinished(() => data[Symbol.asyncDispose]())
  const { state, packages } = data
  for (const id of ids) {
    const { folder, manifest } = packages.adopt(`config/demo/apps/${id}`)
    addSettings(state, id, { ...manifest.settings, ...settings[id] })
    state.put(newApp({ id, folder, version: manifest.version, channel: 'stable', origin: 'appstore' }))
  }
  const made: ProcessApps[] = []
  const world = await World.start({
    env: { COMMANDS_ALLOW: '*' },
    hub: {
      backend: (host) => {
        const apps = new ProcessApps(
          { state, packages, limits: { memory: 128 * 1024 * 1024 }, clock: quickClock },
          host,
        )
        made.push(apps)
        return apps
      },
    },
  })
  const shown = (id: string): Record<string, unknown> =>
    JSON.parse(world.observer.last(`hub2mqtt/home/app/${id}`) ?? '{}')
  const untilShown = (id: string, fields: Record<string, unknown>) =>
    until(`${id} to be ${JSON.stringify(fields)}`, () =>
      Object.entries(fields).every(([name, value]) => shown(id)[name] === value),
    )
  const command = async (topic: string, payload?: string) => {
    const answer = await world.request(topic, payload)
    expect(answer, JSON.stringify(answer)).toMatchObject({ ok: true })
    return answer.data
  }
  return { shown, untilShown, command, world, pid: (id: string) => made[0]?.pid(id) }
}

test('a subscriber on MQTT sees the whole life of a process: output, update, restart, end', async () => {
  const { shown, untilShown, command, world, pid } = await worldOf([PUMP])
  await untilShown(PUMP, { state: 'running', version: '2.4.1', latest_version: '2.5.0' })
  const first = pid(PUMP)
  await command(`home/app/${PUMP}/cmd/restart`)
  await until('another process', () => pid(PUMP) !== undefined && pid(PUMP) !== first)
  expect(isAlive(first)).toBe(false)
  await untilShown(PUMP, { state: 'running' })
  await until('its memory', () => Number(shown(PUMP)['memory_bytes']) > 20_000_000)
  await command(`home/app/${PUMP}/cmd/garbage-collect`)
  await command(`home/app/${PUMP}/cmd/set-setting/zones`, '{"attic":10}')
  await until('the output of the app', async () =>
    String(await command(`home/app/${PUMP}/cmd/get-std`)).includes('the zones were changed from outside'),
  )
  await command('home/cmd/install', JSON.stringify({ id: PUMP }))
  await untilShown(PUMP, { state: 'running', version: '2.5.0', latest_version: null })
  await command(`home/app/${PUMP}/cmd/disable`)
  await untilShown(PUMP, { state: 'stopped', enabled: false })
  expect(pid(PUMP)).toBeUndefined()
  await command(`home/app/${PUMP}/cmd/uninstall`, JSON.stringify({ confirm: PUMP }))
  await until('its topic to be cleared', () => world.observer.last(`hub2mqtt/home/app/${PUMP}`) === '')
})

test('a crash is published with its stack, and an app over its memory limit with the reason', async () => {
  const { shown, untilShown } = await worldOf([DOORBELL, LEAK], {
    [DOORBELL]: { crash_after: 1 },
    [LEAK]: { leak: 100_000 },
  })
  await untilShown(DOORBELL, { crashed: true })
  expect(shown(DOORBELL)['crash_message']).toMatch(
    /^Error: connect EHOSTUNREACH 192\.0\.2\.77:554\n {4}at .*\/app\.js:\d+/,
  )
  await untilShown(LEAK, { crashed: true, crash_message: 'Too many memwarns' })
})
