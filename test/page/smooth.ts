/**
 * Measures how smooth the page stays with 1,000 apps and 100 changes a second for 20 seconds, while a user scrolls.
 * Prints the longest tasks of the main thread since the first render: their duration on this machine, and their CPU
 * time, which does not increase when the machine is busy.
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
const LONG_MS = 50

exitOnSignals()

await using house = await House.startApart({ hubs: { home: { apps: population(APPS), settleMs: 0 } } })
const browser = await launch()
const context = await profile()
const page = await context.newPage()
await page.goto(house.page)
await page.getByText('Population 0').first().waitFor()
const renderedAt = await page.evaluate<number>('performance.now()')
const drawn = await page.locator('tr.app').count()
console.log(`${APPS} apps, ${drawn} of them drawn ${Math.round(renderedAt)} ms after the start of the page`)

const ids = [...house.hub().apps.keys()]
let sent = 0
const timer = setInterval(() => {
  for (let i = 0; i < (PER_SECOND * TICK_MS) / 1000; i += 1) {
    const id = ids[(sent * 7) % ids.length] ?? ''
    sent += 1
    if (sent % 10 === 0) house.hub().change(id, { version: `9.0.${sent}` })
    else house.hub().change(id, { usage: { cpu: Math.random() / 5, mem: 2e7 + Math.random() * 2e7 } })
  }
}, TICK_MS)
await browser.startTracing(page, { categories: ['disabled-by-default-devtools.timeline', '__metadata'] })
const endsAt = performance.now() + SECONDS * 1000
const scroll = async () => {
  await page.mouse.wheel(0, 400 * (Math.random() - 0.4))
  return performance.now() > endsAt
}
await until('the end', scroll, SECONDS * 1000 + 10_000, 200)
clearInterval(timer)
const tasks = tasksOf(JSON.parse(String(await browser.stopTracing())))
const took = (key: 'dur' | 'tdur') => tasks.map((task) => (task[key] ?? 0) / 1000).sort((one, other) => other - one)
for (const [key, what] of [
  ['tdur', 'processor time'],
  ['dur', 'elapsed time'],
] as const) {
  const [longest = 0] = took(key)
  const long = took(key).filter((ms) => ms > LONG_MS).length
  console.log(`longest of ${tasks.length} tasks, ${what}: ${longest.toFixed(1)} ms; over ${LONG_MS} ms: ${long}`)
}
console.log(`${sent} changes in ${SECONDS} s`)
await quit()

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  /** The duration of the task, in microseconds. */
  readonly dur?: number
  readonly tdur?: number
  readonly args?: { readonly name?: string }
}

/** Returns the tasks of the page's main thread, which is the busiest main thread of all renderers. */
function tasksOf({ traceEvents }: { readonly traceEvents: readonly TraceEvent[] }): readonly TraceEvent[] {
  const mains = traceEvents.filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
  const all = mains.map(({ pid, tid }) =>
    traceEvents.filter((event) => event.name === 'RunTask' && event.pid === pid && event.tid === tid),
  )
  return all.sort((one, other) => other.length - one.length)[0] ?? []
}
