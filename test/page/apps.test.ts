import { describe, expect, test } from 'vitest'
import { DEFAULT_APPS } from '../../src/emulator/population.ts'
import { until } from '../support/until.ts'
import { canBrowse, see } from './support/browser.ts'
import { asked, rowWith, show } from './support/house.ts'

const HUE = 'com.athom.hue'
const BLINDS = 'io.bramblewood.blinds'

describe.runIf(canBrowse)('the list of apps', () => {
  test('closes the menu of an app that is removed', async () => {
    const { house, page } = await show()
    await page.getByRole('button', { name: 'More for Backyard Weather' }).click()
    await page.getByRole('menu').waitFor()
    house.hub().uninstall('com.parkstreet.weather')
    await rowWith(page, 'Backyard Weather').waitFor({ state: 'detached' })
    await page.getByRole('menu').waitFor({ state: 'detached' })
  })

  test('shows every app with state, version and usage, and follows the hub', async () => {
    const { house, page } = await show()
    for (const { name = '' } of DEFAULT_APPS) await rowWith(page, name).waitFor()
    await rowWith(page, 'Lumen Lights').getByText('Running').waitFor()
    await rowWith(page, 'Lumen Lights').getByText('7.0.12').waitFor()
    await see(rowWith(page, 'Lumen Lights'), /61\.3 MB/)
    await rowWith(page, 'Doorbell').getByText('Error: connect EHOSTUNREACH 192.0.2.77:554').waitFor()
    await rowWith(page, 'Heat Pump').getByText('→ 2.5.0').waitFor()
    house.hub().crash(HUE, 'Error: the lamp is dark')
    await rowWith(page, 'Lumen Lights').getByText('Error: the lamp is dark').waitFor()
    house.hub().uninstall(HUE)
    await rowWith(page, 'Lumen Lights').waitFor({ state: 'detached' })
    house.hub().install({ id: 'org.fresh', name: 'Fresh Air', version: '1.0.0' })
    await rowWith(page, 'Fresh Air').waitFor()
  })

  test('shows why a command failed, in the row and as a notice', async () => {
    const { house, page } = await show()
    house.hub().behave('answer-status', { operation: 'restartApp', status: 500 })
    await rowWith(page, 'Lumen Lights').getByRole('button', { name: 'Restart Lumen Lights' }).click()
    await see(page.getByRole('alert'), /Lumen Lights – Restart: /)
    await see(rowWith(page, 'Lumen Lights'), /Restart: /)
  })

  test('asks before it disables an app, and does nothing without a confirmation', async () => {
    const { house, page } = await show()
    await rowWith(page, 'Lumen Lights').getByRole('switch').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await rowWith(page, 'Lumen Lights').getByRole('switch').click()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(asked(house, `/app/${HUE}/disable`)).toHaveLength(0)
    await rowWith(page, 'Lumen Lights').getByRole('switch').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click()
    await rowWith(page, 'Lumen Lights').getByRole('switch', { checked: false }).waitFor()
    expect(house.hub().apps.get(HUE)?.enabled).toBe(false)
    // Enabling an app needs no confirmation.
    await rowWith(page, 'Bramblewood Blinds').getByRole('switch').click()
    await rowWith(page, 'Bramblewood Blinds').getByRole('switch', { checked: true }).waitFor()
    expect(house.hub().apps.get(BLINDS)?.enabled).toBe(true)
  })

  test('ends a question when the user leaves its view, and keeps the focus after a confirmed one', async () => {
    const { house, page } = await show()
    await rowWith(page, 'Lumen Lights').getByRole('link').click()
    await page.getByRole('button', { name: 'Disable', exact: true }).click()
    await page.getByRole('dialog').waitFor()
    await page.goBack()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(asked(house, `/app/${HUE}/disable`)).toHaveLength(0)
    const enabled = rowWith(page, 'Lumen Lights').getByRole('switch')
    await enabled.press('Space')
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).press('Enter')
    await rowWith(page, 'Lumen Lights').getByRole('switch', { checked: false }).waitFor()
    expect(await enabled.evaluate((button) => button.matches(':focus'))).toBe(true)
  })

  test('keeps the focus in the page when the app with the focused button is uninstalled', async () => {
    const { house, page } = await show({ config: { commands: { allow: ['uninstall'] } } })
    const focused = () => page.evaluate<string>('document.activeElement.id')
    const uninstall = () => page.getByRole('dialog').getByRole('button', { name: 'Uninstall' }).press('Enter')
    await rowWith(page, 'Lumen Lights').getByRole('button', { name: 'More for Lumen Lights' }).press('Enter')
    await page.getByRole('menuitem', { name: 'Uninstall' }).press('Enter')
    await uninstall()
    await rowWith(page, 'Lumen Lights').waitFor({ state: 'detached' })
    await until('the focus in the list', async () => (await focused()) === 'content')
    expect(house.hub().apps.has(HUE)).toBe(false)
    await rowWith(page, 'Heat Pump').getByRole('link').press('Enter')
    const isOnHeading = () => page.evaluate<boolean>(`document.activeElement.matches('h1')`)
    await until('the focus on the heading', isOnHeading)
    await page.getByRole('button', { name: 'Uninstall', exact: true }).press('Enter')
    await uninstall()
    await page.getByText(/There is no app/).waitFor()
    await until('the focus in the page', async () => (await focused()) === 'content')
  })

  test('shows why actions that the configuration refuses are not possible', async () => {
    const { house, page } = await show()
    await rowWith(page, 'Lumen Lights').getByRole('button', { name: 'More for Lumen Lights' }).click()
    const uninstall = page.getByRole('menuitem', { name: /Uninstall/ })
    await uninstall.getByText(/commands\.allow names uninstall/).waitFor()
    await uninstall.click({ force: true })
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect(house.hub().apps.has(HUE)).toBe(true)
  })

  test('sorts, and marks the sorted column with the direction of its values', async () => {
    const { page } = await show()
    const head = (name: string) => page.getByRole('columnheader', { name })
    const orderOf = async (name: string) => [
      await head(name).getAttribute('aria-sort'),
      await head(name).locator('.order').innerText(),
    ]
    await rowWith(page, 'Lumen Lights').waitFor()
    expect(await orderOf('App')).toEqual(['ascending', '↑'])
    await head('Memory').getByRole('button').click()
    await page.locator('tr.app').first().getByText('Quiet Scripts').waitFor()
    expect(await orderOf('Memory')).toEqual(['descending', '↓'])
    await head('Memory').getByRole('button').click()
    expect(await orderOf('Memory')).toEqual(['ascending', '↑'])
    expect(await orderOf('App')).toEqual(['none', ''])
    for (const _ of ['up', 'down']) await head('App').getByRole('button').click()
    await page.locator('tr.app').first().getByText('Tidewater Energy Meter').waitFor()
    expect(await orderOf('App')).toEqual(['descending', '↓'])
  })

  test('groups apps by hub, or names the hub of each, and keeps that, search, filter and order after a reload', async () => {
    const { page } = await show({
      hubs: { home: { apps: DEFAULT_APPS.slice(0, 3) }, cabin: { apps: DEFAULT_APPS.slice(3) } },
    })
    await rowWith(page, 'cabin').getByText('5 apps').waitFor()
    await page.getByRole('checkbox', { name: 'By hub' }).uncheck()
    await rowWith(page, '5 apps').waitFor({ state: 'detached' })
    expect(await page.locator('tr.app').count()).toBe(8)
    await rowWith(page, 'Doorbell').getByText('cabin · nl.vandermolen.doorbell').waitFor()
    await page.getByRole('searchbox').fill('o')
    await page.getByRole('button', { name: /^Crashed/ }).click()
    await page.getByRole('columnheader', { name: 'Memory' }).getByRole('button').click()
    await page.reload()
    await rowWith(page, 'Doorbell').waitFor()
    expect(await page.getByRole('searchbox').inputValue()).toBe('o')
    await page.getByRole('button', { name: /^Crashed/, pressed: true }).waitFor()
    expect(await page.getByRole('columnheader', { name: 'Memory' }).getAttribute('aria-sort')).toBe('descending')
    await page.getByRole('checkbox', { name: 'By hub', checked: false }).waitFor()
    expect(await page.locator('tr.app').count()).toBe(1)
  })

  test('moves the focus to the heading of an app, and back to the row of the app; the title has the name', async () => {
    const { page } = await show()
    await rowWith(page, 'Lumen Lights').getByRole('link').focus()
    await page.keyboard.press('Enter')
    const focused = () => page.evaluate<string>('document.activeElement.innerText')
    await until('the heading', async () => (await page.title()) === 'Lumen Lights – hub2mqtt')
    await until('the focus on the heading', async () => (await focused()) === 'Lumen Lights')
    expect(await page.evaluate<string>('document.activeElement.tagName')).toBe('H1')
    await page.goBack()
    await until('the focus on the link', async () => (await focused()) === 'Lumen Lights')
    expect(await page.evaluate<string>('document.activeElement.tagName')).toBe('A')
    expect(await page.title()).toBe('Apps – hub2mqtt')
  })
})
