import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { canBrowse, expectAccessible, overflow, visit } from './support/browser.ts'
import { House, rowWith } from './support/house.ts'

let house: House
beforeAll(async () => {
  if (canBrowse) house = await House.start({ scopes: ['hub.app', 'hub.speech', 'hub.system.readonly'] })
})
afterAll(async () => {
  await house?.[Symbol.asyncDispose]()
})

const tab = (page: Page, name: string) => page.getByRole('navigation').getByRole('link', { name, exact: true })
const lang = (page: Page) => page.evaluate<string>('document.documentElement.lang')
/** @param button the button that opens the menu */
async function choose(page: Page, button: string, name: string): Promise<void> {
  await page.getByRole('button', { name: button }).click()
  await page.getByRole('menuitemradio', { name, exact: true }).click()
}

describe.runIf(canBrowse)('the language of the page', () => {
  test.for([
    ['nl-BE', 'nl', 'Activiteit'],
    ['de', 'de', 'Aktivität'],
    ['fr-FR', 'en', 'Activity'],
  ] as const)('is the browser’s, if the page has it: %s', async ([locale, code, activity]) => {
    const page = await visit(house.page, { locale })
    await tab(page, activity).waitFor()
    expect(await lang(page)).toBe(code)
  })

  test('can be chosen without a reload, and stays until another one is chosen', async () => {
    const page = await visit(house.page)
    await page.evaluate('globalThis.isSame = true')
    await rowWith(page, 'Lumen Lights').getByText('61.3 MB').waitFor()
    await choose(page, 'Language: as the browser (English)', 'Deutsch')
    await tab(page, 'Aktivität').waitFor()
    await rowWith(page, 'Lumen Lights').getByText('61,3 MB').waitFor()
    await expect.poll(() => page.title()).toBe('Apps – hub2mqtt')
    expect([await lang(page), await page.evaluate('globalThis.isSame')]).toEqual(['de', true])
    await page.reload()
    await tab(page, 'Aktivität').waitFor()
    await page.getByRole('button', { name: 'Sprache: Deutsch' }).click()
    await page.getByRole('menuitemradio', { name: 'Deutsch', checked: true }).waitFor()
    await page.getByRole('menuitemradio', { name: 'Nederlands' }).click()
    await tab(page, 'Activiteit').waitFor()
    await choose(page, 'Taal: Nederlands', 'zoals de browser (English)')
    await tab(page, 'Activity').waitFor()
    expect(await lang(page)).toBe('en')
  })

  test('is the only one whose texts are loaded', async () => {
    const asked: string[] = []
    const prepare = (page: Page) => page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    const page = await visit(house.page, { prepare })
    await tab(page, 'Activity').waitFor()
    const ofLanguages = () => asked.filter((path) => /^\/assets\/[a-z]{2}-/.test(path)).map((path) => path.slice(8, 10))
    expect(ofLanguages()).toEqual([])
    await choose(page, 'Language', 'Nederlands')
    await tab(page, 'Activiteit').waitFor()
    expect(ofLanguages()).toEqual(['nl'])
  })

  test('stays as it is if the texts of another one cannot be loaded, with a notice', async () => {
    const page = await visit(house.page, {
      prepare: (page) => page.route('**/assets/de-*', (route) => route.abort()),
    })
    await choose(page, 'Language', 'Deutsch')
    await page.getByText('The texts of this language could not be loaded.').waitFor()
    await tab(page, 'Activity').waitFor()
    expect(await lang(page)).toBe('en')
  })

  const VIEWS: readonly (readonly [hash: string, ready: (page: Page) => Promise<unknown>])[] = [
    ['#/', (page) => rowWith(page, 'Lumen Lights').waitFor()],
    ['#/app/home/com.athom.hue', (page) => page.getByRole('heading', { name: 'Lumen Lights' }).waitFor()],
    ['#/app/home/nl.vandermolen.doorbell', (page) => page.getByRole('heading', { name: 'Doorbell' }).waitFor()],
    ['#/activity', (page) => page.getByRole('searchbox').waitFor()],
    ['#/bridge', (page) => page.getByRole('heading', { name: 'Hub home' }).waitFor()],
    ['#/log', (page) => page.getByRole('table').waitFor()],
  ]

  test.for(['nl', 'de'])('keeps the page accessible, on small screens too: %s', async (locale) => {
    for (const width of [1280, 360, 320]) {
      const page = await visit(house.page, { locale, width })
      // Send a command. Its event has a long name next to a button; both together may be too wide.
      await page.evaluate(`fetch('api/commands/home/app/com.athom.hue/autoupdate', {
        method: 'POST', headers: { 'content-type': 'text/plain' }, body: '${width === 360 ? 'ON' : 'OFF'}'
      }).then((answer) => answer.text())`)
      for (const [hash, ready] of VIEWS) {
        await page.goto(house.page.replace(/#.*$/, '') + hash)
        await ready(page)
        if (width !== 320) await expectAccessible(page)
        expect(await overflow(page), `${hash} at ${width} px`).toBeLessThanOrEqual(0)
      }
    }
  })
})
