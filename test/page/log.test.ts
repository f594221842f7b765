import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LogLines } from '../../src/web/server/api/protocol.ts'
import { until } from '../support/until.ts'
import { canBrowse, expectAccessible, overflow, visit } from './support/browser.ts'
import { House, rowWith, show } from './support/house.ts'

let house: House
beforeAll(async () => {
  if (canBrowse) house = await House.start({ hubs: { home: {}, cabin: {} } })
})
afterAll(async () => {
  await house?.[Symbol.asyncDispose]()
})

const APP = 'com.athom.hue'
const look = (view = {}) => visit(house.page, { hash: '#/log', ...view })
const follow = (page: Page) => page.getByRole('button', { name: /^Follow/ })
const box = (page: Page) => page.locator('.scroll.log')
const scrollTo = (page: Page, top: number) => box(page).evaluate((node, to) => node.scrollTo(0, to), top)
const fromEnd = (page: Page) => box(page).evaluate((node) => node.scrollHeight - node.scrollTop - node.clientHeight)

/** Answers requests for the log, first with these lines. The returned function adds lines for later requests. */
async function logged(page: Page, first: readonly object[], missed = 0) {
  let waiting = first.map((line) => JSON.stringify(line))
  let gap = missed
  await page.route('**/api/log?*', async (route) => {
    const answer: LogLines = { lines: waiting, missed: gap, next: 'x', level: 'info', fallback: null }
    waiting = []
    gap = 0
    await route.fulfill({ json: answer })
  })
  return (lines: readonly object[], more = 0) => {
    waiting.push(...lines.map((line) => JSON.stringify(line)))
    gap += more
  }
}
const line = (msg: string, more = {}) => ({ level: 'info', time: '2026-11-24T12:00:00.000Z', msg, ...more })
const many = (count: number, word: string) => Array.from({ length: count }, (_, i) => line(`${word} ${i}`))

