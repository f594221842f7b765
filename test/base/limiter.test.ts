import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Limiter, type LimiterOptions, type Slot } from '../../src/base/limiter.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { runs } from '../support/runs.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))

/** Returns the tasks that have begun, and `join`, which requests a task that runs until its `end` is called. */
function tasksOf(limiter: Limiter) {
  const begun: { readonly slot: Slot; readonly end: () => void }[] = []
  const join = (signal?: AbortSignal) =>
    limiter.run(signal === undefined ? {} : { signal }, (slot) => new Promise<void>((end) => begun.push({ slot, end })))
  return { begun, join }
}

describe('a limiter with lanes', () => {
  test('reports to a task when its deadline passes', async () => {
    const clock = new FakeClock()
    const limiter = new Limiter({ slots: 4, maxWaiting: 32, clock })
    await limiter.run({ lane: 'a', deadline: 1000 }, async ({ isLate }) => {
      await clock.advance(999)
      expect(isLate()).toBe(false)
      await clock.advance(1)
      expect(isLate()).toBe(true)
    })
  })

  test('starts tasks 50 ms apart while the process is busy', async () => {
    const clock = new FakeClock()
    let isBusy = true
    const limiter = new Limiter({ slots: 48, clock, isBusy: () => isBusy })
    const { begun, join } = tasksOf(limiter)
    await clock.advance(1000)
    const joined = Array.from({ length: 5 }, () => join())
    await clock.advance(49)
    expect(begun.length).toBe(1)
    await clock.advance(1)
    expect(begun.length).toBe(2)
    isBusy = false
    await clock.advance(50)
    expect(begun.length).toBe(5)
    for (const { end } of begun) end()
    await Promise.all(joined)
  })

  test('keeps no timer for a task that has begun', async () => {
    const clock = new FakeClock()
    const limiter = new Limiter({ slots: 1, clock })
    const { promise, resolve } = Promise.withResolvers<void>()
    const first = limiter.run({ deadline: 1000 }, () => promise)
    const second = limiter.run({ deadline: 1000 }, () => Promise.resolve(clock.pending))
    expect(clock.pending).toBe(1)
    resolve()
    await first
    expect(await second).toBe(0)
  })

  test('frees the slot of a task that fails', async () => {
    const limiter = new Limiter({ slots: 1, maxWaiting: 32, clock: new FakeClock() })
    await expect(limiter.run({ lane: 'a', deadline: 1e9 }, () => Promise.reject(new Error('x')))).rejects.toThrow('x')
    await expect(limiter.run({ lane: 'b', deadline: 1e9 }, () => Promise.resolve('done'))).resolves.toBe('done')
  })
})

describe('a limiter with four slots', () => {
  test('gives the slot of a task that does not confirm progress in time to the next task', async () => {
    const clock = new FakeClock()
    const { begun, join } = tasksOf(new Limiter({ clock, slots: 4, slotTimeoutMs: 1000 }))
    for (let i = 0; i < 10; i += 1) void join()
    begun[0]?.slot.keep()
    await clock.advance(999)
    expect(begun).toHaveLength(4)
    await clock.advance(1)
    // Three tasks lost their slots, because they did not call `keep` in time.
    expect(begun).toHaveLength(7)
    for (const { slot } of begun) slot.keep()
    await clock.advance(60_000)
    expect(begun).toHaveLength(7)
    // A task that has lost its slot frees no slot when it ends.
    for (const { end } of begun.slice(1, 4)) end()
    await settled()
    expect(begun).toHaveLength(7)
    begun[0]?.slot.leave()
    begun[0]?.end()
    await settled()
    expect(begun).toHaveLength(8)
  })

  test('lets an aborted task continue without a slot', async () => {
    const { begun, join } = tasksOf(new Limiter({ clock: new FakeClock(), slots: 1 }))
    const ending = new AbortController()
    void join()
    void join(ending.signal)
    void join()
    ending.abort()
    await settled()
    expect(begun).toHaveLength(2)
    begun[1]?.end()
    await settled()
    expect(begun).toHaveLength(2)
    begun[0]?.end()
    await settled()
    expect(begun).toHaveLength(3)
  })
})

