import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AppSeed } from '../../src/emulator/records.ts'
import { until } from '../support/until.ts'
import { canBrowse, overflow, profile, seeAny, visit } from './support/browser.ts'
import { House, rowWith, startHouse } from './support/house.ts'

const SIZES = [
  { width: 390, height: 844 },
  { width: 768, height: 1024 },
  { width: 1440, height: 900 },
  { width: 1920, height: 1080 },
]
/** The widths of the tested screens, including those at which the layout changes. */
const WIDTHS = [
  320, 344, 360, 374, 375, 390, 412, 480, 600, 679, 680, 720, 721, 768, 820, 880, 909, 910, 1024, 1101, 1149, 1150,
  1280, 1440, 1920, 2560,
]

const expectInView = (page: Page, line: Locator, before = async () => {}) =>
  until(`${line} in view`, async () => {
    await before()
    const edges = await line.evaluateAll((rows) =>
      rows.map((row) => {
        const { top, bottom } = row.getBoundingClientRect()
        return { top, bottom }
      }),
    )
    const [first] = edges
    const height = page.viewportSize()?.height ?? 0
    return edges.length === 1 && first !== undefined && first.top >= 0 && first.bottom <= height + 1
  })
/** Repeats the key: on a busy machine, the browser scrolls to where the list ended before its length or width changed. */
const expectAtEnd = (page: Page, line: Locator) => expectInView(page, line, () => page.keyboard.press('End'))
const listed = (page: Page, count: number) => page.locator(`table[aria-rowcount="${Math.round(count) + 1}"]`).waitFor()
/**
 * Scrolls to the end, and returns the smallest share of the screen that rows of apps filled meanwhile.
 * @param step the length of a step, in screens
 */
const scroll = (step: number) => `(async () => {
  let emptiest = 1
  const frames = (left) => new Promise((done) => {
    const next = () => (left-- > 0 ? requestAnimationFrame(next) : done())
    next()
  })
  while (scrollY + innerHeight < document.documentElement.scrollHeight - 1) {
    scrollBy(0, innerHeight * ${step})
    await frames(3)
    const heights = [...document.querySelectorAll('tr.app')].map((line) => {
      const { top, bottom } = line.getBoundingClientRect()
      return Math.max(0, Math.min(bottom, innerHeight) - Math.max(top, 0))
    })
    emptiest = Math.min(emptiest, heights.reduce((sum, height) => sum + height, 0) / innerHeight)
  }
  return emptiest
})()`

/** Creates apps. Of every ten, counted from the end, one has an update, two are disabled, and seven have crashed. */
function mixed(count: number): AppSeed[] {
  return Array.from({ length: count }, (_, i) => {
    const kind = (count - i) % 10
    return {
      id: `com.app${i + 1000}`,
      name: `App ${i + 1000}`,
      ...(kind === 0 ? { update: '2.0.0', autoupdate: false } : {}),
      ...(kind === 1 || kind === 2 ? { enabled: false } : {}),
      ...(kind > 2 ? { crashed: 'Error: gone' } : {}),
    }
  })
}
/** For each filter, the share of apps that it shows, and the position of the last of these apps. */
const FILTERED = {
  Updates: { share: 0.1, fromEnd: -10 },
  Stopped: { share: 0.2, fromEnd: -1 },
  Crashed: { share: 0.7, fromEnd: -3 },
  All: { share: 1, fromEnd: -1 },
}

function verbose(count: number, hub: string): AppSeed[] {
  const names = [
    'Short',
    'Zigbee, Thread and Matter devices of the upper floor with their batteries',
    'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft',
    '客厅和卧室的智能照明与窗帘控制系统以及所有房间的温度传感器',
  ]
  const crashes = [
    'Error: JavaScript heap out of memory\n    at Timeout.poll (/app/lib/device.js:12:7)',
    'Error: connect EHOSTUNREACH 192.0.2.77:554',
    'Error: CPU warning limit reached',
  ]
  return Array.from({ length: count }, (_, i) => ({
    id: `org.example.with.a.long.reverse.domain.name.${hub}${i + 1000}`,
    name: `${names[i % names.length] ?? ''} ${hub}`,
    version: i % 3 === 0 ? '10.112.1033-beta.45 and words, and more words after them' : '1.0.0',
    usage: { cpu: 3.999, mem: 1_234_567_890 },
    ...(i % 4 === 1 ? { update: '10.112.1034-rc.12', autoupdate: false } : {}),
    ...(i % 5 === 2 ? { crashed: crashes[i % crashes.length] ?? '' } : {}),
  }))
}

interface Look {
  readonly names: number
  readonly narrowest: number
  /** The elements that overlap or are truncated. */
  readonly faults: readonly string[]
  /** For each kind of row, the distances to the next row. */
  readonly heights: Readonly<Record<string, readonly number[]>>
}

