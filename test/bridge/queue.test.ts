import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CommandQueue } from '../../src/bridge/queue.ts'
import { Replay } from '../../src/bridge/replay.ts'
import type { Outcome } from '../../src/contract/answer.ts'
import { CommandError } from '../../src/contract/errors.ts'
import { FakeClock } from '../support/fake-clock.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A task that ends when told to, and tells when it began. */
function task(begun: string[], name: string) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const run = async () => {
    begun.push(name)
    await promise
  }
  return { run, end: resolve }
}

describe('the queue of a hub', () => {
  test('runs the commands of one app in order, and those of others beside them', async () => {
    const queue = new CommandQueue({ concurrency: 4, maxWaiting: 32 }, new FakeClock())
    const begun: string[] = []
    const tasks = ['a1', 'a2', 'b1'].map((name) => ({ name, ...task(begun, name) }))
    const all = Promise.all(tasks.map(({ name, run }) => queue.run(name.slice(0, 1), 1e9, run)))
    await turn()
    expect(begun).toEqual(['a1', 'b1'])
    for (const { end } of tasks) end()
    await all
    expect(begun).toEqual(['a1', 'b1', 'a2'])
  })

  test('never has more under way than it may, and every app gets its turn', async () => {
    const queue = new CommandQueue({ concurrency: 2, maxWaiting: 32 }, new FakeClock())
    const begun: string[] = []
    const tasks = ['a1', 'a2', 'a3', 'b1', 'c1'].map((name) => ({ name, ...task(begun, name) }))
    const all = Promise.all(tasks.map(({ name, run }) => queue.run(name.slice(0, 1), 1e9, run)))
    await turn()
    expect(begun).toEqual(['a1', 'b1'])
    tasks[0]?.end()
    await turn()
    expect(begun.slice(2)).toHaveLength(1)
    for (const { end } of tasks) end()
    await all
    expect([...begun].sort()).toEqual(['a1', 'a2', 'a3', 'b1', 'c1'])
    expect(begun.indexOf('c1')).toBeLessThan(begun.indexOf('a3'))
  })

  test('refuses what would wait behind too many', async () => {
    const queue = new CommandQueue({ concurrency: 4, maxWaiting: 2 }, new FakeClock())
    const blocker = task([], 'a')
    const running = [blocker.run, blocker.run, blocker.run].map((run) => queue.run('a', 1e9, run))
    await expect(queue.run('a', 1e9, blocker.run)).rejects.toMatchObject({ code: 'busy' })
    blocker.end()
    await Promise.all(running)
  })

  test('refuses at its deadline what still waits, and does not begin it later', async () => {
    const clock = new FakeClock()
    const queue = new CommandQueue({ concurrency: 4, maxWaiting: 32 }, clock)
    const begun: string[] = []
    const first = task(begun, 'first')
    const running = queue.run('a', 1e9, first.run)
    const late = expect(queue.run('a', 10_000, task(begun, 'late').run)).rejects.toMatchObject({ code: 'expired' })
    await clock.advance(9_999)
    expect(clock.pending).toBe(1)
    await clock.advance(1)
    await late
    first.end()
    await running
    expect(begun).toEqual(['first'])
    expect(clock.pending).toBe(0)
  })

  test('does not begin what comes at its deadline, and tells a task when that passes', async () => {
    const clock = new FakeClock()
    const queue = new CommandQueue({ concurrency: 4, maxWaiting: 32 }, clock)
    const begun: string[] = []
    await expect(queue.run('a', 0, task(begun, 'late').run)).rejects.toMatchObject({ code: 'expired' })
    expect(begun).toEqual([])
    await queue.run('a', 1000, async (isLate) => {
      await clock.advance(999)
      expect(isLate()).toBe(false)
      await clock.advance(1)
      expect(isLate()).toBe(true)
    })
  })

  test('counts what waits no longer: begun or expired, it leaves its place and its timer', async () => {
    const clock = new FakeClock()
    const queue = new CommandQueue({ concurrency: 1, maxWaiting: 1 }, clock)
    await clock.advance(5000)
    const begun: string[] = []
    const first = task(begun, 'first')
    const second = task(begun, 'second')
    const running = queue.run('a', 1e9, first.run)
    const expired = expect(queue.run('a', 10_000, task(begun, 'expired').run)).rejects.toMatchObject({
      code: 'expired',
    })
    expect(clock.waits).toEqual([5000])
    await clock.advance(5000)
    await expired
    const next = queue.run('a', 20_000, second.run)
    first.end()
    await running
    await turn()
    expect(begun).toEqual(['first', 'second'])
    expect(clock.pending).toBe(0)
    second.end()
    await next
  })

  test('frees the place of a task that fails', async () => {
    const queue = new CommandQueue({ concurrency: 1, maxWaiting: 32 }, new FakeClock())
    await expect(queue.run('a', 1e9, () => Promise.reject(new Error('x')))).rejects.toThrow('x')
    await expect(queue.run('b', 1e9, () => Promise.resolve('done'))).resolves.toBe('done')
  })

  test('begins each command once and in its order, whatever comes when', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(3)), { maxLength: 60 }),
        async (plan) => {
          const queue = new CommandQueue({ concurrency: 2, maxWaiting: 100 }, new FakeClock())
          const begun: number[] = []
          let active = 0
          await Promise.all(
            plan.map(([lane, turns], index) =>
              queue.run(lane, 1e9, async () => {
                begun.push(index)
                expect(++active).toBeLessThanOrEqual(2)
                for (let i = 0; i < turns; i++) await Promise.resolve()
                active--
              }),
            ),
          )
          expect([...begun].sort((a, b) => a - b)).toEqual(plan.map((_, index) => index))
          for (const lane of ['a', 'b', 'c']) {
            const order = begun.filter((index) => plan[index]?.[0] === lane)
            expect(order).toEqual([...order].sort((a, b) => a - b))
          }
        },
      ),
    )
  })
})