describe('a limiter that is restricted for some time', () => {
  test('begins tasks at intervals, two at a time, until the restriction ends', async () => {
    const clock = new FakeClock()
    const limiter = new Limiter({ clock, slots: Number.POSITIVE_INFINITY })
    const { begun, join } = tasksOf(limiter)
    for (let i = 0; i < 3; i += 1) void join()
    expect(begun).toHaveLength(3)
    limiter.restrict({ slots: 2, apartMs: 150 }, 10_000)
    for (let i = 0; i < 4; i += 1) void join()
    await clock.advance(1_000)
    expect(begun).toHaveLength(3)
    for (const { end } of begun.slice(0, 2)) end()
    await settled()
    await clock.advance(1_000)
    expect(begun).toHaveLength(4)
    for (const { end } of begun) end()
    await settled()
    expect(begun).toHaveLength(5)
    await clock.advance(149)
    expect(begun).toHaveLength(5)
    await clock.advance(1)
    expect(begun).toHaveLength(6)
    await clock.advance(10_000)
    begun[5]?.end()
    await settled()
    for (let i = 0; i < 10; i += 1) void join()
    await settled()
    expect(begun).toHaveLength(17)
    expect(clock.pending).toBe(0)
  })

  test('an aborted task delays no other task', async () => {
    const limiter = new Limiter({ clock: new FakeClock(), slots: 4 })
    const { begun, join } = tasksOf(limiter)
    const ending = new AbortController()
    limiter.restrict({ slots: 1, apartMs: 150 }, 10_000)
    for (let i = 0; i < 3; i += 1) void join(ending.signal)
    expect(begun).toHaveLength(1)
    ending.abort()
    void join(ending.signal)
    await settled()
    expect(begun).toHaveLength(4)
  })
})

interface Asked {
  readonly at: number
  readonly lane: string | null
  readonly ms: number
  readonly deadline: number | null
  readonly abortAt: number | null
}

const LANES = ['a', 'b', 'c', null]
const ASKED: fc.Arbitrary<Asked> = fc.record({
  at: fc.nat(20),
  lane: fc.constantFrom(...LANES),
  ms: fc.nat(8),
  deadline: fc.option(fc.nat(30)),
  abortAt: fc.option(fc.nat(30), { freq: 1 }),
})

interface TaskEvent {
  readonly what: string
  readonly one: number
  readonly at: number
}

/** Requests a turn for each task; returns all events in order. */
async function carryOut(plan: readonly Asked[], options: Omit<LimiterOptions, 'clock'>): Promise<TaskEvent[]> {
  const clock = new FakeClock()
  const limiter = new Limiter({ ...options, clock })
  const log: TaskEvent[] = []
  const note = (what: string, one: number) => log.push({ what, one, at: clock.elapsed() })
  const work = (one: number, ms: number, signal: AbortSignal) => () => {
    note(signal.aborted ? 'let go' : 'begun', one)
    const { promise, resolve } = Promise.withResolvers<void>()
    clock.after(ms, () => {
      note('ended', one)
      resolve()
    })
    return promise
  }
  for (const [one, { at, lane, ms, deadline, abortAt }] of plan.entries()) {
    const { signal, ...ending } = abortable()
    const turn = { ...(lane !== null && { lane }), ...(deadline !== null && { deadline }), signal }
    clock.after(at, () => {
      note('asked', one)
      limiter.run(turn, work(one, ms, signal)).catch((error: Error) => note(error.message, one))
    })
    if (abortAt !== null) clock.after(abortAt, ending.abort)
  }
  for (let ms = 0; ms < 400 && clock.pending > 0; ms += 1) await clock.advance(1)
  expect(clock.pending).toBe(0)
  return log
}

function abortable() {
  const ending = new AbortController()
  return { signal: ending.signal, abort: () => ending.abort() }
}

/** Yields each event with the tasks that were waiting and running (`under`) right before it, in order. */
function* momentsOf(log: readonly TaskEvent[]) {
  const waiting = new Set<number>()
  const under = new Set<number>()
  for (const event of log) {
    yield { ...event, waiting: [...waiting], under: [...under] }
    waiting.delete(event.one)
    under.delete(event.one)
    if (event.what === 'asked') waiting.add(event.one)
    if (event.what === 'begun') under.add(event.one)
  }
}

