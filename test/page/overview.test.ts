import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { DEFAULT_APPS } from '../../src/emulator/population.ts'
import { until } from '../support/until.ts'
import { canBrowse, expectAccessible, overflow, see, seeAny } from './support/browser.ts'
import { asked, rowWith, show } from './support/house.ts'

const DOORBELL = 'nl.vandermolen.doorbell'
const SCOPES = ['hub.app', 'hub.system.readonly']
const GUARD = { guard: { watch: ['*'], backoff: '10m', backoff_max: '10m' } }

const overview = (page: Page) => page.getByRole('region', { name: 'Overview' })
const figure = (page: Page, name: RegExp) => overview(page).getByRole('button', { name })
const listed = (page: Page, count: number) =>
  until(`${count} apps`, async () => (await page.locator('tr.app').count()) === count)

describe.runIf(canBrowse)('the overview', () => {
  test('counts the apps, first those that need attention, and each figure filters the list', async () => {
    const { house, page } = await show()
    await figure(page, /^Needs attention 1$/).waitFor()
    expect(await overview(page).getByRole('button').allInnerTexts()).toEqual(
      ['Needs attention\n1', 'All\n8', 'Crashed\n1', 'Given up\n0', 'Stopped\n1', 'Updates\n1'].map((text) =>
        expect.stringMatching(new RegExp(`^${text.replace('\n', '\\s+')}$`)),
      ),
    )
    await figure(page, /^Needs attention/).click()
    await listed(page, 1)
    await rowWith(page, 'Doorbell').waitFor()
    // Each count is a button that filters the list. A second click shows all apps again.
    await figure(page, /^Needs attention/).click()
    await listed(page, 8)
    house.hub().crash('com.athom.hue', 'Error: the lamp is dark')
    await figure(page, /^Needs attention 2$/).waitFor()
    await expectAccessible(page)
  })

  test('shows the health of the machine of the hub, and marks its last figures while it is offline, here and on the page of the bridge', async () => {
    const { house, page } = await show({ scopes: SCOPES })
    const machine = overview(page).getByRole('listitem')
    await machine.getByText(/^Memory of apps [\d.]+ MB of [\d.]+ [GM]B$/).waitFor()
    await machine.getByText(/^Load [\d.]+$/).waitFor()
    await machine.getByText('Temperature 50°C').waitFor()
    await machine.getByText(/^Storage [\d.]+ [GT]B free of [\d.]+ [GT]B$/).waitFor()
    await house.hub().close()
    await machine.getByText('offline').waitFor()
    await machine.getByText('last known figures').waitFor()
    await machine.getByText(/^Memory of apps/).waitFor()
    await expectAccessible(page)
    await page.goto(`${house.page}#/bridge`)
    const card = page.getByRole('region', { name: 'Hub home' })
    await card.getByRole('heading', { name: /^Health, as of \d\d:\d\d:\d\d$/ }).waitFor()
    await card.getByText('Storage').waitFor()
  })

  test('shows a hub with a weak power supply first, at most four of many hubs, and none without figures', async () => {
    const names = ['attic', 'barn', 'cabin', 'garage', 'home', 'loft']
    const hubs = Object.fromEntries(names.map((name) => [name, { apps: DEFAULT_APPS.slice(0, 1) }]))
    const { house, page } = await show({ hubs, scopes: SCOPES })
    await overview(page).getByText('2 more hubs').waitFor()
    house.hub('loft').behave('other-fields', { operation: 'getInfo', set: { videoCoreUndervoltageNow: true } })
    await house.restart()
    await page.reload()
    const first = overview(page).getByRole('listitem').first()
    await first.filter({ hasText: 'loft' }).getByText('Power supply too weak').waitFor()
    expect(await overview(page).getByRole('listitem').count()).toBe(5)
    for (const width of [360, 768, 1440]) {
      await page.setViewportSize({ width, height: 900 })
      expect(await overflow(page), `${width} px`).toBeLessThanOrEqual(0)
      await expectAccessible(page)
    }
  })

  test('is hidden without apps', async () => {
    const { page } = await show({ hubs: { home: { apps: [] } } })
    await page.getByText('There are no apps yet').waitFor()
    expect(await overview(page).getByRole('button').count()).toBe(0)
    expect(await overview(page).innerText()).toBe('')
    await expectAccessible(page)
  })
})

describe.runIf(canBrowse)('the guardian in the list', () => {
  test('is shown as an icon with words, or in its own column, which sorts', async () => {
    const { page } = await show({ config: GUARD }, { width: 1280 })
    const waiting = /Guardian: waiting before the next restart, next try \d\d:\d\d:\d\d/
    await rowWith(page, 'Doorbell').getByText(waiting).waitFor()
    await rowWith(page, 'Lumen Lights').getByText('Guardian: watching').waitFor()
    expect(await page.getByRole('columnheader', { name: 'Guardian' }).count()).toBe(0)
    await page.setViewportSize({ width: 1440, height: 900 })
    await rowWith(page, 'Doorbell').getByText('Waiting', { exact: true }).waitFor()
    await see(rowWith(page, 'Doorbell'), /^next try \d\d:\d\d:\d\d$/)
    await page.getByRole('columnheader', { name: 'Guardian' }).getByRole('button').click()
    await page.locator('tr.app').first().getByText('Doorbell').first().waitFor()
    await expectAccessible(page)
  })

  test('is snoozed and resumed from the menu of an app, and resets only after a question', async () => {
    const { page } = await show({ config: GUARD }, { width: 1440 })
    const row = rowWith(page, 'Doorbell')
    const choose = async (name: string | RegExp) => {
      await row.getByRole('button', { name: 'More for Doorbell' }).click()
      await page.getByRole('menuitem', { name }).click()
    }
    await choose(/^Snooze until tomorrow, 08:00$/)
    await row.getByText('Snoozed').waitFor()
    await row.getByText(/^until .*08:00:0\d$/).waitFor()
    await choose('Snooze for 8 hours')
    await row.getByText(/^until .*08:00:0\d$/).waitFor({ state: 'detached' })
    await row.getByText(/^until /).waitFor()
    await choose('Watch again')
    await row.getByText('Waiting').waitFor()
    const posts: string[] = []
    page.on('request', (request) => {
      if (request.method() === 'POST') posts.push(request.postData() ?? '')
    })
    await choose('Clear history and counts')
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    expect(posts).toEqual([])
    await choose('Clear history and counts')
    await page.getByRole('dialog').getByRole('button', { name: 'Clear history and counts' }).click()
    await seeAny(page, /Doorbell – Guardian: done/)
    expect(posts).toEqual(['{"forget":true}'])
  })

  test('that has given up on an app has a figure, and shows when it tries again', async () => {
    const config = { guard: { watch: ['*'], backoff: '1s', backoff_max: '1s', max_restarts: 1 } }
    const { house, page } = await show({ config }, { width: 1440 })
    await until('the restart', () => asked(house, `/app/${DOORBELL}/restart`).length === 1)
    await rowWith(page, 'Doorbell').getByText('Running').waitFor()
    house.hub().crash(DOORBELL, 'Error: again')
    await figure(page, /^Given up 1$/).click()
    await listed(page, 1)
    await rowWith(page, 'Doorbell').getByText('Given up').waitFor()
    await see(rowWith(page, 'Doorbell'), /^next try /)
    await figure(page, /^Needs attention 1$/).waitFor()
  })
})