describe('the memory of answers', () => {
  const done: Outcome = { ok: true, json: 'null' }
  const failed = (code: 'busy' | 'forbidden'): Outcome => ({ ok: false, error: new CommandError(code) })

  test('lasts five minutes, also for what is still under way', async () => {
    const clock = new FakeClock()
    const replay = new Replay(clock)
    replay.remember('k', Promise.resolve(done))
    await clock.advance(299_999)
    expect(await replay.recall('k')).toBe(done)
    await clock.advance(1)
    expect(replay.recall('k')).toBeUndefined()
  })

  test('keeps what was decided, but not what asks to be tried again', async () => {
    const replay = new Replay(new FakeClock())
    replay.remember('busy', Promise.resolve(failed('busy')))
    replay.remember('forbidden', Promise.resolve(failed('forbidden')))
    await turn()
    expect(replay.recall('busy')).toBeUndefined()
    expect(await replay.recall('forbidden')).toMatchObject({ ok: false })
  })

  test('is bounded, the oldest going first', () => {
    const replay = new Replay(new FakeClock())
    for (let i = 0; i < 30_000; i++) replay.remember(`k${i}`, Promise.resolve(done))
    expect(replay.recall('k0')).toBeUndefined()
    expect(replay.recall('k29999')).toBeDefined()
  })

  test('lasts five minutes for each, also where another one was remembered anew', async () => {
    const clock = new FakeClock()
    const replay = new Replay(clock)
    replay.remember('first', Promise.resolve(done))
    await clock.advance(100_000)
    replay.remember('second', Promise.resolve(done))
    await clock.advance(100_000)
    replay.remember('first', Promise.resolve(done))
    await clock.advance(200_000)
    expect(replay.recall('second')).toBeUndefined()
    expect(await replay.recall('first')).toBe(done)
  })

  test('keeps at most 8 MiB of data, the newest, and forgets no write for it', async () => {
    const replay = new Replay(new FakeClock())
    replay.remember('write', Promise.resolve(done), () => true)
    const million = `"${'ü'.repeat(1024 * 1024)}"`
    for (let i = 0; i < 70; i++) replay.remember(`k${i}`, Promise.resolve({ ok: true, json: million }))
    await turn()
    const kept = Array.from({ length: 70 }, (_, i) => i).filter((i) => replay.recall(`k${i}`) !== undefined)
    expect(kept).toEqual([67, 68, 69])
    expect(await replay.recall('write')).toBe(done)
  })

  test('does not keep an answer that is larger than all may be', async () => {
    const replay = new Replay(new FakeClock())
    replay.remember('small', Promise.resolve({ ok: true, json: '1' }))
    replay.remember('large', Promise.resolve({ ok: true, json: `"${'x'.repeat(5 * 1024 * 1024)}"` }))
    await turn()
    expect(replay.recall('large')).toBeUndefined()
    expect(replay.recall('small')).toBeDefined()
  })
})
