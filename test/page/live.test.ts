import { describe, expect, onTestFinished, test } from 'vitest'
import { BridgeProcess } from '../support/bridge-process.ts'
import { HttpGateway } from '../support/http-gateway.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { canBrowse, profile, see, seeAny, visit } from './support/browser.ts'
import { rowWith, show, startHouse } from './support/house.ts'

describe.runIf(canBrowse)('the live channel', () => {
  test('shows when the data is out of date, and reconnects', async () => {
    const { house, page } = await show()
    await page.getByText('Live', { exact: true }).waitFor()
    await house.daemon.stop()
    await see(page.getByRole('alert'), /may be out of date/)
    const row = rowWith(page, 'Lumen Lights')
    await row.getByRole('button', { name: /There is no connection/ }).waitFor()
    house.hub().uninstall('com.parkstreet.weather')
    await house.start()
    await page.getByText('Live', { exact: true }).waitFor()
    await rowWith(page, 'Backyard Weather').waitFor({ state: 'detached' })
    await row.getByText('Running').waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
  })

  test('reconnects if a proxy answers while the daemon is offline', async () => {
    const { house, page } = await show()
    await page.getByText('Live', { exact: true }).waitFor()
    const row = rowWith(page, 'Lumen Lights')
    await page.route('**/api/commands/**', (route) => route.fulfill({ status: 504, body: '<h1>504</h1>' }))
    await row.getByRole('button', { name: 'Restart Lumen Lights' }).click()
    await row.getByText('Restart: A proxy answered instead of hub2mqtt, with status 504.').waitFor()
    await page.route('**/api/commands/**', (route) => route.fulfill({ status: 403, body: '<h1>Forbidden</h1>' }))
    await row.getByRole('button', { name: 'Restart Lumen Lights' }).click()
    await row.getByText('Restart: hub2mqtt or a proxy answered with status 403.').waitFor()
    let refused = 0
    await page.route('**/api/session', async (route) => {
      refused += 1
      await route.fulfill({ status: 502, body: '<h1>502 Bad Gateway</h1>' })
    })
    await house.daemon.stop()
    await until('two answers of the proxy', () => refused >= 2)
    await house.start()
    await page.getByText('Live', { exact: true }).waitFor()
    await rowWith(page, 'Lumen Lights').waitFor()
    // The page must also show the status if this is the first answer that it gets.
    await page.reload()
    await page.getByText('A proxy answered instead of hub2mqtt, with status 502.').waitFor()
    await page.unroute('**/api/session')
    await page.getByText('Live', { exact: true }).waitFor()
  })

  test('tries again if a connection has become silent', async () => {
    const { house, page } = await show()
    await page.getByText('Live', { exact: true }).waitFor()
    // The browser sends the first request over a connection that it does not yet know to be dead.
    let requests = 0
    await page.route('**/api/session', (route) => {
      requests += 1
      return requests === 1 ? undefined : route.continue()
    })
    await house.daemon.stop()
    await until('the request without an answer', () => requests === 1)
    await house.start()
    await page.getByText('Live', { exact: true }).waitFor()
  })

  test('waits a minute for the snapshot, which can take long over a slow link', async () => {
    const house = await startHouse()
    const context = await profile()
    onTestFinished(() => context.close())
    await context.clock.install()
    const late = Promise.withResolvers<void>()
    let connections = 0
    let held = 0
    await context.routeWebSocket(/api\/live/, (socket) => {
      connections += 1
      socket.connectToServer().onMessage((message) => {
        held += 1
        void late.promise.then(() => socket.send(message))
      })
    })
    const page = await visit(house.page, {}, context)
    await until('the snapshot', () => held > 0)
    await page.getByText('Loading…').waitFor()
    await context.clock.fastForward(50_000)
    expect(await page.getByRole('alert').allInnerTexts()).toEqual([])
    late.resolve()
    await rowWith(page, 'Lumen Lights').waitFor()
    expect(connections).toBe(1)
  })

  test('shows when another bridge is active', async () => {
    const house = await startHouse()
    const port = await freePort()
    await using second = new BridgeProcess({
      env: {
        HUB2MQTT_HUB_URL: house.hub().url,
        HUB2MQTT_HUB_API_KEY: 'key-of-the-house',
        HUB2MQTT_MQTT_URL: house.broker.url,
        HUB2MQTT_HTTP_PORT: String(port),
      },
    })
    await second.untilPort(port)
    const page = await visit(`http://127.0.0.1:${port}/`)
    await page.getByText(/This one is on standby and accepts no commands/).waitFor()
  })

  test('works below the prefix of a reverse proxy', async () => {
    const house = await startHouse()
    await using proxy = await HttpGateway.to(house.port, '/home/hub2mqtt')
    const page = await visit(`http://127.0.0.1:${proxy.port}/home/hub2mqtt/${new URL(house.page).search}`)
    await rowWith(page, 'Lumen Lights').getByText('Running').waitFor()
    await page.getByRole('button', { name: 'Restart Lumen Lights' }).click()
    await seeAny(page, /Restart: done in/)
  })
})
