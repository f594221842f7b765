import type { Page } from 'playwright-core'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { canBrowse, quit, visit } from './support/browser.ts'
import { House, type HouseOptions } from './support/house.ts'

afterAll(quit)

let house: House | undefined
afterEach(async () => {
  await house?.[Symbol.asyncDispose]()
  house = undefined
})

async function start(hash: string, options?: HouseOptions): Promise<{ house: House; page: Page }> {
  house = await House.start(options)
  return { house, page: await visit(house.page, { hash }) }
}

describe.runIf(canBrowse)('the page of the bridge', () => {
  test('shows broker and hubs, and why one is offline', async () => {
    const { house, page } = await start('#/bridge')
    const broker = page.getByRole('region', { name: 'MQTT broker' })
    await broker.getByText('MQTT 5').waitFor()
    await broker.getByText('connected').waitFor()
    await broker.getByText('this minute').waitFor()
    const hub = page.getByRole('region', { name: 'Hub home' })
    await hub.getByText('8.1.6').waitFor()
    house.hub().revokeKey('key-of-the-house')
    house.hub().dropRealtime('cut')
    await hub.getByText('it does not accept the API key').waitFor()
    await page.getByText('hub home is offline: unauthorized').waitFor()
  })

  test('says which commands need more, and why', async () => {
    const { page } = await start('#/bridge', { scopes: ['hub.app.readonly'] })
    const hub = page.getByRole('region', { name: 'Hub home' })
    await hub.getByText(/commands are not possible/).click()
    await hub
      .locator('li')
      .filter({ hasText: 'restart' })
      .getByText(/hub\.app/)
      .waitFor()
    expect(await hub.getByRole('textbox').isDisabled()).toBe(true)
  })

  test('changes the log level, reads again and speaks', async () => {
    const { house, page } = await start('#/bridge')
    await page.getByRole('combobox', { name: 'Log level' }).selectOption('debug')
    await page.getByText(/Log level: done/).waitFor()
    await until('the level of the daemon', async () => {
      const state = await (await fetch(`${house.url}api/state`)).text()
      return state.includes('"hub2mqtt/bridge/log-level":"debug"')
    })
    await page.getByRole('button', { name: 'Read everything again' }).click()
    await page.getByText(/home – Read everything again: done/).waitFor()
    await page.getByRole('textbox', { name: 'Speech' }).fill('Dinner is ready')
    await page.keyboard.press('Enter')
    await page.getByText(/home – Say it: done/).waitFor()
    expect(house.hub().spoken).toEqual(['Dinner is ready'])
  })

  test('shows the configuration without its secrets, and what the doctor finds', async () => {
    const { page } = await start('#/bridge')
    await page.getByRole('region', { name: 'Configuration' }).getByRole('button', { name: 'Show' }).click()
    await page.getByText(/base_topic: hub2mqtt/).waitFor()
    expect(await page.content()).not.toContain('key-of-the-house')
    await page.getByRole('button', { name: 'Examine' }).click()
    await page.getByRole('region', { name: 'Doctor' }).locator('pre').waitFor()
  })
})

describe.runIf(canBrowse)('the activity', () => {
  test('tells events and commands as they come; pauses and filters', async () => {
    const { house, page } = await start('#/activity')
    const app = 'com.athom.hue'
    await page.getByRole('heading', { name: 'Activity' }).waitFor()
    house.hub().crash(app, 'Error: first')
    await page.getByText(/Error: first/).waitFor()
    // From whomever it comes.
    const headers = await house.daemon.owner()
    await fetch(`${house.url}api/commands/home/app/${app}/restart`, { method: 'POST', headers })
    await page.getByRole('row').filter({ hasText: 'Restart' }).getByText(/^done/).waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    house.hub().crash(app, 'Error: second')
    await page.getByRole('button', { name: /Resume \(\d+ new\)/ }).waitFor()
    expect(await page.getByText(/Error: second/).count()).toBe(0)
    await page.getByRole('button', { name: /Resume/ }).click()
    await page.getByText(/Error: second/).waitFor()
    await page.getByRole('button', { name: 'Commands' }).click()
    await page.getByText(/Error: second/).waitFor({ state: 'detached' })
    await page.getByRole('searchbox').fill('no such thing')
    await page.getByText('Nothing fits.').waitFor()
  })
})
