import { existsSync } from 'node:fs'
import type { Page } from 'playwright-core'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { canBrowse, expectAccessible, overflow, profile, visit } from './support/browser.ts'
import { asked, PASSWORD, rowWith, show, startHouse } from './support/house.ts'

/** The number of apps, which exceeds the number that the page draws at once. */
const COUNT = 110
const many = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ id: `com.app${i + 1000}`, name: `App ${i + 1000}`, version: '1.0.0' }))
const focused = (page: Page) => page.evaluate<string>('document.activeElement.textContent')
const inView = (page: Page) =>
  page.evaluate<number>(`[...document.querySelectorAll('tr.app')].filter((line) => {
    const { top, bottom } = line.getBoundingClientRect()
    return top >= 0 && bottom <= innerHeight
  }).length`)

describe.runIf(canBrowse)('by keyboard', () => {
  test('the arrow keys reach the whole list, and Enter opens an app', async () => {
    const { page } = await show({ hubs: { home: { apps: many(COUNT) } } })
    await rowWith(page, 'App 1000').waitFor()
    await page.keyboard.press('ArrowDown')
    expect(await focused(page)).toBe('App 1000')
    for (let i = 1; i < COUNT; i += 1) {
      // Wait, because a row is drawn only when the previous row has scrolled into view.
      await rowWith(page, `App ${1000 + i}`).waitFor({ state: 'attached' })
      await page.keyboard.press('ArrowDown')
      await until(`App ${1000 + i}`, async () => (await focused(page)) === `App ${1000 + i}`)
    }
    await page.keyboard.press('ArrowUp')
    expect(await focused(page)).toBe(`App ${998 + COUNT}`)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: `App ${998 + COUNT}` }).waitFor()
  })

  test('the first key that follows the first row has its effect', async () => {
    const house = await startHouse({ hubs: { home: { apps: many(2) } } })
    const context = await profile()
    // A frame that is late, as on a busy machine, delays what waits for the paint.
    await context.addInitScript(`{
      const frame = requestAnimationFrame, timer = setTimeout
      globalThis.requestAnimationFrame = (act) => timer(frame, 500, act)
      globalThis.setTimeout = (act, ms) => timer(act, ms > 0 && ms < 50 ? 500 : ms)
      new MutationObserver((_, observer) => {
        if (document.querySelector('tr.app') === null) return
        observer.disconnect()
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true }))
      }).observe(document, { childList: true, subtree: true })
    }`)
    const page = await visit(house.page, {}, context)
    await rowWith(page, 'App 1001').waitFor()
    expect(await focused(page)).toBe('App 1000')
  })

  test('after a look at an app far down a long list, the user is back at the same place', async () => {
    const { page } = await show({ hubs: { home: { apps: many(150) } } })
    await rowWith(page, 'App 1000').waitFor()
    await page.mouse.move(600, 600)
    await page.mouse.wheel(0, 4_000)
    await page.getByRole('link', { name: 'App 1080' }).click()
    await page.getByRole('heading', { name: 'App 1080' }).waitFor()
    expect(await page.evaluate<number>('scrollY')).toBe(0)
    await page.goBack()
    await until('the focus on the link', async () => (await focused(page)) === 'App 1080')
    expect(await page.evaluate<number>('scrollY')).toBe(4_000)
    // Another view opens at its top, and so does the list when a link opens it.
    await page.getByRole('link', { name: 'Bridge' }).click()
    await until('the top', async () => (await page.evaluate<number>('scrollY')) === 0)
    await page.getByRole('link', { name: 'Apps', exact: true }).click()
    await rowWith(page, 'App 1000').waitFor()
  })

  test('Home and End reach the ends of a menu', async () => {
    const { page } = await show()
    await rowWith(page, 'Lumen Lights').getByRole('button', { name: 'More for Lumen Lights' }).press('Enter')
    await page.keyboard.press('End')
    expect(await focused(page)).toMatch(/^Uninstall/)
    await page.keyboard.press('Home')
    expect(await focused(page)).toBe('Restart')
  })

  test('the arrow keys move from the search to the list and back, and Enter opens the first match', async () => {
    const apps = many(150).map((app, i) => ({ ...app, author: i < 120 ? 'Anna' : 'Bert' }))
    const { house, page } = await show({ hubs: { home: { apps }, cabin: { apps: [] } } })
    const search = page.getByRole('searchbox')
    const isFocused = () => search.evaluate((node) => node.matches(':focus'))
    await rowWith(page, 'App 1000').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.press('Enter')
    await page.keyboard.type('app 111')
    await page.keyboard.press('ArrowUp')
    expect(await isFocused()).toBe(true)
    await rowWith(page, 'App 1000').waitFor({ state: 'detached' })
    await page.keyboard.press('ArrowDown')
    expect(await focused(page)).toBe('App 1110')
    await page.keyboard.press('ArrowDown')
    expect(await focused(page)).toBe('App 1111')
    await page.keyboard.press('ArrowUp')
    expect(await focused(page)).toBe('App 1110')
    await page.keyboard.press('ArrowUp')
    expect(await isFocused()).toBe(true)
    await page.keyboard.press('End')
    await page.keyboard.type('9')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'App 1119' }).waitFor()
    // The list is scrolled, so the first match is not drawn. It must still open.
    await page.goto(house.page)
    await search.fill('anna')
    await page.mouse.move(600, 600)
    await page.mouse.wheel(0, 4_000)
    await rowWith(page, 'App 1000').waitFor({ state: 'detached' })
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'App 1000' }).waitFor()
  })

  test('a slash focuses the search of each view, a question mark lists the keys, and neither does while typing', async () => {
    const { house, page } = await show()
    for (const hash of ['#/activity', '#/']) {
      await page.goto(house.page + hash)
      await page.getByRole('searchbox').waitFor()
      await page.keyboard.press('/')
      expect(await page.getByRole('searchbox').evaluate((field) => field.matches(':focus'))).toBe(true)
    }
    await page.keyboard.type('?/')
    expect(await page.getByRole('searchbox').inputValue()).toBe('?/')
    await page.keyboard.press('ArrowDown')
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    const dialog = page.getByRole('dialog', { name: 'Keys' })
    for (const what of ['Search', 'Open the app, or the first match of the search', 'Show the keyboard shortcuts'])
      await dialog.getByText(what, { exact: true }).waitFor()
    await expectAccessible(page)
    await page.keyboard.press('/')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Keys' }).click()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await dialog.waitFor({ state: 'detached' })
  })
})

