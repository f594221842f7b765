import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import type { UsageHistory } from '../../src/contract/crash.ts'
import { until } from '../support/until.ts'
import { canBrowse, expectAccessible, overflow, type View, visit } from './support/browser.ts'
import { type HouseOptions, show, startHouse } from './support/house.ts'

const HUE = 'com.athom.hue'
const HASH = `#/app/home/${HUE}`
const METER = 'org.tidewater.meter'
const SCRIPT = '<img src=x onerror="window.hacked=1">'

/** Returns an answer with a value every `step` seconds, the last one at `end`. `null` leaves out a value. */
function answer(figures: readonly (number | null)[], step = 60, end = Date.now() / 1000): UsageHistory {
  const last = Math.floor(end / step) * step
  const points = figures.flatMap((value, i) =>
    value === null ? [] : [[last - (figures.length - 1 - i) * step, value] satisfies [number, number]],
  )
  const memory_bytes = points.map(([at]) => [at, 100_000_000] satisfies [number, number])
  return { resolution_seconds: step, cpu_percent: points, memory_bytes, source: 'bridge' }
}

/** @param of returns the answer for a period, or the status of a failure */
async function charts(of: (hours: number) => UsageHistory | number, view: View = {}) {
  const asked: number[] = []
  const prepare = (page: Page) =>
    page.route('**/history/*', async (route) => {
      const hours = Number(route.request().url().split('/').at(-1))
      asked.push(hours)
      const told = of(hours)
      await (typeof told === 'number' ? route.fulfill({ status: told, body: 'no' }) : route.fulfill({ json: told }))
    })
  return { ...(await show({}, { hash: HASH, prepare, ...view })), asked }
}

const slider = (page: Page, name: RegExp | string = /^CPU/) =>
  page.getByRole('region', { name: 'Usage', exact: true }).getByRole('slider', { name })
const told = (page: Page, name?: RegExp) => slider(page, name).getAttribute('aria-valuetext')
const canvas = (page: Page) => slider(page).locator('canvas').waitFor()

/** Returns the columns and rows in which the line of a chart is drawn, as fractions of its plot. */
async function ink(page: Page, figure: 'CPU' | 'Memory'): Promise<{ columns: number[]; rows: number[] }> {
  return await page.evaluate<{ columns: number[]; rows: number[] }>(`(() => {
    const chart = document.querySelector('[role=slider][aria-label^=${figure}]')
    const sheet = chart.querySelector('canvas')
    const probe = document.createElement('i')
    document.body.append(probe)
    probe.style.color = 'var(--accent)'
    const wanted = getComputedStyle(probe).color.match(/[\\d.]+/g).map(Number)
    probe.remove()
    const { width, height } = sheet
    const whole = sheet.getBoundingClientRect()
    const plot = chart.querySelector('.u-over').getBoundingClientRect()
    const { data } = sheet.getContext('2d').getImageData(0, 0, width, height)
    const [columns, rows] = [new Set(), new Set()]
    for (let i = 0; i < data.length; i += 4) {
      if (data[i + 3] < 200 || ![0, 1, 2].every((part) => Math.abs(data[i + part] - wanted[part]) < 40)) continue
      columns.add((((i / 4) % width) * whole.width / width + whole.left - plot.left) / plot.width)
      rows.add(Math.floor(i / 4 / width) / height)
    }
    return { columns: [...columns], rows: [...rows] }
  })()`)
}

/** Returns whether the line is drawn between the columns `from` and `to`, which are fractions of the plot. */
const isInked = (columns: readonly number[], from: number, to: number) => columns.some((at) => at > from && at < to)

