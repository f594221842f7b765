/**
 * Measures the time for one read of a list of 1,000 apps whose usage has changed, including the guardian's work:
 * `node --expose-gc test/bench/guard.ts`.
 */
import { DECISIONS } from '../../src/guardian/decisions.ts'
import { type App, patchApp } from '../../src/hub/app.ts'
import { Stand } from '../guardian/stand.ts'

const APPS = 1000
const READ_MS = 60_000
/** The reads of two days, so that every window is full. */
const READS = 2 * 24 * 60

const stand = new Stand()
let apps: App[] = Array.from({ length: APPS }, (_, i) =>
  patchApp(undefined, `app.${i}`, { version: '1.0.0', enabled: true, state: 'running', crashed: false }),
)
stand.guard.activate(true)
stand.guard.appsChanged(
  'home',
  apps.map((after) => ({ id: after.id, before: undefined, after })),
  true,
)
stand.guard.hubChanged('home', true)
const times: number[] = []
const heapUsed = () => {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
const heap = heapUsed()
for (let read = 0; read < READS; read += 1) {
  await stand.clock.advance(READ_MS)
  const changes = apps.map((before, i) => {
    const memory_bytes = 40_000_000 + ((read * 7919 + i * 104_729) % 2_000_000)
    return { id: before.id, before, after: patchApp(before, before.id, { cpu_percent: (read + i) % 7, memory_bytes }) }
  })
  apps = changes.map(({ after }) => after)
  const started = performance.now()
  stand.guard.appsChanged('home', changes, true)
  times.push(performance.now() - started)
}
const grown = heapUsed() - heap
const sorted = times.toSorted((a, b) => a - b)
const at = (part: number) => (sorted[Math.floor(part * (sorted.length - 1))] ?? 0).toFixed(2)
process.stdout.write(
  `${APPS} apps, ${READS} reads, ${Object.keys(DECISIONS).length} kinds of decisions: ` +
    `median ${at(0.5)} ms, 95 % ${at(0.95)} ms, longest ${at(1)} ms a read; ` +
    `${(grown / APPS / 1024).toFixed(1)} KiB more heap an app\n`,
)
stand.guard.standBy()
