import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { patchApp } from '../../../src/hub/app.ts'
import { Usage } from '../../../src/web/server/api/usage.ts'

const MINUTE = 60_000

/** A change of an app's usage. */
const usageOf = (id: string, cpu_percent: number | null, memory_bytes: number | null) => [
  { id, before: undefined, after: patchApp(undefined, id, { cpu_percent, memory_bytes }) },
]

describe('the usage of an app', () => {
  it('has a sample every 15 seconds with the latest values of that time', () => {
    const usage = new Usage(1_000_000)
    for (let second = 0; second <= 45; second += 1) {
      usage.take('home', usageOf('x', second, second), 1_000_000 + second * 1000)
    }
    expect(usage.all(1_045_000)).toEqual([
      [
        { hub: 'home', app: 'x' },
        [
          [1_000_000, 14, 14],
          [1_015_000, 29, 29],
          [1_030_000, 44, 44],
          [1_045_000, 45, 45],
        ],
      ],
    ])
  })

  it('never goes back beyond 15 minutes, in order, at most 61 samples, whatever comes when', () => {
    const steps = fc.array(
      fc.tuple(fc.integer({ min: 0, max: 5 * MINUTE }), fc.option(fc.integer({ min: 0, max: 400 }))),
    )
    fc.assert(
      fc.property(steps, (all) => {
        const usage = new Usage(0)
        let now = 0
        let latest: number | null | undefined
        for (const [wait, cpu] of all) {
          now += wait
          latest = cpu
          usage.take('home', usageOf('x', cpu, 1), now)
        }
        const samples = usage.all(now)[0]?.[1] ?? []
        expect(samples.length).toBeLessThanOrEqual(61)
        expect(samples.at(-1)?.[1]).toBe(latest)
        expect(samples.map(([at]) => at)).toEqual(samples.map(([at]) => at).toSorted((one, other) => one - other))
        for (const [at] of samples) expect(now - at).toBeLessThanOrEqual(15 * MINUTE)
      }),
    )
  })

  it('takes about a megabyte for 1,000 apps', () => {
    const usage = new Usage(0)
    for (let now = 0; now <= 30 * MINUTE; now += 15_000) {
      for (let app = 0; app < 1000; app += 1) usage.take('home', usageOf(`app-${app}`, 1, 1), now)
    }
    expect(usage.bytes).toBeLessThan(1024 * 1024)
    expect(usage.bytes).toBeGreaterThan(500 * 1024)
  })

  it('is forgotten with its app, and with its hub', () => {
    const usage = new Usage(0)
    for (const id of ['x', 'y']) usage.take('home', usageOf(id, 1, 1), 0)
    usage.take('other', usageOf('x', 1, 1), 0)
    usage.take('home', [{ id: 'x', before: patchApp(undefined, 'x', {}), after: undefined }], 0)
    expect(usage.all(0).map(([of]) => of)).toEqual([
      { hub: 'home', app: 'y' },
      { hub: 'other', app: 'x' },
    ])
    usage.forget('home')
    expect(usage.all(0).map(([of]) => of)).toEqual([{ hub: 'other', app: 'x' }])
  })
})