describe.runIf(canBrowse)('the charts of an app', () => {
  test('show the figures of the bridge, also to readers, and load their library only then', async () => {
    const house = await startHouse({ hubs: { home: { usageMs: 100 } } })
    const page = await visit(house.url)
    const files: string[] = []
    page.on('request', (request) => files.push(request.url()))
    await page.getByText('Lumen Lights').first().waitFor()
    expect(files.filter((url) => /uplot/i.test(url))).toEqual([])
    await page.getByRole('link', { name: 'Lumen Lights' }).click()
    await canvas(page)
    expect(files.filter((url) => /uplot/i.test(url))).toHaveLength(1)
    expect(await told(page)).toMatch(/^Lowest [\d.]+%, mean [\d.]+%, highest [\d.]+%, latest [\d.]+%$/)
    await page.getByText(/^Recorded by hub2mqtt since \d\d:\d\d:\d\d\. One point every 10 minutes/).waitFor()
    await page.getByRole('button', { name: '1 h' }).click()
    await page.getByText(/One point a minute/).waitFor()
    await expectAccessible(page)
  })

  test('read out each point by keyboard, with the events at that time, in both charts at the same time', async () => {
    const { page, house } = await charts(() => answer([1, 2.5, 4, 3]))
    await canvas(page)
    expect(await told(page)).toBe('Lowest 1%, mean 2.6%, highest 4%, latest 3%')
    house.hub().crash(HUE, 'Error: the lamp is dark')
    await page.getByText('1 crash', { exact: true }).first().waitFor()
    await slider(page).focus()
    await page.keyboard.press('ArrowLeft')
    await until('the last point', async () => /: 3%, crash$/.test((await told(page)) ?? ''))
    expect(await told(page, /^Memory/)).toMatch(/: 100 MB, crash$/)
    await page.keyboard.press('ArrowLeft')
    await until('the point before', async () => /\d\d:\d\d:00: 4%$/.test((await told(page)) ?? ''))
    await page.keyboard.press('Home')
    await until('the first point', async () => /: 1%$/.test((await told(page)) ?? ''))
    expect(await slider(page).getAttribute('aria-valuenow')).toBe('0')
    await page.keyboard.press('Tab')
    await until('the summary', async () => ((await told(page)) ?? '').startsWith('Lowest'))
  })

  test('name the value and the time under the pointer', async () => {
    const { page } = await charts(() => answer(Array.from({ length: 60 }, () => 7)))
    await canvas(page)
    await slider(page).hover()
    const reading = page.locator('.reading').first()
    await reading.getByText(/\d\d:\d\d:00: 7%$/).waitFor()
    await page.mouse.move(1, 1)
    await until('no reading', async () => (await reading.innerText()) === '')
  })

  test('leave gaps while the app did not run, draw single points, and keep a steady line off the frame', async () => {
    const figures = Array.from({ length: 144 }, (_, i) => (i > 36 && i < 108 && i !== 72 ? null : 5))
    const { page } = await charts(() => answer(figures, 600))
    await canvas(page)
    const { columns, rows } = await ink(page, 'Memory')
    expect(isInked(columns, 0.05, 0.2)).toBe(true)
    expect(isInked(columns, 0.3, 0.47)).toBe(false)
    expect(isInked(columns, 0.48, 0.53)).toBe(true)
    expect(isInked(columns, 0.55, 0.7)).toBe(false)
    expect(isInked(columns, 0.8, 0.95)).toBe(true)
    expect(Math.min(...rows)).toBeGreaterThan(0.3)
    expect(Math.max(...rows)).toBeLessThan(0.7)
    await slider(page).focus()
    await page.keyboard.press('Home')
    for (let i = 0; i < 5; i += 1) await page.keyboard.press('PageUp')
    await until('the gap', async () => ((await told(page)) ?? '').endsWith(': no figure'))
  })

  test('show that there are no figures yet, and show a single one', async () => {
    const { page } = await charts((hours) => answer(hours === 24 ? [] : [5]))
    await page.getByText('No figures yet.').waitFor()
    expect(await slider(page).count()).toBe(0)
    await page.getByRole('button', { name: '1 h' }).click()
    await canvas(page)
    expect(await told(page)).toBe('Lowest 5%, mean 5%, highest 5%, latest 5%')
    expect((await ink(page, 'Memory')).columns.length).toBeGreaterThan(2)
  })

  test('of a week show when the figures begin, if that is later, and who recorded them', async () => {
    const { page, asked } = await charts((hours) => ({
      ...answer(Array(hours === 168 ? 6 : 145).fill(5), 600),
      source: hours === 168 ? 'hub' : 'bridge',
    }))
    await page.getByText('Recorded by hub2mqtt. One point every 10 minutes').waitFor()
    await page.getByRole('button', { name: '7 d' }).click()
    await page.getByText(/^Recorded by the hub since .*\d\d:\d\d:00\. /).waitFor()
    await slider(page, 'CPU, last 7 days').waitFor()
    expect(asked).toEqual([24, 168])
    // One hour of data must fill the chart.
    expect(isInked((await ink(page, 'Memory')).columns, 0.12, 0.3)).toBe(true)
  })

  test('are read again each minute, and keep the focus and the selected point', async () => {
    let value = 1
    const { page } = await charts(() => answer([value, value, value, value]), { minuteMs: 300 })
    await canvas(page)
    await slider(page).focus()
    await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('ArrowLeft')
    await until('a point', async () => ((await told(page)) ?? '').endsWith(': 1%'))
    const [time] = ((await told(page)) ?? '').split(': 1%')
    value = 2
    await until('its new figure', async () => (await told(page)) === `${time}: 2%`, 20_000)
    expect(await page.evaluate<string>('document.activeElement.ariaLabel')).toMatch(/^CPU/)
  })

  test('have the times of the viewer, also when the clocks change', async () => {
    // At 01:00 UTC, the clocks in Berlin go back from 03:00 to 02:00.
    const end = Date.parse('2026-10-25T02:00:00Z')
    const view: View = { timezone: 'Europe/Berlin', now: end + 60_000 }
    const { page } = await charts(() => answer([1, 2, 3], 3600, end / 1000), view)
    await canvas(page)
    await slider(page).focus()
    const seen: string[] = []
    for (const figure of ['3%', '2%', '1%']) {
      await page.keyboard.press('ArrowLeft')
      await until(figure, async () => ((await told(page)) ?? '').endsWith(`: ${figure}`))
      seen.push((await told(page)) ?? '')
    }
    expect(seen).toEqual(['25 Oct 2026, 03:00:00: 3%', '25 Oct 2026, 02:00:00: 2%', '25 Oct 2026, 02:00:00: 1%'])
  })

  test('stay when an answer fails or the connection is lost, with a notice', async () => {
    let status = 200
    const { page, house } = await charts(() => (status === 200 ? answer([1, 2]) : status), { minuteMs: 300 })
    await canvas(page)
    status = 500
    await page.getByText('hub2mqtt or a proxy answered with status 500').waitFor()
    expect(await slider(page).count()).toBe(1)
    status = 200
    await page.getByText('hub2mqtt or a proxy answered with status 500').waitFor({ state: 'detached' })
    await house.daemon.stop()
    await page.getByText('No connection to hub2mqtt').waitFor()
    expect(await told(page)).toBe('Lowest 1%, mean 1.5%, highest 2%, latest 2%')
  })

  test('are replaced with a notice and the figures in words if their library cannot be loaded', async () => {
    const prepare = async (page: Page) => {
      await page.route(/uplot/i, (route) => route.abort())
      await page.route('**/history/*', (route) => route.fulfill({ json: answer([1, 2]) }))
    }
    const { page } = await show({}, { hash: HASH, prepare })
    await page.getByText('The chart could not be loaded.').first().waitFor()
    await page.getByText('Lowest 1%, mean 1.5%, highest 2%, latest 2%').waitFor()
  })

  test('follow the width of the window and the theme', async () => {
    const { page } = await charts(() => answer(Array(60).fill(5)))
    await canvas(page)
    const widths = () =>
      page.evaluate<number[]>(`(() => {
        const chart = document.querySelector('[role=slider]')
        return [chart.clientWidth, chart.querySelector('canvas').clientWidth]
      })()`)
    let before = 0
    for (const size of [1440, 768, 360]) {
      await page.setViewportSize({ width: size, height: 900 })
      await until(`${size} px`, async () => {
        const [chart, sheet] = await widths()
        return chart === sheet && chart !== before
      })
      ;[before = 0] = await widths()
      expect(await overflow(page)).toBeLessThanOrEqual(0)
    }
    for (const theme of ['light', 'dark']) {
      await page.getByRole('button', { name: /^Theme/ }).click()
      await until(theme, async () => (await ink(page, 'Memory')).columns.length > 10)
      await expectAccessible(page)
    }
  })
})

