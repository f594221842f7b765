import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { canBrowse, expectAccessible, overflow, see, seeAny, visit } from './support/browser.ts'
import { logIn, PASSWORD, rowWith, show, startHouse } from './support/house.ts'

const SCRIPT = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'

async function expectOnlyText(page: Page): Promise<void> {
  expect(await page.evaluate<unknown>('window.hacked')).toBeUndefined()
  expect(
    await page.locator('img[src=x], #page script, #page iframe, [onerror], a[href^="javascript:" i]').count(),
  ).toBe(0)
}

describe.runIf(canBrowse)('text from outside stays text', () => {
  const id = 'org.hostile"><img src=x onerror=hacked=1>'
  const app = {
    id,
    name: `${SCRIPT} Name`,
    version: `1.0.0${SCRIPT}`,
    author: `javascript:alert(1)${SCRIPT}`,
    crashed: `Error: ${SCRIPT}`,
    settings: { [`name ${SCRIPT}`]: `value ${SCRIPT}` },
    record: { origin: SCRIPT, channel: SCRIPT, compatibility: SCRIPT, icon: 'javascript:alert(1)' },
  }

  test('in the list, on the page of an app, in its settings and its record', async () => {
    const { page } = await show({ hubs: { home: { apps: [app] } } })
    await page.getByText(`${SCRIPT} Name`).first().waitFor()
    await page.getByText(`Error: ${SCRIPT}`).first().waitFor()
    await expectOnlyText(page)
    await page.getByRole('link', { name: /Name/ }).click()
    await page.getByRole('heading', { name: /Name/ }).waitFor()
    await page.getByRole('button', { name: 'Read settings' }).click()
    await page.getByRole('button', { name: 'Show values' }).click()
    await page.getByText(`value ${SCRIPT}`).waitFor()
    await page.getByRole('button', { name: 'The hub’s record' }).click()
    await page.getByText(/"raw": \{/).waitFor()
    await expectOnlyText(page)
  })

  test('in the question before an action on several apps, and in its progress, also if it is long or changes direction', async () => {
    const apps = [`${SCRIPT} \u202e Name`, 'Long '.repeat(2_000)].map((name, i) => {
      return { id: `com.app${i}`, name, version: `1${SCRIPT}`, update: `2${SCRIPT}`, autoupdate: false }
    })
    const { house, page } = await show({ hubs: { home: { apps } } }, { width: 360 })
    await page.getByRole('button', { name: 'Update all (2)' }).click()
    await page.getByRole('dialog').getByText(SCRIPT).first().waitFor()
    expect(await overflow(page)).toBeLessThanOrEqual(0)
    await expectOnlyText(page)
    house.hub().behave('answer-status', { operation: 'installFromAppStore', status: 400, error: SCRIPT })
    await page.getByRole('dialog').getByRole('button', { name: 'Update' }).click()
    await page.getByRole('button', { name: 'Continue' }).waitFor()
    expect(await overflow(page)).toBeLessThanOrEqual(0)
    expect((await page.getByRole('region', { name: 'Update', exact: true }).boundingBox())?.height).toBeLessThan(400)
    await expectOnlyText(page)
  })

  test('in crash messages, events and errors of the hub', async () => {
    const { house, page } = await show({}, { hash: '#/activity' })
    await page.getByRole('heading', { name: 'Activity' }).waitFor()
    house.hub().crash('com.athom.hue', `Error: ${SCRIPT}`)
    await page.getByText(`Error: ${SCRIPT}`).waitFor()
    house.hub().change('com.athom.hue', { version: `2${SCRIPT}` })
    await seeAny(page, /→ 2<img/)
    house.hub().behave('answer-status', { operation: 'restartApp', status: 400, error: SCRIPT, description: SCRIPT })
    await page.goto(`${house.page}#/`)
    await page.getByRole('button', { name: 'Restart Heat Pump' }).click()
    await see(page.getByRole('alert'), /Heat Pump – Restart: .*<img/)
    await expectOnlyText(page)
  })

  test('in the address', async () => {
    const { page } = await show({}, { hash: `#/app/home/${encodeURIComponent(SCRIPT)}` })
    await page.getByText(/There is no app <img/).waitFor()
    await expectOnlyText(page)
  })
})

describe.runIf(canBrowse)('a user without access', () => {
  test('is asked for the password, sees when it is wrong, and must wait after several attempts', async () => {
    const { page } = await show({ config: { http: { password: PASSWORD } } })
    await logIn(page, 'wrong')
    await page.getByRole('alert').getByText('The password is not correct.').waitFor()
    expect(await page.locator('tr.app').count()).toBe(0)
    await logIn(page)
    await page.getByText('Lumen Lights').first().waitFor()
    const [cookie] = await page.context().cookies()
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
    // The session must survive a reload, because it lasts until the user logs out.
    await page.reload()
    await page.getByText('Lumen Lights').first().waitFor()
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByLabel('Password').waitFor()
    const limited = async () => {
      await logIn(page, 'wrong')
      return await page.getByText(/Too many attempts; wait \d+ s/).isVisible()
    }
    await until('the limit', limited, 20_000, 100)
  })

  test('sees no question over the login if a reload sets the password while it is open', async () => {
    const { house, page } = await show()
    await rowWith(page, 'Lumen Lights').getByRole('switch').click()
    await page.getByRole('dialog').waitFor()
    const file = await readFile(house.file, 'utf8')
    house.daemon.reload(file.replace('"http":{', `"http":{"password":"${PASSWORD}",`))
    await page.getByLabel('Password').waitFor()
    await page.getByRole('dialog').waitFor({ state: 'detached', timeout: 5_000 })
  })

  test('is told if the browser does not keep the login, and is let in when another tab has logged in', async () => {
    const { house, page } = await show({ config: { http: { password: PASSWORD } } })
    await page.route('**/api/login', (route) => route.fulfill({ status: 204 }))
    await logIn(page)
    await page.getByRole('alert').getByText('The browser has not kept the login.').waitFor()
    const other = await visit(house.url, {}, page.context())
    await logIn(other)
    await other.getByText('Lumen Lights').first().waitFor()
    // Send the event directly, because headless Chromium never hides a page.
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
    await page.getByText('Lumen Lights').first().waitFor()
  })

  test('may read on this machine, and sees how to get more access: by the printed address, without the token staying in it', async () => {
    const house = await startHouse()
    const page = await visit(house.url)
    const row = rowWith(page, 'Lumen Lights')
    await row.getByText('Running').waitFor()
    await page.getByText(/open the address that hub2mqtt printed.* or that hub2mqtt open prints/).waitFor()
    await row.getByRole('button', { name: /You have read-only access/ }).waitFor()
    expect(await page.getByRole('button', { name: 'Log out' }).count()).toBe(0)
    await expectAccessible(page)
    await page.getByRole('link', { name: 'Bridge' }).click()
    await page.getByRole('button', { name: /^Show \(You have read-only access/ }).waitFor()
    await page.getByRole('button', { name: /^Run the checks \(You have read-only access/ }).waitFor()
    await page.goto(house.page)
    await row.getByRole('button', { name: 'Restart Lumen Lights' }).click()
    await seeAny(page, /Restart: done in/)
    expect(page.url()).toBe(house.url)
    expect(await page.evaluate<string>('document.referrer')).toBe('')
    expect(await page.getByText('read-only access').count()).toBe(0)
    // The session must continue without the token until the user logs out.
    await page.goto(house.url)
    await row.getByRole('button', { name: 'Restart Lumen Lights' }).waitFor()
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByText(/open the address that hub2mqtt printed/).waitFor()
  })
})
