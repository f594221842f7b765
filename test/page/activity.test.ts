import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import type { FeedEvent, LiveFrame } from '../../src/web/server/api/protocol.ts'
import { until } from '../support/until.ts'
import { canBrowse, expectAccessible, overflow, profile, type View, visit } from './support/browser.ts'
import { type House, rowWith, show, startHouse } from './support/house.ts'

const HUE = 'com.athom.hue'
const HASH = '#/activity'
const HOUR_MS = 3_600_000

const days = (page: Page) => page.getByRole('heading', { level: 2 })
const lines = (page: Page) => page.locator('tr[tabindex]')
const ready = (page: Page) => page.getByRole('heading', { name: 'Activity' }).waitFor()
const isFocused = (of: ReturnType<typeof lines>) => of.evaluate((element) => element.matches(':focus'))

/** Returns a time zone, with a whole-hour offset, in which the hour at the time `at` is `hour`. */
function zoneAt(hour: number, at: number): string {
  const offset = ((hour - new Date(at).getUTCHours() + 36) % 24) - 12
  return `Etc/GMT${offset > 0 ? '-' : '+'}${Math.abs(offset)}`
}

async function visitWith(house: House, events: readonly FeedEvent[], view: View = {}): Promise<Page> {
  const context = await profile(view)
  await context.routeWebSocket(/api\/live/, (socket) => {
    socket.connectToServer().onMessage((text) => {
      const frame: LiveFrame = JSON.parse(String(text))
      const isFirst = frame.type === 'snapshot'
      socket.send(JSON.stringify(isFirst ? { ...frame, recent: [...events, ...frame.recent] } : frame))
    })
  })
  const page = await visit(house.page, { hash: HASH }, context)
  await ready(page)
  return page
}

function eventsAt(times: readonly number[], more: (i: number) => object = () => ({})): FeedEvent[] {
  return times.map((ms, i) => {
    const at = new Date(ms).toISOString()
    const event = { event_type: 'crashed', app: HUE, changed: [], at, message: `Error: ${i}`, count: 1, ...more(i) }
    return { at, topic: 'hub2mqtt/home/event', payload: JSON.stringify(event) }
  })
}

describe.runIf(canBrowse)('the days of the activity', () => {
  test('have headings, the first ones by name, are those of the viewer’s time zone, and an entry at midnight is below that of the new day', async () => {
    const house = await startHouse()
    const now = Date.parse('2026-03-29T10:00:00Z')
    // In Berlin, the clocks go forward in the night after this midnight.
    const midnight = Date.parse('2026-03-28T23:00:00Z')
    const times = [midnight - 50 * HOUR_MS, midnight - 1, midnight, midnight + 4 * HOUR_MS]
    const page = await visitWith(house, eventsAt(times), { timezone: 'Europe/Berlin', now })
    await days(page).getByText('Today').waitFor()
    expect(await days(page).allInnerTexts()).toEqual(['Today', 'Yesterday', 'Thursday, 26 March 2026'])
    const shown = async (day: string) => await page.getByRole('table', { name: day }).locator('time').allInnerTexts()
    expect(await shown('Today')).toEqual(['05:00:00', '00:00:00'])
    expect(await shown('Yesterday')).toEqual(['23:59:59'])
    expect(await shown('Thursday, 26 March 2026')).toEqual(['22:00:00'])
    await expectAccessible(page)
  })

  test('change at midnight while the page is open', async () => {
    const house = await startHouse()
    const at = Date.now()
    const timezone = zoneAt(12, at)
    const context = await profile({ timezone })
    const midnight = new Date(at).setUTCMinutes(0, 0, 0) + 12 * HOUR_MS
    await context.clock.install({ time: midnight - 30_000 })
    const page = await visit(house.page, { hash: HASH }, context)
    await ready(page)
    house.hub().crash(HUE, 'Error: before midnight')
    await page.getByText('Error: before midnight').waitFor()
    expect(await days(page).allInnerTexts()).toEqual(['Today'])
    await context.clock.fastForward(31_000)
    await days(page).getByText('Yesterday').waitFor()
    expect(await days(page).allInnerTexts()).toEqual(['Yesterday'])
  })
})