const stack = Array.from({ length: 9 }, (_, i) => `    at Lamp.shine${i} (/app/drivers/lamp/lib/lamp-device.js:${i}:7)`)
const SAID = ['TypeError: the lamp is dark', ...stack].join('\n')

async function crashed(options: HouseOptions = {}, said = SAID) {
  const scopes = ['hub.app', 'hub.system.readonly']
  const { house, page } = await show({ scopes, ...options }, { hash: '#/bridge', width: 1440 })
  await page.getByRole('region', { name: 'Hub home' }).getByText('Storage').waitFor()
  house.hub().change(HUE, { version: '7.1.0' })
  house.hub().crash(METER, 'Error: the meter is stuck')
  await page.goto(`${house.page}${HASH}`)
  await page.locator('.app-head').getByText('7.1.0').waitFor()
  house.hub().crash(HUE, said)
  const card = page.getByRole('region', { name: 'Latest crash' })
  await card.waitFor()
  return { house, page, card }
}

describe.runIf(canBrowse)('the latest crash of an app', () => {
  test('is shown first: the message, the events before, other crashed apps, and the hub at that time', async () => {
    const { page, card, house } = await crashed()
    expect(await page.getByRole('region').first().getAttribute('aria-label')).toBe('Latest crash')
    expect(await card.locator('.said').innerText()).toBe(SAID)
    await card.getByText('error in the app').waitFor()
    const before = card.getByRole('table', { name: 'What happened before the crash' })
    await before.getByText('7.0.12 → 7.1.0').waitFor()
    await before.getByRole('link', { name: 'Tidewater Energy Meter' }).waitFor()
    await card.getByText('The hub at that time').waitFor()
    await card.getByText('Storage').waitFor()
    await card.getByRole('slider', { name: 'CPU, before the crash' }).waitFor()
    await expectAccessible(page)
    await card.getByRole('listitem').getByRole('link', { name: 'Tidewater Energy Meter' }).click()
    await page.getByRole('heading', { name: 'Tidewater Energy Meter' }).waitFor()
    // After a recovery, the card must be below the details of the app, and the page must show no empty list of events.
    house.hub().recover(HUE)
    await house.restart()
    await page.goto(`${house.page}${HASH}`)
    await page.locator('.app-head').getByText('Running').waitFor()
    await card.waitFor()
    expect(await page.getByRole('region').first().getAttribute('aria-label')).toBe('Details')
    expect(await page.getByText('No events or commands').count()).toBe(0)
  })

  test('shows stacks at the width of a large screen, here and in the lists, and fits a small one', async () => {
    const { page, card } = await crashed({ config: { guard: { watch: ['*'], backoff: '1h', backoff_max: '1h' } } })
    const seen = page.getByRole('region', { name: 'Crashes and restarts' })
    const events = page.getByRole('region', { name: 'Events and commands' })
    for (const width of [1440, 1920]) {
      await page.setViewportSize({ width, height: 900 })
      for (const within of [card.locator('pre'), seen.locator('.said').first(), events.locator('.said').first()]) {
        expect((await within.boundingBox())?.width, `${width} px`).toBeGreaterThan(800)
      }
    }
    await page.setViewportSize({ width: 360, height: 740 })
    expect(await overflow(page)).toBeLessThanOrEqual(0)
    expect((await card.locator('pre').boundingBox())?.width).toBeGreaterThan(250)
  })

  test('stays text, however long and hostile it is', async () => {
    const said = `Error: ${SCRIPT}\u202e${'x'.repeat(10_000)}\n    at ${SCRIPT}`
    const apps = [
      { id: HUE, name: 'Lumen Lights', version: '7.0.12' },
      { id: METER, name: `Meter ${SCRIPT}${'x'.repeat(200)}`, version: `1${SCRIPT}` },
    ]
    const { page, card, house } = await crashed({ hubs: { home: { apps } } }, said)
    await card.getByRole('listitem').getByText(`Meter ${SCRIPT}`).waitFor()
    await card.getByText(`Error: ${SCRIPT}`).waitFor()
    house.hub().change(METER, { version: `2${SCRIPT}` })
    house.hub().recover(HUE)
    await page.locator('.app-head').getByText('Running').waitFor()
    house.hub().crash(HUE, `Error: second\n    at ${SCRIPT}`)
    await card.getByText(`→ 2${SCRIPT}`).waitFor()
    for (const width of [1440, 360]) {
      await page.setViewportSize({ width, height: 900 })
      await expect.poll(() => overflow(page), { message: `${width} px` }).toBeLessThanOrEqual(0)
    }
    expect(await page.evaluate<unknown>('window.hacked')).toBeUndefined()
    expect(await page.locator('img[src=x], [onerror]').count()).toBe(0)
  })
})
