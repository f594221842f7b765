import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { LOG_LEVELS } from '../../src/contract/log-levels.ts'
import { DEFAULT_APPS } from '../../src/emulator/population.ts'
import { BridgeProcess } from '../support/bridge-process.ts'
import { english } from '../support/page-texts.ts'
import { freePort } from '../support/ports.ts'
import { canBrowse, expectAccessible, overflow, profile, seeAny, visit } from './support/browser.ts'
import { House, rowWith, startHouse } from './support/house.ts'

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

/** Serves the English texts in brackets in place of the Dutch texts. */
async function marked(): Promise<BrowserContext> {
  const mark = (text: string) => `⟦${text}⟧`
  const texts = english.map(([key, text]) => {
    if (typeof text === 'string') return [key, mark(text)]
    return [key, { one: mark(text.one ?? text.other), other: mark(text.other) }]
  })
  const body = `export default ${JSON.stringify(Object.fromEntries(texts))}`
  const context = await profile({ locale: 'nl' })
  onTestFinished(() => context.close())
  await context.route('**/assets/nl-*.js', (route) => route.fulfill({ contentType: 'text/javascript', body }))
  return context
}

/** Collects all text that is visible or read aloud, except code, times, and text that is marked as English. */
const SHOWN = `(() => {
  const found = [document.title]
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT)
  for (let node = walk.nextNode(); node !== null; node = walk.nextNode()) {
    const element = node instanceof Element ? node : node.parentElement
    const isData = element.closest('code, pre, kbd, time, bdi, textarea, script, .app-icon, body [lang=en]') !== null
    if (isData || !(element.closest('select') ?? element).checkVisibility()) continue
    if (node instanceof Text) found.push(node.data)
    else for (const name of ['title', 'placeholder', 'alt', 'aria-label', 'aria-valuetext', 'aria-description']) {
      found.push(node.getAttribute(name) ?? '')
    }
  }
  return found
})()`

const STUCK = 'Error: the meter is stuck'
/** Texts that need no translation: names, addresses, key names, log levels, permissions and the hub's own messages. */
const DATA = [
  ...DEFAULT_APPS.flatMap(({ id, name, author, crashed }) =>
    [id, name, author, crashed].filter((one) => one !== undefined),
  ),
  ...['hub2mqtt', 'MQTT', 'http://192.168.1.20', 'English', 'Nederlands', 'Deutsch', 'true', 'false', 'Enter', 'Esc'],
  ...['home', 'cabin', 'attic', '127.0.0.1', 'homeassistant', 'stable', '1.0.0-beta.3'],
  ...['state', 'guardian', 'call', 'fleet', 'evidence', 'shard-1', 'shard-2'],
  ...['hub.app', 'hub.speech', 'hub.system.readonly'],
  ...LOG_LEVELS,
  STUCK,
].toSorted((one, other) => other.length - one.length)
/** Matches numbers with their units in each language. */
const FIGURES = /[\d.,−+ \u00a0]+(kB|MB|GB|%|°C|ms|sec|uur|uren|minuten|minuut|seconden|dagen)(?!\p{L})/gu

/** Fails if any text is neither in brackets nor in `DATA`. */
async function expectTranslated(page: Page): Promise<void> {
  const shown = await page.evaluate<string[]>(SHOWN)
  expect(shown.filter((text) => text.includes('⟦')).length).toBeGreaterThan(0)
  const left = shown.filter((text) => {
    let outside = text
    while (/⟦[^⟦⟧]*⟧/.test(outside)) outside = outside.replace(/⟦[^⟦⟧]*⟧/g, ' ')
    for (const one of DATA) outside = outside.replaceAll(one, ' ')
    return /\p{L}/u.test(outside.replace(FIGURES, ' '))
  })
  expect(left).toEqual([])
}

