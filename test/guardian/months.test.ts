import { describe, expect, test } from 'vitest'
import { hasCrashed } from '../../src/contract/classify.ts'
import { DECISIONS, type Decisions } from '../../src/guardian/decisions.ts'
import { simulate } from './simulation.ts'

test('sixty days of two hubs with apps that fail in every way break no promise', { timeout: 300_000 }, async () => {
  const { figures, broken } = await simulate({ seed: 20_260_101, days: 60, apps: 26 })
  console.log(JSON.stringify(figures))
  expect([...broken]).toEqual([])
  // The simulation must have tested each promise.
  for (const [name, figure] of Object.entries(figures)) expect(figure, name).toBeGreaterThan(5)
})

const { obstacle } = DECISIONS

/** Wrong decisions, each with the promise that it breaks. */
const PLANTS: Readonly<Record<string, readonly [promise: RegExp, wrong: Partial<Decisions>]>> = {
  'every stop is treated as a crash': [
    /person's will/,
    { hasCrashed: (before, after) => hasCrashed(before, after) || after.state === 'stopped' },
  ],
  'there is no limit': [
    /more than the limit/,
    {
      hasUsedUp: () => false,
      obstacle: (it) => obstacle({ ...it, limits: { ...it.limits, max_restarts: Number.POSITIVE_INFINITY } }),
    },
  ],
  'quiet hours across midnight are ignored': [/quiet hours/, { quietUntil: () => undefined }],
  'apps are restarted simultaneously': [/two at a time/, { obstacle: (it) => obstacle({ ...it, hubBusy: false }) }],
  'a hub that reconnects is not left alone': [/left alone/, { obstacle: (it) => obstacle({ ...it, hubBackAt: null }) }],
  'the delay does not grow': [/wait doubles/, { delayAfter: (_, { backoff }) => backoff }],
  'any rise is a leak': [/no leak/, { isRising: (_, trend) => (trend ?? 0) > 1_048_576 }],
  'a crash with a high count is ignored': [
    /history is right/,
    { hasCrashed: (before, after) => hasCrashed(before, after) && (after.crash_count ?? 0) < 4 },
  ],
  'no update is bad': [/bad update is reported/, { isBad: () => false }],
  'no crashes make a storm': [/in a storm/, { isStorm: () => false }],
  'a hub has no budget': [/budget/, { budgetUntil: () => undefined }],
  'an app that was given up is never tried again': [/after an outage/, { retryDelay: () => undefined }],
  'an app that was given up is tried again too early': [/by the list/, { retryDelay: () => 1000 }],
  'a hub that answers again counts as restarted': [/start of its hub/, { hasBooted: () => true }],
  'the step of an update does not matter': [/larger step/, { mayInstall: () => true }],
}

describe('a guardian with a wrong decision is detected', () => {
  test.each(Object.entries(PLANTS))('%s', { timeout: 120_000 }, async (_, [promise, decisions]) => {
    // Of several seeds, this one shows every wrong decision in the fewest days.
    const { broken } = await simulate({ seed: 9, days: 10, apps: 20, decisions, until: promise })
    expect(
      [...broken.keys()].some((name) => promise.test(name)),
      [...broken.keys()].join(', '),
    ).toBe(true)
  })
})