describe('in any order of requests', () => {
  const PLAN = fc.array(ASKED, { maxLength: 30 })
  const OPTIONS = fc.record({
    slots: fc.integer({ min: 1, max: 4 }),
    apartMs: fc.nat(3),
    maxWaiting: fc.integer({ min: 1, max: 5 }),
  })
  type Options = typeof OPTIONS extends fc.Arbitrary<infer T> ? T : never

  const holds = (check: (log: readonly TaskEvent[], plan: readonly Asked[], options: Options) => void) =>
    fc.assert(
      fc.asyncProperty(PLAN, OPTIONS, async (plan, options) => check(await carryOut(plan, options), plan, options)),
      { numRuns: runs(100), examples: [[LAST_OF_ITS_LANE, { slots: 1, apartMs: 3, maxWaiting: 2 }]] },
    )

  /** A plan in which a task expires at the same time as another task of its lane is requested. */
  const LAST_OF_ITS_LANE = [
    [2, 'a', 0],
    [2, 'a', 0],
    [19, 'c', 0],
    [6, 'a', 0],
    [2, 'b', 5],
    [6, 'c', 0, 19],
    [2, 'a', 0],
    [2, null, 0],
  ].map(([at, lane, ms, deadline = null]) => ({ at, lane, ms, deadline, abortAt: null }) as Asked)

  const ofLane = (plan: readonly Asked[], lane: string | null | undefined) => (one: number) => plan[one]?.lane === lane

  test('each task begins once, or is refused: at its deadline, or because its lane is full', async () => {
    await holds((log, plan) => {
      const ends = log.filter(({ what }) => what !== 'asked' && what !== 'ended')
      expect(ends.map(({ one }) => one).sort((a, b) => a - b)).toEqual([...plan.keys()])
      for (const { what, one, at } of ends) {
        const deadline = plan[one]?.deadline ?? Number.POSITIVE_INFINITY
        const asked = plan[one]?.at ?? 0
        if (what === 'expired') expect(at).toBe(Math.max(deadline, asked))
        else expect(at).toBeLessThan(deadline)
        if (what === 'busy') expect(at).toBe(asked)
      }
    })
  })

  test('a lane is full when the maximum number of tasks wait in it', async () => {
    await holds((log, plan, { maxWaiting }) => {
      for (const { what, one, waiting } of momentsOf(log)) {
        const others = waiting.filter((other) => other !== one).filter(ofLane(plan, plan[one]?.lane))
        expect(others.length).toBeLessThanOrEqual(maxWaiting)
        if (what === 'busy') expect(others.length).toBe(maxWaiting)
      }
    })
  })

  test('no more tasks run than there are slots, one per lane, and they begin at intervals', async () => {
    await holds((log, plan, { slots, apartMs }) => {
      let begunAt = Number.NEGATIVE_INFINITY
      for (const { what, one, at, under } of momentsOf(log)) {
        if (what !== 'begun') continue
        const lane = plan[one]?.lane
        if (lane !== null) expect(under.filter(ofLane(plan, lane))).toEqual([])
        expect(under.length).toBeLessThan(slots)
        expect(at - begunAt).toBeGreaterThanOrEqual(apartMs)
        begunAt = at
      }
    })
  })

  test('tasks of one lane, and tasks without a lane, begin in order', async () => {
    await holds((log, plan) => {
      for (const { what, one, waiting } of momentsOf(log)) {
        if (what === 'begun') expect(waiting.find(ofLane(plan, plan[one]?.lane))).toBe(one)
      }
    })
  })

  test('no lane that could begin is overtaken twice by another', async () => {
    await holds((log, plan) => {
      /** Maps each lane that could begin a task to the lanes that have begun a task in the meantime. */
      let overtaken = new Map<string | null, Set<string | null>>()
      for (const { what, one, waiting, under } of momentsOf(log)) {
        const lanes = new Set(waiting.map((other) => plan[other]?.lane ?? null))
        const could = [...lanes].filter((lane) => lane === null || !under.some(ofLane(plan, lane)))
        overtaken = new Map(could.map((lane) => [lane, overtaken.get(lane) ?? new Set()]))
        const lane = plan[one]?.lane ?? null
        // A lane whose last waiting task has expired moves to the end of the queue with its next task.
        if (what === 'begun' || what === 'expired') overtaken.delete(lane)
        if (what !== 'begun') continue
        for (const by of overtaken.values()) {
          expect(by).not.toContain(lane)
          by.add(lane)
        }
      }
    })
  })

  test('no task waits while it could begin', async () => {
    await holds((log, plan, { slots, apartMs }) => {
      let now = Number.NEGATIVE_INFINITY
      let begunAt = now
      for (const { what, at, waiting, under } of momentsOf(log)) {
        const isOpen = under.length < slots && now - begunAt >= apartMs
        const isFree = (one: number) => plan[one]?.lane === null || !under.some(ofLane(plan, plan[one]?.lane))
        // Check the state only after all events with the same time.
        if (at !== now && isOpen) expect(waiting.filter(isFree)).toEqual([])
        now = at
        // An expired task has used a turn if its turn came at its deadline.
        if (what === 'begun' || what === 'expired') begunAt = at
      }
    })
  })
})
