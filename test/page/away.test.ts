import { once } from 'node:events'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { DEFAULT_APPS } from '../../src/emulator/population.ts'
import { canBrowse, expectAccessible, seeAny, visit } from './support/browser.ts'
import { type HouseOptions, rowWith, show, startHouse } from './support/house.ts'

const HUE = 'com.athom.hue'

const start = (options?: HouseOptions, hash = '') => show(options, { hash })

const banner = (page: Page, text: string | RegExp) => page.getByRole('status').filter({ hasText: text })
const colourOf = (page: Page, selector: string, property = 'color') =>
  page.evaluate<string>(`getComputedStyle(document.querySelector(${JSON.stringify(selector)})).${property}`)
const SINCE = /since \d\d:\d\d:\d\d: it cannot be reached/

describe.runIf(canBrowse)('while the only hub is offline', () => {
  test('the list shows the reason and the time, dims the figures, and claims no state', async () => {
    const { house, page } = await start()
    await rowWith(page, 'Lumen Lights').getByText('Running').waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    const colour = await colourOf(page, 'tr.app .figure')
    const dot = () => colourOf(page, '.live .dot', 'backgroundColor')
    const green = await dot()
    await house.hub().close()
    await banner(page, 'The hub home is offline').filter({ hasText: SINCE }).waitFor()
    for (const { name = '' } of DEFAULT_APPS) {
      await rowWith(page, name).locator('.badge').getByText('unknown', { exact: true }).waitFor()
    }
    expect(
      await page
        .locator('tr.app .badge')
        .filter({ hasText: /Running|Crashed|Stopped/ })
        .count(),
    ).toBe(0)
    await rowWith(page, 'Lumen Lights').getByText('Last seen: Running').waitFor()
    await rowWith(page, 'Doorbell').getByText('Last seen: Crashed').waitFor()
    expect(await colourOf(page, 'tr.app .figure')).not.toBe(colour)
    expect(await page.getByText('Live', { exact: true }).count()).toBe(0)
    await page.getByText('Hub offline', { exact: true }).waitFor()
    expect(await dot()).not.toBe(green)
    await expectAccessible(page)
  })

  test('the page of an app does the same, until the hub is online again', async () => {
    const { house, page } = await start(undefined, `#/app/home/${HUE}`)
    const title = page.locator('.app-head')
    await title.getByText('Running').waitFor()
    const error = { code: 'hub_unreachable', message: 'The hub is offline or did not answer.' }
    await page.route('**/api/commands/**', (route) => route.fulfill({ status: 503, json: { error } }))
    await title.getByRole('button', { name: 'Restart' }).click()
    await title.getByText(error.message).waitFor()
    house.hub().behave('reset-before-executing')
    house.hub().dropRealtime('cut')
    await banner(page, 'The hub home is offline').filter({ hasText: SINCE }).waitFor()
    await title.getByText('unknown', { exact: true }).waitFor()
    await title.getByText('Last seen: Running').waitFor()
    house.hub().behaveWell()
    await title.getByText('Running', { exact: true }).waitFor()
    await title.getByText(error.message).waitFor({ state: 'detached', timeout: 5_000 })
    await banner(page, 'The hub home is offline').waitFor({ state: 'detached' })
    await page.getByText('Live', { exact: true }).waitFor()
  })
})

describe.runIf(canBrowse)('while some hubs are offline', () => {
  test('a narrow screen shows that a hub with the longest name is offline', async () => {
    const far = 'a-cabin-far-away-in-the-woods-02'
    const { house, page } = await show({ hubs: { home: {}, [far]: { apps: [] } } }, { width: 320 })
    const heading = page.locator('tr.hub').filter({ hasText: far })
    await house.hub(far).close()
    const box = await heading.getByText('offline', { exact: true }).boundingBox()
    expect((box?.x ?? 0) + (box?.width ?? 320)).toBeLessThan(320)
    const reason = await heading.getByText(SINCE).boundingBox()
    expect((reason?.x ?? 0) + (reason?.width ?? 320)).toBeLessThan(320)
  })

  const cabin = DEFAULT_APPS.slice(0, 3).map((app) => ({ ...app, name: `${app.name} of the cabin` }))

  test('each heading has the state of its hub, and only the apps of that hub are unknown', async () => {
    const { house, page } = await start({ hubs: { home: {}, cabin: { apps: cabin } } })
    const heading = (name: string) => page.locator('tr.hub').filter({ hasText: name })
    await heading('cabin').getByText('online').waitFor()
    await house.hub('cabin').close()
    await heading('cabin').getByText('offline').waitFor()
    await heading('cabin').getByText(SINCE).waitFor()
    await heading('home').getByText('online').waitFor()
    await rowWith(page, 'Lumen Lights of the cabin').getByText('unknown', { exact: true }).waitFor()
    await page.locator('tr.app:not(.away)').filter({ hasText: 'Lumen Lights' }).getByText('Running').waitFor()
    await banner(page, '1 hub is offline: cabin since').waitFor()
    await page.getByRole('checkbox', { name: 'By hub' }).uncheck()
    await banner(page, SINCE).waitFor()
    await house.hub('home').close()
    await banner(page, '2 hubs are offline: cabin since').filter({ hasText: '; home since' }).waitFor()
  })
})

test.runIf(canBrowse)(
  'while the broker is offline, the page shows the reason and the time, follows the hub, and does not claim that it publishes',
  async () => {
    const { house, page } = await start()
    await rowWith(page, 'Lumen Lights').getByText('Running').waitFor()
    await house.broker.stop()
    await banner(page, 'The bridge has no connection to the MQTT broker since').filter({ hasText: SINCE }).waitFor()
    house.hub().crash(HUE, 'Error: the lamp is dark')
    await rowWith(page, 'Lumen Lights').getByText('Error: the lamp is dark').waitFor()
    await expectAccessible(page)
    await page.goto(`${house.page}#/bridge`)
    const broker = page.getByRole('region', { name: 'MQTT broker' })
    await broker.getByText('it cannot be reached').waitFor()
    await broker.getByText('there is no connection').waitFor()
    expect(await broker.getByText('works').count()).toBe(0)
    await seeAny(page, /the MQTT broker is not connected/)
    await house.broker.run()
    await broker.getByText('works').waitFor()
    await banner(page, 'no connection to the MQTT broker').waitFor({ state: 'detached' })
  },
)

describe.runIf(canBrowse)('while the live channel cannot be opened', () => {
  test('the page says so from the start, and shows the apps when it can', async () => {
    const house = await startHouse()
    const others = Array.from({ length: 16 }, () => new WebSocket(`${house.url.replace('http', 'ws')}api/live`))
    await Promise.all(others.map((other) => once(other, 'open')))
    const page = await visit(house.url)
    await page.getByRole('alert').filter({ hasText: 'At most 16 pages can be open' }).waitFor()
    await page.getByText('Not live', { exact: true }).waitFor()
    for (const other of others) other.terminate()
    const state = rowWith(page, 'Lumen Lights').getByText('Running')
    // The page may connect by itself before the click.
    await Promise.race([page.getByRole('button', { name: 'Try now' }).click(), state.waitFor()])
    await state.waitFor()
    await page.getByRole('alert').filter({ hasText: 'At most 16 pages' }).waitFor({ state: 'detached' })
  })
})
