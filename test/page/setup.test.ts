import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { BridgeProcess } from '../support/bridge-process.ts'
import { Mosquitto } from '../support/brokers.ts'
import { freePort } from '../support/ports.ts'
import { canBrowse, expectAccessible, overflow, picture, type View, visit } from './support/browser.ts'

const KEY = 'key-of-the-hub'

async function start(named: boolean) {
  const open = new AsyncDisposableStack()
  onTestFinished(() => open.disposeAsync())
  const hub = open.use(await EmulatedHub.start({ keys: { [KEY]: ['hub.app'] } }))
  const broker = open.use(await Mosquitto.start({ users: { bridge: 'right' } }))
  const { path } = open.use(await mkdtempDisposable(join(tmpdir(), 'setup-')))
  const port = await freePort()
  const file = named ? { config: join(path, 'hub2mqtt.yaml') } : {}
  const daemon = open.use(new BridgeProcess({ ...file, env: { HUB2MQTT_HTTP_PORT: String(port) } }))
  return { hub, broker, url: await daemon.page(), open: `http://127.0.0.1:${port}/` }
}

describe.runIf(canBrowse)('the setup page', () => {
  test('leads from two addresses and a key to the apps', async () => {
    const { hub, broker, url } = await start(true)
    const page = await visit(url)
    await page.getByText('Looking for hubs').waitFor({ state: 'detached' })
    await page.getByText('and starts immediately').waitFor()
    await page.getByLabel('Address of the hub').fill(hub.url)
    await page.getByLabel('API key').fill('wrong')
    await page.getByRole('button', { name: 'Test the hub' }).click()
    await page.getByText('the hub does not accept the API key').waitFor()
    await page.getByLabel('API key').fill(KEY)
    await page.getByRole('button', { name: 'Test the hub' }).click()
    await page.getByText('the API key is accepted').waitFor()
    await page.getByLabel('Use an existing broker').check()
    await page.getByLabel('Address of the broker').fill(broker.url)
    await page.getByLabel('User name').fill('bridge')
    await page.getByLabel('Password').fill('wrong')
    await page.getByRole('button', { name: 'Test the broker' }).click()
    await page.getByText('check mqtt.username').waitFor()
    await page.getByLabel('Password').fill('right')
    await page.getByRole('button', { name: 'Test the broker' }).click()
    await page.getByText(/connected to mqtt:/).waitFor()
    await page.getByRole('button', { name: 'Save and start' }).click()
    await page.getByText(/^Written to /).waitFor()
    expect(await page.getByText(KEY).count()).toBe(0)
    await page.getByRole('button', { name: 'Go to the apps' }).click()
    await page.getByRole('row').filter({ hasText: 'Lumen Lights' }).getByText('Running').waitFor()
  })

  test('accepts an address without http://, and shows the result of a test only as long as the fields are unchanged', async () => {
    const { hub, url } = await start(true)
    const page = await visit(url)
    await page.getByText('Looking for hubs').waitFor({ state: 'detached' })
    await page.getByLabel('Address of the hub').fill(new URL(hub.url).host)
    await page.getByLabel('API key').fill('wrong')
    await page.getByRole('button', { name: 'Test the hub' }).click()
    await page.getByText('the hub does not accept the API key').waitFor()
    await page.getByLabel('API key').fill(KEY)
    await page.getByText('the hub does not accept the API key').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Test the hub' }).click()
    await page.getByText('the API key is accepted').waitFor()
    await page.getByRole('button', { name: 'Save and start' }).click()
    await page.getByText(/^Written to /).waitFor()
    await page.getByText(`url: ${hub.url}`).waitFor()
  })

  test('is for the user who started hub2mqtt: others see how to get access', async () => {
    const { open } = await start(true)
    const page = await visit(open)
    await page.getByText('open the address that hub2mqtt printed').waitFor()
    expect(await page.getByRole('textbox').count()).toBe(0)
    await expectAccessible(page)
  })

  test('explains what to do if there is no file to write', async () => {
    const { hub, url } = await start(false)
    const page = await visit(url)
    await page.getByText('cannot write the configuration').waitFor()
    await page.getByLabel('Address of the hub').fill(hub.url)
    await page.getByLabel('API key').fill(KEY)
    await page.getByRole('button', { name: 'Save and start' }).click()
    await page.getByText(`HUB2MQTT_HUB_URL=${hub.url}`).waitFor()
    await page.getByText('Then restart hub2mqtt').waitFor()
    await expectAccessible(page)
  })

  test.each<[string, View]>([
    ['wide, light', { width: 1280, height: 860 }],
    ['narrow, dark', { width: 360, height: 740, theme: 'dark' }],
  ])('is accessible: %s', async (name, view) => {
    const { url } = await start(true)
    const page = await visit(url, view)
    await page.getByText('and starts immediately').waitFor()
    await expectAccessible(page)
    expect(await overflow(page)).toBeLessThanOrEqual(0)
    await picture(page, `setup ${name}`, true)
  })
})