describe.runIf(canBrowse)('no view mixes languages:', () => {
  const GUARD = { watch: ['*'], backoff: '10m', backoff_max: '10m' }
  const scopes = ['hub.app', 'hub.speech', 'hub.system.readonly']
  const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first()

  test('the list of apps, with its menus and questions', async () => {
    const cabin = DEFAULT_APPS.slice(2, 6).map((app) => ({ ...app, id: `${app.id}.cabin` }))
    const own = await startHouse({ hubs: { home: {}, cabin: { apps: cabin } }, config: { guard: GUARD }, scopes })
    const page = await visit(own.page, {}, await marked())
    await rowWith(page, 'Lumen Lights').getByText('Running').first().waitFor()
    await expectTranslated(page)
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
    await expectTranslated(page)
    await page.keyboard.press('Escape')
    for (const name of [/Language/, /More for .*Heat Pump/]) {
      await button(page, name).click()
      await page.getByRole('menu').waitFor()
      await expectTranslated(page)
      await page.keyboard.press('Escape')
    }
    for (const name of [/^.?Update/, /Disable/, /Clear history/]) {
      await button(page, /More for .*Heat Pump/).click()
      await page.getByRole('menuitem', { name }).first().click()
      await page.getByRole('dialog').waitFor()
      await expectTranslated(page)
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    }
    await page.getByRole('checkbox', { name: /Select .*Heat Pump/ }).check()
    await page
      .getByRole('checkbox', { name: /Select .*Doorbell/ })
      .first()
      .check()
    await expectTranslated(page)
    await button(page, 'More for the selected apps').click()
    await expectTranslated(page)
    await page.keyboard.press('Escape')
    own.hub().behave('answer-status', { operation: 'restartApp', status: 500, times: 1 })
    await page.getByRole('region', { name: 'Selected apps' }).getByRole('button', { name: 'Restart' }).click()
    await expectTranslated(page)
    await page.getByRole('dialog').getByRole('button', { name: 'Restart' }).click()
    await page.getByText(/Stopped: .*failed|All done/).waitFor()
    await own.hub('cabin').close()
    await seeAny(page, /hub is offline/)
    await expectTranslated(page)
  })

  test('the page of an app, with all its cards, and its events in the activity', async () => {
    const own = await startHouse({ hubs: { home: { usageMs: 400 } }, config: { guard: GUARD }, scopes })
    const context = await marked()
    for (const id of ['com.athom.hue', 'nl.vandermolen.doorbell']) {
      const page = await visit(own.page, { hash: `#/app/home/${id}` }, context)
      await button(page, 'Read settings').click()
      await button(page, 'Show values').click()
      await button(page, 'Change the value').click()
      await expectTranslated(page)
      await button(page, 'The hub’s record').click()
      await page.getByRole('combobox', { name: 'Action' }).selectOption('events')
      await expectTranslated(page)
      await button(page, 'Send report to developer').click()
      await page.getByRole('dialog').waitFor()
      await expectTranslated(page)
    }
    const page = await visit(own.page, { hash: '#/app/home/com.athom.hue' }, context)
    await page.getByText('Lowest').first().waitFor()
    await page.getByRole('slider').first().press('ArrowLeft')
    await button(page, 'Restart').click()
    await page.getByText(/Restart.*: done in/).waitFor()
    await expectTranslated(page)
    await page.goto(`${own.page.replace(/#.*$/, '')}#/activity`)
    own.hub().crash('org.tidewater.meter', STUCK)
    await page.getByText(STUCK).first().waitFor()
    await expectTranslated(page)
  })

  test('the activity, the log and the bridge, of a single one and of a fleet', async () => {
    const own = await startHouse({
      hubs: { home: {}, cabin: {}, attic: {} },
      config: { fleet: { shard: '1/2' } },
      scopes,
    })
    const context = await marked()
    const page = await visit(own.page, { hash: '#/activity' }, context)
    await page.getByRole('searchbox').waitFor()
    await expectTranslated(page)
    for (const [hash, text] of [
      ['#/bridge', /Fleet leader/],
      ['#/log', /Set for 10 minutes/],
    ] as const) {
      await page.goto(own.page.replace(/#.*$/, '') + hash)
      await page.getByText(text).first().waitFor()
      await expectTranslated(page)
    }
  })

  test('the login, and the page for readers', async () => {
    const own = await startHouse({
      config: { http: { password: 'a password for tests' } },
      scopes: ['hub.app.readonly'],
    })
    const page = await visit(own.url, {}, await marked())
    await page.getByLabel('Password').fill('wrong')
    await button(page, 'Log in').click()
    await page.getByText('The password is not correct.').waitFor()
    await expectTranslated(page)
    await page.getByLabel('Password').fill('a password for tests')
    await button(page, 'Log in').click()
    await rowWith(page, 'Lumen Lights').waitFor()
    await expectTranslated(page)
  })

  test('the setup page', async () => {
    const port = await freePort()
    const daemon = new BridgeProcess({ env: { HUB2MQTT_HTTP_PORT: String(port) } })
    onTestFinished(() => daemon.stop())
    const page = await visit(await daemon.page(), {}, await marked())
    await page.getByText('Looking for hubs').waitFor({ state: 'detached' })
    await page.getByLabel('Use an existing broker').check()
    await expectTranslated(page)
  })
})
