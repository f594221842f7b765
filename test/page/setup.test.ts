import type { Page } from 'playwright-core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { variables } from '../support/bridge.ts'
import { BridgeProcess } from '../support/bridge-process.ts'
import { Mosquitto } from '../support/brokers.ts'
import { begin, emulate, KEY } from '../web/setup/house.ts'
import { canBrowse, expectAccessible, visit } from './support/browser.ts'

/** Starts a daemon without a configuration, in a separate process. */
async function start() {
  const { daemon, port } = await begin()
  return { url: await daemon.page(), open: `http://127.0.0.1:${port}/` }
}

describe.runIf(canBrowse)('the setup page', () => {
  test('leads from two addresses, with or without http://, and a key to the apps, and shows the result of a test only as long as the fields are unchanged', async () => {
    await using broker = await Mosquitto.start({ users: { bridge: 'right' } })
    const hub = await emulate()
    const { url } = await start()
    const page = await visit(url)
    await page.getByText('and starts immediately').waitFor()
    await page.getByLabel('Address of the hub').fill(new URL(hub.url).host)
    await page.getByLabel('API key').fill('wrong')
    await page.getByRole('button', { name: 'Test the hub' }).click()
    await page.getByText('the hub does not accept the API key').waitFor()
    await page.getByLabel('API key').fill(KEY)
    await page.getByText('the hub does not accept the API key').waitFor({ state: 'detached' })
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
    await page.getByText(`url: ${hub.url}`).waitFor()
    expect(await page.getByText(KEY).count()).toBe(0)
    await page.getByRole('button', { name: 'Go to the apps' }).click()
    await page.getByRole('row').filter({ hasText: 'Lumen Lights' }).getByText('Running').waitFor()
  })

  test.each([
    ['has not answered', undefined],
    ['has failed', { status: 500, json: { error: { code: 'failed', message: 'It failed.' } } }],
  ])(
    'never replaces a configured broker that it does not know: while the request for it %s, nothing can be saved',
    async (_, failure) => {
      const address = 'mqtt://127.0.0.1:1'
      const { daemon, ask } = await begin({ file: `mqtt: { url: "${address}", username: me, password: secret-one }\n` })
      const { promise: held, resolve: release } = Promise.withResolvers<void>()
      const prepare = (page: Page) =>
        page.route('**/api/setup', async (route) => {
          if (failure !== undefined) return await route.fulfill(failure)
          await held
          await route.continue()
        })
      const page = await visit(await daemon.page(), { prepare })
      await page.getByLabel('Address of the hub').fill('http://127.0.0.1:1')
      await page.getByLabel('API key').fill(KEY)
      const reason = failure === undefined ? 'Looking for hubs in your network' : 'It failed.'
      const save = page.getByRole('button', { name: `Save and start (${reason}` })
      await save.click({ force: true })
      await save.waitFor()
      expect(await page.getByLabel('Use an existing broker').count()).toBe(0)
      expect((await ask('api/session')).answer).toMatchObject({ setup: true })
      release()
      if (failure !== undefined) return
      await page.getByRole('button', { name: 'Save and start', exact: true }).waitFor()
      expect(await page.getByLabel('Address of the broker').inputValue()).toBe(address)
    },
  )

  test('is for the user who started hub2mqtt: others see how to get access', async () => {
    const { open } = await start()
    const page = await visit(open)
    await page.getByText('open the address that hub2mqtt printed').waitFor()
    expect(await page.getByRole('textbox').count()).toBe(0)
    await expectAccessible(page)
  })

  test('explains what to do if there is no file to write, keeps that in view during the restart, and then opens the apps', async () => {
    const hub = await emulate()
    const { daemon, request } = await begin({ file: null })
    const page = await visit(await daemon.page())
    await page.getByText('cannot write the configuration').waitFor()
    await page.getByLabel('Address of the hub').fill(hub.url)
    await page.getByLabel('API key').fill(KEY)
    await page.getByRole('button', { name: 'Save and start' }).click()
    await page.getByText(`HUB2MQTT_HUB_URL=${hub.url}`).waitFor()
    await page.getByText('Then restart hub2mqtt').waitFor()
    await expectAccessible(page)
    await daemon.stop()
    await page.waitForEvent('requestfailed', (failed) => failed.url().endsWith('/api/session'))
    await page.getByText('Then restart hub2mqtt').waitFor()
    const next = new BridgeProcess({ env: { ...request.env, ...variables({ HUB_URL: hub.url, HUB_API_KEY: KEY }) } })
    onTestFinished(() => next.stop())
    await page.getByRole('row').filter({ hasText: 'Lumen Lights' }).getByText('Running').waitFor()
  })
})
