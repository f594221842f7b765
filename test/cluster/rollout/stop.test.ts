/** Tests what a rollout records when its bridge stops or hands over gracefully during a step. */
import { describe, expect } from 'vitest'
import { LEADER, ownerOf } from '../../../src/cluster/fleet.ts'
import type { RunningBridge } from '../../support/bridge.ts'
import { BROKERS } from '../../support/brokers.ts'
import { Fleet } from '../../support/fleet.ts'
import { natsPath, startNats } from '../../support/nats.ts'
import { until } from '../../support/until.ts'
import { ended, restarts, rollOut, rolloutOf, test } from './rollouts.ts'

const STATE = 'hub2mqtt/bridge/state'
const STOP_MS = 5_000
const SLOW = { ms: 500, operation: 'restartApp' } as const

/** Stops a bridge during a step, and expects that another bridge does not repeat this step. */
async function stopDuringStep(fleet: Fleet, first: RunningBridge): Promise<void> {
  fleet.hub('h0').behave('slow-headers', SLOW)
  await rollOut(fleet)
  await until('the restart', () => restarts(fleet)[0] === 1)
  await first.stop()
  expect(await ended(fleet)).toMatchObject({ state: 'done', done: 2, failed: [] })
  expect(restarts(fleet)).toEqual([1, 1])
}

test.for(BROKERS)(
  'on %s, a bridge that stops records the answers that still arrive, and sends no more steps',
  async (broker) => {
    await using fleet = await Fleet.build({ broker, hubs: 3 })
    const first = await fleet.bridge()
    fleet.hub('h0').behave('slow-headers', SLOW)
    fleet.hub('h1').behave('never-answer', { operation: 'restartApp', times: 1 })
    await rollOut(fleet, { canary: 2 })
    await until('both restarts', () => restarts(fleet).join() === '1,1,0')
    const begun = performance.now()
    await first.stop()
    expect(performance.now() - begun).toBeLessThan(STOP_MS)
    await until('offline', () => fleet.observer.last(STATE) === 'offline')
    const record = rolloutOf(fleet, 't')
    expect(record?.current).toMatchObject([
      { hub: 'h0', phase: 'answered' },
      { hub: 'h1', phase: 'sent' },
    ])
    // The bridge publishes no record after its last state, because other bridges act on that state.
    const topics = fleet.observer.seen.map(({ topic }) => topic)
    expect(topics.lastIndexOf('hub2mqtt/rollout/t')).toBeLessThan(topics.lastIndexOf(STATE))
    await fleet.bridge()
    const end = { state: 'done', total: 3, done: 3, failed: [], started_at: record?.started_at }
    expect(await ended(fleet)).toMatchObject(end)
    // The next bridge repeats only the aborted step.
    expect(restarts(fleet)).toEqual([1, 2, 1])
  },
)

test('the bridge on standby does not repeat a step that the active one finished while it stopped', async () => {
  await using fleet = await Fleet.build({ hubs: 2 })
  const first = await fleet.bridge()
  const second = fleet.begin()
  await until('two bridges', () => second.lines.some((line) => line.includes('this one stands by')))
  await stopDuringStep(fleet, first)
})

describe.skipIf(natsPath === undefined)('in a fleet with leases', () => {
  const FIRST = 'a'
  /** Candidates for a member that becomes the leader, and the owner of `h0`, when it joins `FIRST`. */
  const names = Array.from({ length: 100 }, (_, i) => `b${i}`)
  const isSecond = (name: string) => [LEADER, 'h0'].every((one) => ownerOf(one, [FIRST, name]) === name)
  const SECOND = names.find(isSecond) ?? ''

  test('the next leader does not repeat a step that its predecessor finished while it stopped', async () => {
    await using fleet = await Fleet.build({ hubs: 2 })
    const nats = fleet.use(await startNats())
    const first = fleet.join(nats, SECOND)
    fleet.join(nats, FIRST)
    const isWhole = () => fleet.observer.last('hub2mqtt/fleet')?.includes('"count":2')
    await until('the fleet', isWhole, 30_000)
    await fleet.online()
    await stopDuringStep(fleet, first)
  })

  test('a step that is aborted because a new leader takes over its hub does not fail: the leader sends it again', async () => {
    await using fleet = await Fleet.build({ hubs: 2 })
    const nats = fleet.use(await startNats())
    fleet.join(nats, FIRST)
    await fleet.online()
    fleet.hub('h0').behave('never-answer', { operation: 'restartApp', times: 1 })
    await rollOut(fleet)
    await until('the restart', () => restarts(fleet)[0] === 1)
    fleet.join(nats, SECOND)
    expect(await ended(fleet)).toMatchObject({ state: 'done', done: 2, failed: [] })
    expect(restarts(fleet)).toEqual([2, 1])
  })
})
