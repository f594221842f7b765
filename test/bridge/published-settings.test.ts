/** Tests which values of published settings the bridge holds, without a broker. */
import pino from 'pino'
import { expect, test } from 'vitest'
import { rowTable } from '../../src/bridge/owner-rows.ts'
import { PublishedSettings } from '../../src/bridge/published-settings.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createTopics } from '../../src/contract/topics.ts'
import { asked, emulate, hold, listed } from '../hub/support.ts'
import { until } from '../support/until.ts'

const APP = 'com.example.app'
/** The bridge reads this app last, so a new value of its setting shows that all other settings were read. */
const LAST = 'com.example.last'
const FILE = `settings: { publish: { ${APP}: { fine: switch, odd: text, missing: text }, ${LAST}: { reads: text } } }`
const DEEP = JSON.parse('['.repeat(70) + ']'.repeat(70))
const LARGE = 'x'.repeat(65 * 1024)

async function open(values: Record<string, unknown>) {
  const keys = { key: ['hub.app'], other: ['hub.app'] }
  const emulated = await emulate({ flavour: 'older', keys, apps: [{ id: APP, settings: values }, { id: LAST }] })
  const watched = hold(emulated.url, { realtime: false })
  await listed(watched)
  const { hub } = watched
  const held = new Map<string, string | null>()
  const warnings: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void warnings.push(line) })
  const link = {
    hold: (topic: string, payload: string | null) => void held.set(topic.split('/').at(-1) ?? '', payload),
  }
  const table = rowTable(createTopics('b'), link, log, () => true)
  const value = loadConfig({ env: {}, file: 'x.yaml', readFile: () => FILE, requireHub: false }).config
  const settings = new PublishedSettings('home', hub, { live: { value }, table, log })
  const set = async (name: string, json: unknown, app = APP) => {
    const path = `/api/manager/apps/app/${app}/setting/${name}`
    const headers = { authorization: 'Bearer other', 'content-type': 'application/json' }
    const body = JSON.stringify({ value: json })
    expect((await fetch(emulated.url + path, { method: 'PUT', headers, body })).status).toBe(200)
  }
  let reads = 0
  /** Lets the bridge read all settings. Resolves to those of the app that it holds. */
  const read = async () => {
    reads += 1
    await set('reads', reads, LAST)
    settings.refresh()
    await until('the last app', () => held.get('reads') === String(reads))
    return Object.fromEntries([...held].filter(([name, payload]) => name !== 'reads' && payload !== null))
  }
  return { emulated, hub, settings, warnings, set, read }
}

test('a setting that cannot be read keeps its value, does not affect others of its app, and is logged once until it changes', async () => {
  const { settings, warnings, set, read } = await open({ fine: true, odd: 'a' })
  expect(await read()).toEqual({ fine: 'true', odd: '"a"' })
  await set('odd', DEEP)
  await set('fine', false)
  for (let times = 0; times < 2; times += 1) expect(await read()).toEqual({ fine: 'false', odd: '"a"' })
  expect([settings.failures, warnings]).toEqual([1, [expect.stringContaining('cannot be read')]])
  await set('odd', 'b')
  expect(await read()).toEqual({ fine: 'false', odd: '"b"' })
  expect(settings.failures).toBe(0)
  await set('odd', DEEP)
  await read()
  expect(warnings).toHaveLength(2)
})

test('a setting that cannot be read and is not published does not affect published ones', async () => {
  const { settings, warnings, read } = await open({ fine: true, other: DEEP })
  expect(await read()).toEqual({ fine: 'true' })
  expect([settings.failures, warnings]).toEqual([0, []])
})

test('settings that the key may no longer read keep their values and are reported, until it may again', async () => {
  const { emulated, hub, settings, warnings, set, read } = await open({ fine: true, odd: 'a' })
  await read()
  emulated.setKeys({ key: ['hub.app.readonly'], other: ['hub.app'] })
  await hub.refresh()
  settings.refresh()
  await until('the failures', () => settings.failures === 4)
  expect(warnings.filter((line) => line.includes('the API key lacks hub.app.control'))).toHaveLength(4)
  emulated.setKeys({ key: ['hub.app'], other: ['hub.app'] })
  await hub.refresh()
  await set('odd', 'b')
  expect(await read()).toEqual({ fine: 'true', odd: '"b"' })
  expect(settings.failures).toBe(0)
})

test('a setting that is too large is cleared and logged once, until it is smaller', async () => {
  const { settings, warnings, set, read } = await open({ fine: true, odd: LARGE })
  expect(await read()).toEqual({ fine: 'true' })
  await set('odd', `${LARGE}.`)
  expect(await read()).toEqual({ fine: 'true' })
  expect([settings.failures, warnings]).toEqual([1, [expect.stringContaining('too large to be published')]])
  await set('odd', 'small')
  expect(await read()).toEqual({ fine: 'true', odd: '"small"' })
  expect(settings.failures).toBe(0)
  await set('odd', LARGE)
  expect(await read()).toEqual({ fine: 'true' })
  expect(warnings).toHaveLength(2)
})

test('settings are not read one by one, nor reported, while the hub postpones reads', async () => {
  const { emulated, settings, warnings } = await open({ fine: true })
  emulated.behave('answer-status', { operation: 'getAppSettings', status: 429 })
  settings.refresh()
  await until('both apps', () => asked(emulated, 'getAppSettings') === 2)
  settings.refresh()
  await until('another read', () => asked(emulated, 'getAppSettings') === 3)
  expect([asked(emulated, 'getAppSetting'), settings.failures, warnings]).toEqual([0, 0, []])
})
