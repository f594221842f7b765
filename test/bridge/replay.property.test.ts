import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Replay } from '../../src/bridge/replay.ts'
import type { Outcome } from '../../src/contract/answer.ts'
import { CommandError, ERROR_CODES, isErrorCode } from '../../src/contract/errors.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { runs } from '../support/runs.ts'

const MINUTES = 60_000
const MEBIBYTE = 1024 * 1024
const NOTHING: Outcome = { ok: true, json: 'null' }
const REFUSED: Outcome = { ok: false, error: new CommandError('unknown_app') }
const turn = () => new Promise((resolve) => setImmediate(resolve))
const RETRIED: readonly string[] = ['busy', 'expired', 'hub_unreachable', 'rate_limited', 'retained']
const codes = Object.keys(ERROR_CODES).filter(isErrorCode)

test('the memory of answers has each answer for five minutes, unless it allows another attempt', async () => {
  const step = fc.record({
    key: fc.constantFrom('a', 'b', 'c'),
    code: fc.constantFrom('ok' as const, ...codes),
    wait: fc.nat(2 * MINUTES),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const clock = new FakeClock()
      const replay = new Replay(clock)
      const known = new Map<string, { outcome: Outcome; at: number }>()
      for (const { key, code, wait } of steps) {
        const expected = known.get(key)
        const fresh = expected !== undefined && clock.elapsed() - expected.at < 5 * MINUTES
        const recalled = replay.recall(key)
        expect(await recalled).toBe(fresh ? expected.outcome : undefined)
        if (recalled === undefined) {
          const outcome: Outcome =
            code === 'ok' ? { ok: true, json: 'null' } : { ok: false, error: new CommandError(code) }
          replay.remember(key, Promise.resolve(outcome))
          known.delete(key)
          if (!RETRIED.includes(code)) known.set(key, { outcome, at: clock.elapsed() })
        }
        await clock.advance(wait)
      }
    }),
  )
})

test('whatever reads and writes run in between, a write never runs twice within five minutes', async () => {
  const some = (kind: 'write' | 'read' | 'flood' | 'refused' | 'wait', n: number, data = 0) =>
    fc.record({ kind: fc.constant(kind), n: fc.nat(n), data: fc.nat(data) })
  const step = fc.oneof(
    { weight: 4, arbitrary: some('write', 5, 3 * MEBIBYTE) },
    { weight: 2, arbitrary: some('read', 5, 5 * MEBIBYTE) },
    some('flood', 30_000),
    some('refused', 5),
    some('wait', 2 * MINUTES),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const clock = new FakeClock()
      const replay = new Replay(clock)
      const ran = new Map<string, number>()
      const flood = (n: number) => {
        for (let i = 0; i < n; i++) read(`flood${n} ${i}`, NOTHING)
      }
      const write = async (key: string, outcome: Outcome) => {
        const known = await replay.recall(key)
        const at = ran.get(key) ?? Number.NEGATIVE_INFINITY
        expect(known?.ok ?? false).toBe(clock.elapsed() - at < 5 * MINUTES)
        if (known !== undefined) return
        replay.remember(key, Promise.resolve(outcome), () => true)
        ran.set(key, clock.elapsed())
      }
      const read = (key: string, outcome: Outcome) => replay.remember(key, Promise.resolve(outcome))
      for (const { kind, n, data } of steps) {
        const outcome: Outcome = { ok: true, json: 'x'.repeat(data) }
        if (kind === 'write') await write(`write${n}`, outcome)
        if (kind === 'read') read(`read${n}`, outcome)
        if (kind === 'flood') flood(n)
        if (kind === 'refused') replay.remember(`refused${n}`, Promise.resolve(REFUSED), () => false)
        if (kind === 'wait') await clock.advance(n)
        await turn()
      }
    }),
    { numRuns: runs(10) },
  )
})
