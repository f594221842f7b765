import { describe, expect, it } from 'vitest'
import { killOften } from './kill.ts'

describe('a hub that is killed while it writes', () => {
  it('has everything that it confirmed, nothing by half and nothing left over, twenty times', async () => {
    const { faults, confirmed, midway, swept } = await killOften(20)
    expect(faults).toEqual([])
    // Otherwise nothing was tried.
    expect(confirmed).toBeGreaterThan(100)
    expect(midway).toBeGreaterThan(0)
    expect(swept).toBeGreaterThan(0)
  })
})
