/** Tests what a rollout records when its bridge stops or hands over gracefully during a step. */
import { describe, expect } from 'vitest'
import { LEADER, ownerOf } from '../../../src/cluster/fleet.ts'
import type { RunningBridge } from '../../support/bridge.ts'
import { BROKERS } from '../../support/brokers.ts'
import { natsPath, startNats } from '../../support/nats.ts'
import { until } from '../../support/until.ts'
import { Street, test } from './street.ts'

const STATE = 'hub2mqtt/bridge/state'
const STOP_MS = 5_000
const SLOW = { ms: 500, operation: 'restartApp' } as const

/** Stops a bridge during a step, and expects that another bridge does not repeat this step. */
async function stopDuringStep(street: Street, first: RunningBridge): Promise<void> {
  street.hub('h0').behave('slow-headers', SLOW)
  await street.rollOut()
  await until('the restart', () => street.asked()[0] === 1)
  await first.stop()
  expect(await street.ended()).toMatchObject({ state: 'done', done: 2, failed: [] })
  expect(street.asked()).toEqual([1, 1])
}

test.for(BROKERS)(
  'on %s, a bridge that stops records the answers that still arrive, and sends no more steps',
  async (broker) => {
    await using street = await Street.build({ broker, houses: 3 })
    const first = await street.bridge()
    street.hub('h0').behave('slow-headers', SLOW)
    street.hub('h1').behave('never-answer', { operation: 'restartApp', times: 1 })
    await street.rollOut({ canary: 2 })
    await until('both restarts', () => street.asked().join() === '1,1,0')
    const begun = performance.now()
    await first.stop()
    expect(performance.now() - begun).toBeLessThan(STOP_MS)
    await until('offline', () => street.observer.last(STATE) === 'offline')
    const record = street.rollout('t')
    expect(record?.current).toMatchObject([
      { hub: 'h0', phase: 'answered' },
      { hub: 'h1', phase: 'sent' },
    ])
    // The bridge publishes no record after its last state, because other bridges act on that state.
    const topics = street.observer.seen.map(({ topic }) => topic)
    expect(topics.lastIndexOf('hub2mqtt/rollout/t')).toBeLessThan(topics.lastIndexOf(STATE))
    await street.bridge()
    const end = { state: 'done', total: 3, done: 3, failed: [], started_at: record?.started_at }
    expect(await street.ended()).toMatchObject(end)
    // The next bridge repeats only the aborted step.
    expect(street.asked()).toEqual([1, 2, 1])
  },
)

test('the bridge on standby does not repeat a step that the active one finished while it stopped', async () => {
  await using street = await Street.build({ houses: 2 })
  const first = await street.bridge()
  const second = street.begin()
  await until('two bridges', () => second.lines.some((line) => line.includes('this one stands by')))
  await stopDuringStep(street, first)
})

describe.skipIf(natsPath === undefined)('in a fleet with leases', () => {
  const FIRST = 'a'
  /** Candidates for a member that becomes the leader, and the owner of `h0`, when it joins `FIRST`. */
  const names = Array.from({ length: 100 }, (_, i) => `b${i}`)
  const isSecond = (name: string) => [LEADER, 'h0'].every((one) => ownerOf(one, [FIRST, name]) === name)
  const SECOND = names.find(isSecond) ?? ''

  test('the next leader does not repeat a step that its predecessor finished while it stopped', async () => {
    await using street = await Street.build({ houses: 2 })
    const nats = street.use(await startNats())
    const first = street.join(nats, SECOND)
    street.join(nats, FIRST)
    const isWhole = () => street.observer.last('hub2mqtt/fleet')?.includes('"count":2')
    await until('the fleet', isWhole, 30_000)
    await street.online()
    await stopDuringStep(street, first)
  })

  test('a step that is aborted because a new leader takes over its hub does not fail: the leader sends it again', async () => {
    await using street = await Street.build({ houses: 2 })
    const nats = street.use(await startNats())
    street.join(nats, FIRST)
    await street.online()
    street.hub('h0').behave('never-answer', { operation: 'restartApp', times: 1 })
    await street.rollOut()
    await until('the restart', () => street.asked()[0] === 1)
    street.join(nats, SECOND)
    expect(await street.ended()).toMatchObject({ state: 'done', done: 2, failed: [] })
    expect(street.asked()).toEqual([2, 1])
  })
})
