import { expect, test } from 'vitest'
import type { AppsHost } from '../../../src/emulator/core/hub-apps.ts'
import { addSettings, newApp } from '../../../src/emulator/data/state.ts'
import { ProcessApps } from '../../../src/emulator/processes/process-apps.ts'
import { until } from '../../support/until.ts'
import { World } from '../../support/world.ts'
import { opened } from '../data/support.ts'
import { isAlive, quickClock } from './support.ts'

const PUMP = 'net.lindqvist.heatpump'

test('a subscriber on MQTT sees the whole life of a process: output, update, restart, end', async () => {
  const { state, packages } = await opened({ store: 'config/demo/store' })
  const { folder, manifest } = packages.adopt(`config/demo/apps/${PUMP}`)
  addSettings(state, PUMP, manifest.settings)
  state.put(newApp({ id: PUMP, folder, version: manifest.version, channel: 'stable', origin: 'appstore' }))
  let apps: ProcessApps | undefined
  const backend = (host: AppsHost) => {
    apps = new ProcessApps({ state, packages, clock: quickClock }, host)
    return apps
  }
  await using world = await World.start({ env: { COMMANDS_ALLOW: '*' }, hub: { backend } })
  const pid = () => apps?.pid(PUMP)
  const untilShown = (fields: Record<string, unknown>) =>
    until(`the app to be ${JSON.stringify(fields)}`, () =>
      Object.entries(fields).every(([name, value]) => world.state(PUMP)?.[name] === value),
    )
  const command = async (topic: string, payload?: string) => {
    const answer = await world.request(topic, payload)
    expect(answer, JSON.stringify(answer)).toMatchObject({ ok: true })
    return answer.data
  }
  await untilShown({ state: 'running', version: '2.4.1', latest_version: '2.5.0' })
  const first = pid()
  await command(`home/app/${PUMP}/cmd/restart`)
  await until('another process', () => pid() !== undefined && pid() !== first)
  expect(isAlive(first)).toBe(false)
  await untilShown({ state: 'running' })
  await until('its memory', () => Number(world.state(PUMP)?.['memory_bytes']) > 20_000_000)
  await command(`home/app/${PUMP}/cmd/garbage-collect`)
  await command(`home/app/${PUMP}/cmd/set-setting/zones`, '{"attic":10}')
  await until('the output of the app', async () =>
    String(await command(`home/app/${PUMP}/cmd/get-std`)).includes('the zones were changed from outside'),
  )
  await command('home/cmd/install', JSON.stringify({ id: PUMP }))
  await untilShown({ state: 'running', version: '2.5.0', latest_version: null })
  await command(`home/app/${PUMP}/cmd/disable`)
  await untilShown({ state: 'stopped', enabled: false })
  expect(pid()).toBeUndefined()
  await command(`home/app/${PUMP}/cmd/uninstall`, JSON.stringify({ confirm: PUMP }))
  await until('its topic to be cleared', () => world.observer.last(`hub2mqtt/home/app/${PUMP}`) === '')
})
