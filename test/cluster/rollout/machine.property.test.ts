import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  checkName,
  isOrderOf,
  nextWave,
  plan,
  type RolloutEvent,
  readRollout,
  reduce,
  stepsOf,
  type TargetApp,
} from '../../../src/cluster/rollout/record.ts'
import { CommandError } from '../../../src/contract/errors.ts'
import type { Rollout, RolloutOrder, RolloutStep } from '../../../src/contract/rollout.ts'
import { createTopics } from '../../../src/contract/topics.ts'

const NOW = '2026-01-01T00:00:00.000Z'
const topics = createTopics('b')
const FAILURE = { code: 'hub_failed', message: 'It failed.' }
const nameOf = ({ hub, app }: RolloutStep) => `${hub}/${app}`

const readBack = (rollout: Rollout) => readRollout(topics, topics.of('rollout', rollout), JSON.stringify(rollout))

const few = fc.integer({ min: 1, max: 5 })
const orders = fc.record({
  command: fc.constantFrom('restart' as const, 'install' as const),
  app: fc.constant('*'),
  canary: fc.integer({ min: 1, max: 3 }),
  batch: few,
  stop_after_failures: few,
})
const apps = fc.uniqueArray(
  fc.record({
    hub: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    app: fc.constantFrom('app', '__proto__', 'constructor', '7', 'é/ü'),
    enabled: fc.constant(true),
  }),
  { selector: nameOf, minLength: 1 },
)
/** Random events, each of which concerns one of the current steps or the whole rollout. */
const happenings = fc.array(
  fc.record({
    what: fc.oneof(
      { weight: 60, arbitrary: fc.constantFrom('answered' as const, 'done' as const) },
      { weight: 6, arbitrary: fc.constant('failed' as const) },
      { weight: 6, arbitrary: fc.constant('owner dies' as const) },
      { weight: 1, arbitrary: fc.constantFrom('cancelled' as const, 'not_allowed' as const) },
    ),
    which: fc.nat(4),
  }),
  { maxLength: 200, size: 'max' },
)

/** Checks all invariants after each event. */
class Life {
  rollout: Rollout
  readonly #order: readonly string[]
  readonly #settled = new Map<string, 'done' | 'failed'>()
  readonly #confirmed = new Set<string>()

  constructor(rollout: Rollout) {
    this.rollout = rollout
    this.#order = stepsOf(rollout).map(nameOf)
  }