const LOOK = `(() => {
  const lines = [...document.querySelectorAll('table.apps tbody tr')]
  const faults = []
  const heights = { app: [], hub: [] }
  for (const [i, line] of lines.entries()) {
    const next = lines[i + 1]
    if (line.className === 'space' || next === undefined || next.className === 'space') continue
    const height = Math.round((next.getBoundingClientRect().top - line.getBoundingClientRect().top) * 10) / 10
    const kind = line.classList.contains('hub') ? 'hub' : 'app'
    if (!heights[kind].includes(height)) heights[kind].push(height)
  }
  for (const line of document.querySelectorAll('tr.app')) {
    const shown = [...line.querySelectorAll('a, small, .c-version > span, .badge, .switch, .figure, button.icon, input, .app-icon')]
      .map((part) => {
        const cell = part.closest('td').getBoundingClientRect()
        const { left, right, top, bottom } = part.getBoundingClientRect()
        const clips = getComputedStyle(part.closest('td')).overflow === 'hidden'
        if (part.matches('.figure, .switch, button') && clips && (right > cell.right + 1 || left < cell.left - 1))
          faults.push(part.className + ' is cut: ' + line.innerText.slice(0, 40))
        return clips
          ? { part, left: Math.max(left, cell.left), right: Math.min(right, cell.right), top, bottom }
          : { part, left, right, top, bottom }
      })
      .filter(({ left, right, top, bottom }) => right > left && bottom > top)
    const bounds = line.getBoundingClientRect()
    for (const [i, one] of shown.entries()) {
      if (one.right > bounds.right + 1 || one.bottom > bounds.bottom + 1) faults.push('outside: ' + one.part.outerHTML.slice(0, 80))
      for (const other of shown.slice(i + 1)) {
        const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left)
        const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top)
        if (wide > 1 && high > 1 && !one.part.contains(other.part))
          faults.push(one.part.outerHTML.slice(0, 60) + ' covers ' + other.part.outerHTML.slice(0, 60))
      }
    }
  }
  const names = [...document.querySelectorAll('td.c-name a')].map((name) => name.getBoundingClientRect().width)
  return { names: names.length, narrowest: Math.floor(Math.min(...names)), faults: faults.slice(0, 3), heights }
})()`

describe.runIf(canBrowse)('the list of apps at all sizes', () => {
  describe.each([
    { count: 200, sizes: SIZES },
    { count: 1000, sizes: [SIZES[0], SIZES[2]] },
  ])('with $count apps', ({ count, sizes }) => {
    let house: House
    beforeAll(async () => {
      house = await House.start({ hubs: { home: { apps: mixed(count) } } })
    })
    afterAll(() => house?.[Symbol.asyncDispose]())

    test.for(sizes)(
      'shows the last app at $width × $height: scrolled, by the End key, filtered',
      { timeout: 180_000 },
      async (size) => {
        await using context = await profile(size)
        await expectEnds(await visit(house.url, {}, context), count)
      },
    )
  })

  async function expectEnds(page: Page, count: number): Promise<void> {
    const nameOf = (fromEnd: number) => `App ${1000 + count + fromEnd}`
    const last = rowWith(page, nameOf(-1))
    await rowWith(page, 'App 1000').waitFor()
    expect(await page.evaluate<number>(scroll(count > 200 ? 4.5 : 0.9))).toBeGreaterThan(0.6)
    await expectInView(page, last)
    await page.keyboard.press('Home')
    await expectInView(page, rowWith(page, 'App 1000'))
    await page.keyboard.press('End')
    await expectInView(page, last)
    for (const [name, { share, fromEnd }] of Object.entries(FILTERED)) {
      await page.getByRole('button', { name: new RegExp(`^${name}`) }).click()
      await listed(page, count * share)
      await expectAtEnd(page, rowWith(page, nameOf(fromEnd)))
    }
    for (const [words, found] of [
      [nameOf(-1).slice(0, -1), 10],
      [nameOf(-1).slice(0, -2), 100],
      ['', count],
    ] as const) {
      await page.getByRole('searchbox').fill(words)
      await listed(page, found)
      await page.getByRole('searchbox').blur()
      await expectAtEnd(page, last)
    }
  }

  test('reaches the end after the screen was rotated', async () => {
    const house = await startHouse({ hubs: { home: { apps: mixed(200) } } })
    const page = await visit(house.url, { width: 1024, height: 768 })
    await rowWith(page, 'App 1000').waitFor()
    for (const size of [
      { width: 390, height: 844 },
      { width: 1024, height: 768 },
    ]) {
      await page.setViewportSize(size)
      await expectAtEnd(page, rowWith(page, 'App 1199'))
    }
  })

  const NAMED = [
    { count: 20, widths: WIDTHS },
    { count: 200, widths: [320, 375, 721, 880, 1101, 2560] },
    { count: 1000, widths: [375, 768, 1101] },
  ]
  test.for(NAMED)('gives the names of $count apps enough room at $widths.length widths', async ({ count, widths }) => {
    const half = count / 2
    const house = await startHouse({
      hubs: { home: { apps: verbose(half, 'home') }, cabin: { apps: verbose(half, 'cabin') } },
      config: { guard: { watch: ['*'], backoff: '10m', backoff_max: '10m' } },
    })
    const page = await visit(house.page)
    await page.getByText(`${half} apps`).first().waitFor()
    await seeAny(page, /Crashed: too much/)
    const looks: Record<number, Look> = {}
    for (const width of widths) {
      await page.setViewportSize({ width, height: 900 })
      await page.mouse.wheel(0, 500)
      looks[width] = await page.evaluate<Look>(LOOK)
      expect(await overflow(page), `${width} px`).toBeLessThanOrEqual(0)
    }
    for (const [width, { names, narrowest, faults, heights }] of Object.entries(looks)) {
      expect(names, `${width} px`).toBeGreaterThanOrEqual(Math.min(10, count))
      expect(narrowest, `the narrowest name at ${width} px`).toBeGreaterThanOrEqual(Number(width) < 375 ? 120 : 160)
      expect(faults, `${width} px`).toEqual([])
      expect(heights['app'], `lines of apps at ${width} px`).toHaveLength(1)
      expect(heights['hub']?.length, `headings at ${width} px`).toBeLessThanOrEqual(1)
    }
  })
})