describe.runIf(canBrowse)('the log', () => {
  test('does not claim to be empty before the first answer', async () => {
    const prepare = (page: Page) => page.route('**/api/log?*', () => undefined)
    const page = await visit(house.page, { hash: '#/log', prepare })
    await page.getByRole('heading', { name: 'Log' }).waitFor()
    await page.getByText('Loading…').waitFor()
    expect(await page.getByText('Nothing has been logged yet.').count()).toBe(0)
  })

  test('is reached from the bridge, shows new lines, and is filtered by level, hub, app and text', async () => {
    const page = await visit(house.page, { hash: '#/bridge' })
    await page.getByRole('link', { name: 'Show the log' }).click()
    await page.getByRole('heading', { name: 'Log' }).waitFor()
    expect(await page.title()).toBe('Log – hub2mqtt')
    await rowWith(page, 'hub2mqtt started').waitFor()
    await page.getByText(/Hubs do not provide the output of apps/).waitFor()
    house.hub().crash(APP, 'Error: in the log')
    const crash = rowWith(page, 'Error: in the log')
    await crash.getByRole('link', { name: 'Lumen Lights' }).waitFor()
    const started = rowWith(page, 'hub2mqtt started')
    const choose = (name: string, option: string) => page.getByRole('combobox', { name }).selectOption(option)
    await choose('Show app', APP)
    await started.waitFor({ state: 'detached' })
    await crash.waitFor()
    await choose('Show hub', 'cabin')
    await page.getByText('No lines match.').waitFor()
    await choose('Show hub', '')
    await choose('Show app', '')
    await choose('Show levels', 'fatal')
    await page.getByText('No lines match.').waitFor()
    await choose('Show levels', 'info')
    await page.getByRole('searchbox').fill('IN THE LOG')
    await started.waitFor({ state: 'detached' })
    await crash.waitFor()
    await page.getByRole('searchbox').fill('')
    await started.waitFor()
    expect(await page.content()).not.toContain('key-of-the-house')
  })

  test('follows its end until the reader scrolls up, counts new lines, and follows again from the end', async () => {
    const page = await visit(house.page, { hash: '#/bridge' })
    const add = await logged(page, many(200, 'first'))
    await page.getByRole('link', { name: 'Show the log' }).click()
    await page.getByText('first 199').waitFor()
    expect(await fromEnd(page)).toBeLessThan(2)
    add(many(50, 'second'))
    await page.getByText('second 49').waitFor()
    expect(await fromEnd(page)).toBeLessThan(2)
    await scrollTo(page, 500)
    await follow(page).waitFor()
    add([...many(11, 'third'), line('other')])
    await page.getByRole('button', { name: 'Follow (12 new)' }).waitFor()
    expect(await page.getByText('third').count()).toBe(0)
    expect(await box(page).evaluate((node) => node.scrollTop)).toBe(500)
    await page.getByRole('searchbox').fill('d')
    await page.getByRole('button', { name: 'Follow (11 new)' }).waitFor()
    await page.getByRole('searchbox').fill('')
    await scrollTo(page, 1e9)
    await page.getByText('other').waitFor()
    await until('the end', async () => (await fromEnd(page)) < 2)
    await page.getByRole('button', { name: 'Pause' }).press('Enter')
    add(many(3, 'fourth'))
    await page.getByRole('button', { name: 'Follow (3 new)' }).press('Enter')
    await page.getByText('fourth 2').waitFor()
    expect(await fromEnd(page)).toBeLessThan(2)
  })

  test('shows hostile text as text, keeps 2,000 lines, and marks missing ones', async () => {
    const page = await visit(house.page, { hash: '#/bridge', width: 360, height: 740 })
    const markup = '<img src=x onerror=alert(1)>'
    const first = [
      line(`${markup} \u001b[31mred\u202e\nnext`, { hub: markup, app: markup, part: 'apps', extra: { markup } }),
      line('w'.repeat(10_000)),
      { level: 'error', err: { stack: `Error: ${markup}\n    at there` } },
      { level: markup, time: 'never', msg: 7 },
    ]
    const add = await logged(page, first, 8_000)
    await page.getByRole('link', { name: 'Show the log' }).click()
    await page.getByText('8,000 lines are missing here.').waitFor()
    await page.getByText(`${markup} \\u001b[31mred\\u202e\\u000anext`).waitFor()
    await page.getByText(/Error: <img.*\n {4}at there/).waitFor()
    await page.getByText('"msg":7').waitFor()
    expect(await page.locator('table img').count()).toBe(0)
    expect(await overflow(page)).toBeLessThanOrEqual(0)
    await expectAccessible(page)
    add(many(2_500, 'later'), 1)
    await page.getByText('later 2499').waitFor()
    expect(await page.getByRole('row').count()).toBeLessThanOrEqual(2_001)
    expect(await page.getByText('8,000 lines are missing').count()).toBe(0)
  })

  test('can be downloaded as JSON lines, with the filters applied', async () => {
    const page = await look()
    await rowWith(page, 'hub2mqtt started').waitFor()
    const download = async () => {
      const event = page.waitForEvent('download')
      await page.getByRole('button', { name: 'Download' }).click()
      const file = await event
      expect(file.suggestedFilename()).toMatch(/^hub2mqtt-log-[\dT-]+\.jsonl$/)
      const lines = (await readFile(await file.path(), 'utf8')).trimEnd().split('\n')
      return lines.map((one) => JSON.parse(one).msg)
    }
    const all = await download()
    expect(all).toContain('hub2mqtt started')
    expect(all.length).toBeGreaterThan(1)
    await page.getByRole('searchbox').fill('hub2mqtt started')
    await until('the filter', async () => (await page.getByRole('row').count()) === 2)
    expect(await download()).toEqual(['hub2mqtt started'])
  })

  test('sets a level for ten minutes, which stays when the page is closed and can be ended', async () => {
    const first = await look()
    await first.getByText('Level: info', { exact: true }).waitFor()
    await first.getByRole('button', { name: 'Set for 10 minutes' }).click()
    await first.getByText('Level: debug for 10 more minutes, then info').waitFor()
    await first.close()
    const page = await look()
    await page.getByText(/^Level: debug for \d+ more minutes, then info$/).waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Back to info now' }).click()
    await page.getByText('Level: info', { exact: true }).waitFor()
  })

  test('explains why the level cannot be changed if the configuration denies that', async () => {
    const { page } = await show({ config: { commands: { deny: ['bridge/log-level'] } } }, { hash: '#/log' })
    await page.getByRole('button', { name: 'Set for 10 minutes' }).click()
    await page.getByText(/^Log level: .*(not|den)/).waitFor()
    await page.getByText('Level: info', { exact: true }).waitFor()
  })

  test('is neither shown nor requested without full access', async () => {
    const page = await visit(house.url)
    let asked = 0
    page.on('request', (request) => {
      if (request.url().includes('/api/log')) asked += 1
    })
    await page.goto(`${house.url}#/log`)
    await page.getByText(/The log needs full access\. To make changes, open the address/).waitFor()
    expect(asked).toBe(0)
    await expectAccessible(page)
  })

  test('keeps its lines while hub2mqtt is offline, with a notice, and after a login shows those of the next start', async () => {
    const { house: own, page } = await show({}, { hash: '#/log' })
    await rowWith(page, 'hub2mqtt started').waitFor()
    await own.daemon.stop()
    await page.getByText('hub2mqtt does not answer.').waitFor()
    expect(await rowWith(page, 'hub2mqtt started').count()).toBe(1)
    await own.start()
    await page.goto(own.page)
    await page.goto(`${own.url}#/log`)
    await rowWith(page, 'hub2mqtt started').waitFor()
    await page.getByText('hub2mqtt does not answer.').waitFor({ state: 'detached' })
  })
})