  apply(event: RolloutEvent): void {
    const before = this.rollout
    this.rollout = reduce(before, event)
    if (this.rollout === before) return
    const current = new Set(this.rollout.current.map(nameOf))
    for (const step of before.current) {
      if (current.has(nameOf(step)) || event.kind === 'begin') continue
      expect(this.#settled.has(nameOf(step))).toBe(false)
      this.#settled.set(nameOf(step), event.kind === 'done' ? 'done' : 'failed')
    }
    if (event.kind === 'answered' || event.kind === 'failed') this.#confirmed.add(nameOf(event.step))
    this.#check()
  }

  begin(): void {
    const { canary, batch, stop_after_failures } = this.rollout
    const wave = nextWave(this.rollout).map(nameOf)
    if (wave.length > 0) {
      const failures = this.rollout.failed.length
      expect(failures).toBeLessThan(stop_after_failures)
      const canaries = this.#order.slice(0, canary)
      const isCanary = wave.some((one) => canaries.includes(one))
      if (isCanary) expect(wave.every((one) => canaries.includes(one))).toBe(true)
      else expect(canaries.every((one) => this.#settled.get(one) === 'done')).toBe(true)
      expect(wave.length).toBeLessThanOrEqual(batch)
      for (const one of wave) expect(this.#settled.has(one)).toBe(false)
    }
    this.apply({ kind: 'begin' })
  }

  /** Simulates another process that reads the record, and sends the steps that might not have been sent. */
  ownerDies(): void {
    const found = readBack(this.rollout)
    expect(found).toEqual(this.rollout)
    if (found === undefined) return
    this.rollout = found
    for (const step of found.current) if (step.phase === 'sent') expect(this.#confirmed.has(nameOf(step))).toBe(false)
  }

  finish(): void {
    for (let rounds = 0; this.rollout.state === 'running'; rounds += 1) {
      expect(rounds).toBeLessThan(1_000)
      this.begin()
      for (const step of this.rollout.current) {
        this.apply({ kind: 'answered', step })
        this.apply({ kind: 'done', step })
      }
    }
  }

  #check(): void {
    const { current, batch, done, failed, total, state, reason, canary, stop_after_failures } = this.rollout
    expect(current.length).toBeLessThanOrEqual(batch)
    expect(done).toBe([...this.#settled.values()].filter((one) => one === 'done').length)
    expect(failed.map(nameOf).sort()).toEqual(
      [...this.#settled]
        .filter(([, as]) => as === 'failed')
        .map(([name]) => name)
        .sort(),
    )
    const canaryFailed = failed.some((step) => this.#order.indexOf(nameOf(step)) < canary)
    if (canaryFailed || failed.length >= stop_after_failures) expect(reason).not.toBeNull()
    if (state === 'running') return
    expect(current).toEqual([])
    expect(nextWave(this.rollout)).toEqual([])
    if (state === 'done') expect([done + failed.length, reason]).toEqual([total, null])
    expect(state === 'cancelled').toBe(reason === 'cancelled')
  }
}

test('in any order of events, canaries go first and alone, no batch is too large, nothing confirmed is sent again, and enough failures end it', () => {
  const states = new Set<string>()
  fc.assert(
    fc.property(orders, apps, happenings, (order, known, events) => {
      const life = new Life(plan('t', order, known, NOW))
      for (const { what, which } of events) {
        life.begin()
        const step = life.rollout.current[which % Math.max(1, life.rollout.current.length)]
        if (what === 'owner dies') life.ownerDies()
        else if (what === 'cancelled' || what === 'not_allowed') life.apply({ kind: 'end', reason: what })
        else if (step !== undefined && what === 'failed') life.apply({ kind: 'failed', step, failure: FAILURE })
        else if (step !== undefined && what !== 'failed') life.apply({ kind: what, step })
      }
      life.finish()
      states.add(`${life.rollout.state} ${life.rollout.reason}`)
    }),
    { numRuns: 500 },
  )
  expect([...states].sort()).toEqual([
    'cancelled cancelled',
    'done null',
    'stopped canary_failed',
    'stopped failures',
    'stopped not_allowed',
  ])
})

test('a step is not done before its answer, and a rollout that has ended does not change', () => {
  const first = reduce(plan('t', { command: 'restart', app: 'a' }, [{ hub: 'h', app: 'a', enabled: true }], NOW), {
    kind: 'begin',
  })
  const step = { hub: 'h', app: 'a' }
  expect(reduce(first, { kind: 'done', step })).toBe(first)
  const ended = reduce(first, { kind: 'failed', step, failure: FAILURE })
  expect(ended).toMatchObject({ state: 'stopped', reason: 'canary_failed', failed: [{ ...step, ...FAILURE }] })
  expect(reduce(ended, { kind: 'end', reason: 'cancelled' })).toBe(ended)
})

const homes = (count: number): TargetApp[] =>
  Array.from({ length: count }, (_, i) => ({
    hub: `house-${String(i).padStart(4, '0')}`,
    app: 'com.example.app',
    enabled: true,
  }))
const code = (act: () => unknown) => {
  try {
    act()
  } catch (error) {
    if (error instanceof CommandError) return error.code
    throw error
  }
  return 'ok'
}

test('an order names apps and hubs by patterns; an app that was switched off on purpose is not restarted', () => {
  const known = [
    { hub: 'b', app: 'com.one', enabled: true },
    { hub: 'a', app: 'com.two', enabled: null },
    { hub: 'a', app: 'com.one', enabled: false },
    { hub: 'c', app: 'org.one', enabled: true },
  ]
  const steps = (order: RolloutOrder) => stepsOf(plan('t', order, known, NOW)).map(nameOf)
  expect(steps({ command: 'restart', app: 'com.*' })).toEqual(['a/com.two', 'b/com.one'])
  expect(steps({ command: 'install', app: '*.one', hubs: '?' })).toEqual(['a/com.one', 'b/com.one', 'c/org.one'])
  expect(steps({ command: 'install', app: 'com.one', hubs: 'b' })).toEqual(['b/com.one'])
  expect(code(() => steps({ command: 'restart', app: 'com.three' }))).toBe('unknown_app')
  expect(code(() => steps({ command: 'restart', app: '*', pause: '10ms' }))).toBe('invalid_payload')
})

test('the record of a thousand hubs stays small, and more than two thousand steps are refused', () => {
  const order = { command: 'restart', app: '*' } as const
  const thousand = plan('t', order, homes(1_000), NOW)
  expect(JSON.stringify(thousand).length).toBeLessThan(16 * 1024)
  expect(readBack(thousand)).toEqual(thousand)
  expect(code(() => plan('t', order, homes(2_000), NOW))).toBe('ok')
  expect(code(() => plan('t', order, homes(2_001), NOW))).toBe('invalid_payload')
  const long = homes(1_900).map(({ hub, ...rest }) => ({ ...rest, hub: hub.padEnd(40, 'x') }))
  expect(code(() => plan('t', order, long, NOW))).toBe('invalid_payload')
})

test('a name that would be in the place of a hub name is refused', () => {
  for (const name of ['state', 'info', 'event', 'summary', 'health', 'app', 'cmd', 'result', 'x'.repeat(65)]) {
    expect(`${name} ${code(() => checkName(name))}`).toBe(`${name} invalid_payload`)
  }
  for (const name of ['7', 'update/2026 #1', 'healthy']) expect(code(() => checkName(name))).toBe('ok')
})

test('an order is recognised by all its values, including defaults', () => {
  const rollout = plan('t', { command: 'restart', app: 'com.example.app' }, homes(1), NOW)
  expect(isOrderOf(rollout, { command: 'restart', app: 'com.example.app', hubs: '*', canary: 1, batch: 10 })).toBe(true)
  expect(isOrderOf(rollout, { command: 'restart', app: 'com.example.app', pause: '31s' })).toBe(false)
})

test('a message that is not a valid record of its topic is ignored', () => {
  const rollout = reduce(plan('t', { command: 'restart', app: '*', canary: 2 }, homes(3), NOW), { kind: 'begin' })
  const [one] = rollout.current
  if (one === undefined) throw new Error('nothing is under way')
  const read = (change: object, topic = 'b/rollout/t') =>
    readRollout(topics, topic, JSON.stringify({ ...rollout, ...change }))
  expect(read({})).toEqual(rollout)
  expect(read({}, 'b/rollout/u')).toBeUndefined()
  expect(readRollout(topics, 'b/rollout/t', '{')).toBeUndefined()
  const wrong: object[] = [
    { total: 4 },
    { total: 0, targets: [] },
    { done: 2 },
    { batch: 0 },
    { canary: 0 },
    { pause: 'soon' },
    { current: [one, one] },
    { current: [{ ...one, hub: 'elsewhere' }] },
    { failed: [{ hub: one.hub, app: one.app, ...FAILURE }] },
    { command: 'uninstall' },
    { more: true },
    { targets: [...rollout.targets, ...rollout.targets], total: 6 },
  ]
  for (const change of wrong) expect([change, read(change)]).toEqual([change, undefined])
})