/** Presses Tab until the element with this name has the focus. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let i = 0; i < 300; i += 1) {
    await page.keyboard.press('Tab')
    const here = await page.evaluate<string>(`(() => {
      const { ariaLabel, labels, textContent } = document.activeElement
      return (ariaLabel ?? labels?.[0]?.textContent ?? textContent).trim()
    })()`)
    if (here === name) return
  }
  throw new Error(`Tab does not lead to ${name}`)
}

describe.runIf(canBrowse)('with the keyboard only', () => {
  const apps = [
    { id: 'com.lamp', name: 'Lamp', version: '1.0.0', settings: { transition: 400 } },
    { id: 'com.old', name: 'Old', version: '1.0.0', update: '1.1.0', autoupdate: false },
  ]

  test('an app is restarted, a setting is changed, all apps are updated, and the log is filtered', async () => {
    const { house, page } = await show({ hubs: { home: { apps } } })
    const press = async (name: string) => {
      await tabTo(page, name)
      await page.keyboard.press('Enter')
    }
    await rowWith(page, 'Lamp').waitFor()
    await page.keyboard.press('ArrowDown')
    await until('the focus on the app', async () => (await focused(page)) === 'Lamp')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Lamp' }).waitFor()
    await press('Restart')
    await until('the restart', () => asked(house, '/restart').length === 1)
    await press('Read settings')
    await page.getByText('transition', { exact: true }).waitFor()
    await press('Change the value of transition')
    const field = page.getByLabel('New value of transition', { exact: true })
    await until('the field', () => field.evaluate((node) => node.matches(':focus')))
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.type('21')
    await page.keyboard.press('Enter')
    await until('the new value', () => house.hub().settings('com.lamp')['transition'] === 21)
    await press('Apps')
    await press('Update all (1)')
    await page.getByRole('dialog').getByText('1.0.0 → 1.1.0').waitFor()
    await press('Update')
    await page.getByText('All done').waitFor()
    await press('Bridge')
    await press('Show the log')
    const started = rowWith(page, 'hub2mqtt started')
    await started.waitFor()
    await tabTo(page, 'Show levels')
    await page.keyboard.type('error')
    await started.waitFor({ state: 'detached' })
  })
})

describe.runIf(canBrowse)('the list of apps', () => {
  test.for([1280, 1440])('has 20 compact rows in view at %i × 900 px, and stays compact', async (width) => {
    const apps = many(150).map((app, i) => ({
      ...app,
      ...(i % 4 === 1 && { crashed: 'Error: connect EHOSTUNREACH 192.0.2.77:554' }),
      ...(i % 4 === 2 && { version: '10.112.1033-beta.45', update: '10.112.1034-rc.12', autoupdate: false }),
    }))
    const config = { guard: { watch: ['*'], backoff: '10m', backoff_max: '10m' } }
    const { page } = await show({ hubs: { home: { apps } }, config }, { width, height: 900 })
    await page
      .getByTitle(/next try/)
      .first()
      .waitFor()
    await rowWith(page, 'App 1000').waitFor()
    const before = await inView(page)
    await page.getByRole('checkbox', { name: 'Compact' }).check()
    await until('20 apps', async () => (await inView(page)) >= 20)
    expect(before).toBeLessThan(20)
    await page.keyboard.press('End')
    await until('the last one', async () => (await rowWith(page, 'App 1149').count()) === 1)
    await page.reload()
    await page.getByRole('checkbox', { name: 'Compact', checked: true }).waitFor()
    await expectAccessible(page)
    const heights = await page.evaluate<number[]>(
      `[...new Set([...document.querySelectorAll('tr.app')].map((line) => line.getBoundingClientRect().height))]`,
    )
    expect(heights).toEqual([33])
  })

  test('has cards of two lines at 320 to 480 px', async () => {
    const apps = [{ id: 'x.y', name: 'An app with a long name', version: '1.0.0', crashed: 'Error: gone' }, ...many(3)]
    const { page } = await show({ hubs: { home: { apps } } }, { width: 480, height: 820 })
    await rowWith(page, 'An app').waitFor()
    const countLines = () =>
      page.evaluate<number>(`(() => {
      const tops = [...document.querySelectorAll('tr.app')[0].querySelectorAll('a, .badge, .figure, .switch, input, button')]
        .filter((part) => part.getBoundingClientRect().width > 0)
        .map((part) => { const { top, height } = part.getBoundingClientRect(); return Math.round((top + height / 2) / 16) })
      return new Set(tops).size
    })()`)
    for (const width of [320, 360, 390, 480]) {
      await page.setViewportSize({ width, height: 820 })
      expect(await countLines(), `${width} px`).toBe(2)
      expect(await inView(page), `${width} px`).toBe(4)
      expect(await overflow(page), `${width} px`).toBeLessThanOrEqual(0)
    }
  })
})

describe.runIf(canBrowse)('the page', () => {
  const ICON = v.object({ src: v.string(), type: v.string(), sizes: v.string() })
  const MANIFEST = v.object({ start_url: v.string(), icons: v.array(ICON) })

  test('can be installed: its manifest and icons load, in their declared sizes, behind a password too', async () => {
    const house = await startHouse({ config: { http: { password: PASSWORD } } })
    const page = await visit(house.url)
    await page.getByLabel('Password').waitFor()
    const link = await page.evaluate<string>(`document.querySelector('link[rel=manifest]').href`)
    const answer = await fetch(link)
    expect(answer.headers.get('content-type')).toBe('application/manifest+json')
    const { start_url, icons } = v.parse(MANIFEST, await answer.json())
    expect(new URL(start_url, link).href).toBe(house.url)
    expect(icons.map(({ sizes }) => sizes)).toEqual(['any', '192x192', '512x512'])
    const touch = await page.evaluate<string>(`document.querySelector('link[rel=apple-touch-icon]').href`)
    for (const { src, type, sizes } of [...icons, { src: touch, type: 'image/png', sizes: '180x180' }]) {
      const icon = await fetch(new URL(src, link))
      expect([icon.status, icon.headers.get('content-type')], src).toEqual([200, type])
      const bytes = Buffer.from(await icon.arrayBuffer())
      expect(bytes.length, src).toBeLessThan(10_000)
      // A PNG begins with its signature and its size.
      if (sizes !== 'any') expect(`${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`, src).toBe(sizes)
    }
  })

  test('links from each view to a document that exists', async () => {
    const { house, page } = await show()
    const seen = new Set<string>()
    for (const hash of ['#/', '#/app/home/com.athom.hue', '#/activity', '#/bridge']) {
      await page.goto(house.page + hash)
      const href = await page.getByRole('link', { name: 'Documentation' }).getAttribute('href')
      const path = /\/blob\/main\/(docs\/[a-z-]+\.md)/.exec(href ?? '')?.[1] ?? ''
      expect(existsSync(path), `${href}`).toBe(true)
      seen.add(path)
    }
    expect(seen.size).toBeGreaterThanOrEqual(3)
  })
})
