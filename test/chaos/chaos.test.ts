import { describe, expect, test } from 'vitest'
import { mosquittoPath } from '../support/brokers.ts'
import type { Seen } from '../support/observer.ts'
import { everyFault, runJobs } from './campaign.ts'
import { CHECKERS } from './check.ts'
import type { EpisodeResult } from './episode.ts'
import { provePlants } from './prove.ts'

const SEED = 1
/** `npm run chaos` includes all quick faults, and a planted bug for each checker. */
const FAULT = 'hub executes and resets'
const PLANT = 'any-spelling'

describe.skipIf(mosquittoPath === undefined)('with a fault around it', { concurrent: true }, () => {
  test('the bridge keeps every promise', async () => {
    const results: EpisodeResult[] = []
    const onResult = (result: EpisodeResult) => void results.push(result)
    await runJobs(everyFault([FAULT], SEED, 1), { workers: 1, onResult })
    expect(results).toMatchObject([{ fault: FAULT, violations: [], answers: expect.toSatisfy((count) => count > 5) }])
  })

  test('a checker detects the bug that is planted for it', async () => {
    const results = await provePlants({ seed: SEED, tries: 3, workers: 1, names: [PLANT] })
    expect(results).toMatchObject([{ name: PLANT, caught: true }])
  })
})

test('only the answer `too_large` may follow another answer, on a later connection of the bridge', () => {
  const sent = { at: 0, topic: 'cmd', token: 't', hubRequest: null, write: false, kind: 'good' } as const
  const answer = (at: number, code?: string): Seen => {
    const text = JSON.stringify(code === undefined ? { ok: true } : { ok: false, error: { code } })
    const properties = { correlationData: Buffer.from('t') }
    const packet = { cmd: 'publish', topic: '', payload: text, qos: 1, dup: false, retain: false, properties } as const
    return { at, topic: 'answers/me', text, retain: false, packet }
  }
  const found = (openedAt: number, ...seen: readonly Seen[]) => {
    const links = [{ openedAt: 0 }, { openedAt }]
    return [
      ...CHECKERS['answered twice']({ sent: [{ ...sent, expiresAt: null, offline: false }], lives: [], links, seen }),
    ]
  }
  expect(found(15, answer(10), answer(20, 'too_large'))).toEqual([])
  expect(found(25, answer(10), answer(20, 'too_large'))).toHaveLength(1)
  expect(found(15, answer(10, 'too_large'), answer(20))).toHaveLength(1)
  expect(found(15, answer(10), answer(20, 'hub_failed'))).toHaveLength(1)
})
