/**
 * How smooth the page stays: 1,000 apps, 100 changes a second for 20 seconds, while somebody scrolls. Prints the tasks of
 * the main thread over 50 ms since the first render, and the heap of the daemon with and without the page.
 */

import { population } from '../../src/emulator/population.ts'
import { exitOnSignals } from '../support/process.ts'
import { until } from '../support/until.ts'
import { launch, profile, quit } from './support/browser.ts'
import { House } from './support/house.ts'

const APPS = 1_000
const PER_SECOND = 100
const SECONDS = 20
const TICK_MS = 50

exitOnSignals()

const LONG_TASKS = `
  window.longTasks = []
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) window.longTasks.push([startTime, duration])
  }).observe({ type: 'longtask', buffered: true })`

await using house = await House.start({ hubs: { home: { apps: population(APPS), settleMs: 0 } } })
await launch()
const context = await profile()
const page = await context.newPage()
await page.addInitScript(LONG_TASKS)
await page.goto(house.url)
await page.getByText('Population 0').first().waitFor()
const renderedAt = await page.evaluate<number>('performance.now()')
const ids = [...house.hub().apps.keys()]
const drawn = () => page.locator('tr.app').count()
console.log(`${APPS} apps, ${await drawn()} of them drawn ${Math.round(renderedAt)} ms after the start of the page`)

let sent = 0
const timer = setInterval(() => {
  for (let i = 0; i < (PER_SECOND * TICK_MS) / 1000; i += 1) {
    const id = ids[(sent * 7) % ids.length] ?? ''
    sent += 1
    if (sent % 10 === 0) house.hub().change(id, { version: `9.0.${sent}` })
    else house.hub().change(id, { usage: { cpu: Math.random() / 5, mem: 2e7 + Math.random() * 2e7 } })
  }
}, TICK_MS)
const endsAt = performance.now() + SECONDS * 1000
await until(
  'the end',
  async () => {
    await page.mouse.wheel(0, 400 * (Math.random() - 0.4))
    return performance.now() > endsAt
  },
  SECONDS * 1000 + 10_000,
  200,
)
clearInterval(timer)
const tasks = await page.evaluate<[number, number][]>('window.longTasks')
const later = tasks.filter(([startedAt]) => startedAt > renderedAt).map(([, duration]) => duration)
const before = tasks.filter(([startedAt]) => startedAt <= renderedAt).map(([, duration]) => duration)
console.log(`${sent} changes in ${SECONDS} s`)
console.log(`longest task until the first render: ${Math.round(Math.max(0, ...before))} ms`)
console.log(`tasks over 50 ms since then: ${later.length}, the longest ${Math.round(Math.max(0, ...later))} ms`)
await quit()