describe.runIf(canBrowse)('one line of the activity', () => {
  test('shows a command with its answer and the events that it caused, which open by keyboard', async () => {
    const { house, page } = await show({}, { hash: HASH })
    await ready(page)
    const headers = await house.daemon.owner()
    const rows = rowWith(page, 'Lumen Lights')
    for (const [command, name, last] of [
      ['disable', 'Disable', 'Stopped'],
      ['enable', 'Enable', 'Started'],
    ] as const) {
      await fetch(`${house.url}api/commands/home/app/${HUE}/${command}`, { method: 'POST', headers })
      await rows.getByText(name, { exact: true }).waitFor()
      const more = rows.first().getByRole('button')
      await more.press('Enter')
      await rows.getByText(last, { exact: true }).waitFor()
      expect(await more.getAttribute('aria-expanded')).toBe('true')
      await more.press('Space')
      expect(await more.getAttribute('aria-expanded')).toBe('false')
      await rows.getByText(last, { exact: true }).waitFor({ state: 'detached' })
    }
    expect(await rows.count()).toBe(2)
  })

  test('shows the updates of several apps in a row, with their names and number', async () => {
    const apps = ['Lamps', 'Meter', 'Pump'].map((name, i) => {
      return { id: `com.old${i}`, name, version: '1.0.0', update: '1.1.0', autoupdate: false }
    })
    const { house, page } = await show({ hubs: { home: { apps }, cabin: {} } })
    await page.getByRole('button', { name: 'Update all (4)' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Update' }).click()
    await page.getByText('4 done').waitFor()
    await page.goto(house.page + HASH)
    await ready(page)
    const row = lines(page).filter({ hasText: '3 apps home' })
    await row.getByText('Lamps, Meter, Pump').waitFor()
    await row.getByRole('button').click()
    for (const { name } of apps) await rowWith(page, name).getByText('1.0.0 → 1.1.0').waitFor()
    // The event of the other hub must have its own line.
    expect(await lines(page).count()).toBe(2)
    await lines(page).filter({ hasText: 'cabin' }).getByText('2.4.1 → 2.5.0').waitFor()
    await expectAccessible(page)
  })

  test('shows all equal events of an app, with their number, also on the page of the app', async () => {
    const { house, page } = await show({}, { hash: HASH })
    await ready(page)
    const rows = rowWith(page, 'Lumen Lights')
    for (const times of ['1 crash', '2 crashes', '3 crashes']) {
      house.hub().crash(HUE, 'Error: the lamp is dark')
      await rows.first().getByText(times).waitFor()
      house.hub().recover(HUE)
      await rows.first().getByRole('button').waitFor()
    }
    await rows.getByText('×3').waitFor()
    expect(await rows.count()).toBe(1)
    await page.goto(`${house.page}#/app/home/${HUE}`)
    const events = page.getByRole('region', { name: 'Events and commands' }).getByRole('row')
    await events.getByText('×3').waitFor()
    expect(await events.count()).toBe(1)
    await events.getByRole('button').click()
    await events.getByText('Recovered').first().waitFor()
    await expectAccessible(page)
  })
})

describe.runIf(canBrowse)('the list of the activity', () => {
  test('shows 50 lines at first and 50 more on request, with the focus on the first of them, until its end', async () => {
    const house = await startHouse()
    const now = Date.now()
    const events = eventsAt(Array.from({ length: 120 }, (_, i) => now - (120 - i) * HOUR_MS))
    const page = await visitWith(house, events, { width: 360 })
    const more = page.getByRole('button', { name: 'Show more' })
    for (const count of [50, 100]) {
      await until(`${count} lines`, async () => (await lines(page).count()) === count)
      expect(await page.getByText('There are no older entries.').count()).toBe(0)
      await more.press('Enter')
      const next = lines(page).nth(count)
      await next.getByText(`Error: ${119 - count}`, { exact: true }).waitFor()
      expect(await isFocused(next)).toBe(true)
    }
    expect(await lines(page).count()).toBe(120)
    expect(await more.count()).toBe(0)
    await page.getByText('There are no older entries.').waitFor()
    expect(await overflow(page)).toBeLessThanOrEqual(0)
  })

  test('keeps its filters in the address, also after a reload, back and forward', async () => {
    const { house, page } = await show({}, { hash: HASH })
    await ready(page)
    house.hub().crash(HUE, 'Error: a?b=c&d#e/f é')
    await page.getByText('Error: a?b').waitFor()
    const chip = (name: string) => page.getByRole('button', { name, exact: true })
    const expectChosen = async (name: string, text: string) => {
      await until(name, async () => (await chip(name).getAttribute('aria-pressed')) === 'true')
      expect(await page.getByRole('searchbox').inputValue()).toBe(text)
    }
    await chip('Failures').click()
    expect(await isFocused(chip('Failures'))).toBe(true)
    await page.getByRole('searchbox').fill('a?b=c&d#e/f é')
    await chip('Events').click()
    await page.getByRole('searchbox').fill('no such thing')
    await page.getByText('No entries match.').waitFor()
    await page.goBack()
    await expectChosen('Failures', 'a?b=c&d#e/f é')
    expect(await isFocused(page.getByRole('searchbox'))).toBe(true)
    await page.getByText('Error: a?b').waitFor()
    await page.reload()
    await ready(page)
    await expectChosen('Failures', 'a?b=c&d#e/f é')
    await page.getByText('Error: a?b').waitFor()
    await page.goBack()
    await expectChosen('All', '')
    await page.goForward()
    await page.goForward()
    await expectChosen('Events', 'no such thing')
    await page.getByRole('link', { name: 'Apps', exact: true }).click()
    await rowWith(page, 'Heat Pump').waitFor()
    await page.goBack()
    await expectChosen('Events', 'no such thing')
    await page.getByRole('searchbox').fill('')
    await chip('All').click()
    expect(new URL(page.url()).hash).toBe(HASH)
  })

  test('ignores invalid filters in the address', async () => {
    const { house, page } = await show()
    house.hub().crash(HUE, 'Error: the lamp is dark')
    for (const query of '?kind=nonsense ?kind=__proto__&kind=failures ? ?&=&% ?%E0%A4%A&kind ?search'.split(' ')) {
      await page.goto(house.page + HASH + query)
      await page.getByText('Error: the lamp is dark').waitFor()
      expect(await page.getByRole('button', { name: 'All', exact: true }).getAttribute('aria-pressed')).toBe('true')
      expect(await page.getByRole('searchbox').inputValue()).toBe('')
    }
  })
})
