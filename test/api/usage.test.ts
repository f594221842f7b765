import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Usage } from '../../src/api/usage.ts'

const MINUTE = 60_000

describe('the usage of an app', () => {
  it('has a sample every 15 seconds with the latest values of that time', () => {
    const usage = new Usage(1_000_000)
    for (let second = 0; second <= 45; second += 1) usage.add('x', 1_000_000 + second * 1000, second, second)
    expect(usage.all(1_045_000)).toEqual({
      x: [
        [1_000_000, 14, 14],
        [1_015_000, 29, 29],
        [1_030_000, 44, 44],
        [1_045_000, 45, 45],
      ],
    })
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
          usage.add('x', now, cpu, 1)
        }
        const samples = usage.all(now)['x'] ?? []
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
      for (let app = 0; app < 1000; app += 1) usage.add(`app-${app}`, now, 1, 1)
    }
    expect(usage.bytes).toBeLessThan(1024 * 1024)
    expect(usage.bytes).toBeGreaterThan(500 * 1024)
  })
})
