import * as v from 'valibot'
import { test as base, describe, expect } from 'vitest'
import type { LogLevel } from '../../../src/contract/log-levels.ts'
import { createTopics } from '../../../src/contract/topics.ts'
import { Feed, type FeedOptions } from '../../../src/web/server/api/feed.ts'
import { type FleetStatus, LIVE_FRAME, type LiveFrame, type Refusals } from '../../../src/web/server/api/protocol.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const topics = createTopics('b')
const app = (id: string) => topics.of('app', { hub: 'home', app: id })
const state = (cpu: number | null, memory: number | null = 1000) =>
  JSON.stringify({ name: 'A', cpu_percent: cpu, memory_bytes: memory })

const FLEET: FleetStatus = {
  mode: 'static',
  epoch: 2,
  members: { 'shard-1': { since: null, hubs: 1 }, 'shard-2': { since: null, hubs: 0 } },
  count: 2,
  member: 'shard-1',
  acts: true,
  speaker: 'shard-2',
  owners: { home: 'shard-1' },
}

function openFeed({ fleet }: { readonly fleet?: () => FleetStatus } = {}) {
  const clock = new FakeClock()
  const world: { refusals: Refusals; level: LogLevel } = {
    refusals: { home: { uninstall: 'It is off.' } },
    level: 'info',
  }
  const retained = new Map<string, string>()
  let rendered = 0
  const render = () => {
    rendered += 1
    return retained
  }
  const refusals = () => world.refusals
  const logLevel = () => world.level
  const asked: number[] = []
  const usage = (ms: number): ReturnType<FeedOptions['usage']> => {
    asked.push(ms)
    return [[{ hub: 'home', app: 'x' }, [[1, 1.25, 4_000_000_000]]]]
  }
  const feed = new Feed({
    topics,
    retained: render,
    refusals,
    logLevel,
    usage,
    fleet,
    clock,
  })
  const hold = (topic: string, payload: string | null) => {
    if (payload === null) retained.delete(topic)
    else retained.set(topic, payload)
    feed.held(topic, payload)
  }
  const release = (prefix: string) => {
    for (const topic of retained.keys()) if (topic.startsWith(prefix)) retained.delete(topic)
    feed.released((topic) => topic.startsWith(prefix))
  }
  const read = (text: string) => v.parse(LIVE_FRAME, JSON.parse(text))
  const snapshot = () => {
    const frame = read(feed.snapshot())
    if (frame.type !== 'snapshot') throw new Error('no snapshot')
    return frame
  }
  const follow = () => {
    const frames: LiveFrame[] = []
    const end = feed.subscribe((text) => frames.push(read(text)))
    return { frames, end }
  }
  return { clock, feed, asked, hold, release, world, snapshot, follow, rendered: () => rendered }
}

const it = base.extend<{ readonly opened: ReturnType<typeof openFeed> }>({
  opened: async ({ task: _ }, use) => use(openFeed()),
})

describe('the feed', () => {
  it('begins with every retained topic of the bridge, without discovery and topics of other programs', ({
    opened: { hold, snapshot },
  }) => {
    hold('b/bridge/state', 'online')
    hold(app('x'), state(1))
    // If the base topic is the discovery prefix, both kinds of topics have the same first level.
    hold('b/device/hub2mqtt--h/config', '{}')
    hold('b/switch/hub2mqtt/hub2mqtt--h--enabled/config', '{}')
    hold('homeassistant/device/hub2mqtt--h/config', '{}')
    hold('b/home/app/y', null)
    expect(snapshot().state).toEqual([
      ['b/bridge/state', 'online'],
      [app('x'), state(1)],
    ])
    expect(snapshot().refusals).toEqual({ home: { uninstall: 'It is off.' } })
  })

  it('sends changes, only the newest of each topic, and cleared topics', async ({
    opened: { hold, follow, clock },
  }) => {
    hold(app('x'), state(1))
    hold(app('y'), state(1))
    const { frames } = follow()
    hold(app('x'), state(2))
    hold(app('x'), state(3))
    hold(app('y'), null)
    hold('b/home/state', 'online')
    hold('b/home/state', 'online')
    await clock.advance(100)
    expect(frames).toMatchObject([
      {
        type: 'changes',
        state: [
          [app('x'), state(3)],
          [app('y'), null],
          ['b/home/state', 'online'],
        ],
        happenings: [],
      },
    ])
  })

  it('sends at most ten times a second, and nothing without changes', async ({ opened: { hold, follow, clock } }) => {
    const { frames } = follow()
    for (let n = 0; n < 100; n += 1) {
      hold(app('x'), state(n))
      await clock.advance(10)
    }
    expect(frames.length).toBeGreaterThan(8)
    expect(frames.length).toBeLessThanOrEqual(10)
    hold(app('x'), state(99))
    await clock.advance(1000)
    expect(frames.length).toBeLessThanOrEqual(11)
  })

  it('sends a sign of life every five seconds while it has subscribers', async ({
    opened: { hold, follow, clock },
  }) => {
    const { frames, end } = follow()
    await clock.advance(15_000)
    expect(frames.map(({ type }) => type)).toEqual(['alive', 'alive', 'alive'])
    hold(app('x'), state(1))
    end()
    const waits = clock.waits.length
    await clock.advance(60_000)
    expect(frames).toHaveLength(3)
    expect(clock.waits).toHaveLength(waits)
  })

  it('sends changed refusals, a changed log level and a changed state of the fleet within five seconds', async () => {
    let status = FLEET
    const { follow, world, snapshot, clock } = openFeed({ fleet: () => status })
    expect(snapshot()).toMatchObject({ log_level: 'info', fleet: FLEET })
    const { frames } = follow()
    world.refusals = { home: {} }
    await clock.advance(5_000)
    world.level = 'debug'
    await clock.advance(5_000)
    status = { ...FLEET, acts: false }
    await clock.advance(5_000)
    await clock.advance(5_000)
    expect(frames).toMatchObject([
      { type: 'changes', refusals: { home: {} } },
      { type: 'changes', log_level: 'debug' },
      { type: 'changes', fleet: { acts: false } },
      { type: 'alive' },
    ])
    expect(frames[0]).not.toHaveProperty('log_level')
    expect(frames[1]).not.toHaveProperty('refusals')
    expect(openFeed().snapshot()).not.toHaveProperty('fleet')
  })

  it('keeps the state of a hub that another member takes over, and clears the others, for subscribers too', async ({
    opened: { hold, release, snapshot, follow, clock },
  }) => {
    hold('b/home/info', '{}')
    hold('b/home/state', 'online')
    hold(app('x'), state(1))
    hold('b/bridge/state', 'online')
    const { frames } = follow()
    release('b/home/')
    await clock.advance(100)
    expect(frames).toMatchObject([
      {
        state: [
          ['b/home/info', null],
          [app('x'), null],
        ],
      },
    ])
    expect(snapshot().state).toEqual([
      ['b/home/state', 'online'],
      ['b/bridge/state', 'online'],
    ])
  })

  it('keeps nothing of an app or a setting that is called state after another member has taken over its hub', ({
    opened: { hold, release, snapshot },
  }) => {
    const called = [topics.of('setting', { hub: 'home', app: 'x', name: 'state' }), app('state')]
    for (const topic of [...called, 'b/home/state']) hold(topic, 'on')
    expect(Object.keys(snapshot().since)).toEqual(['b/home/state'])
    release('b/home/')
    expect(snapshot().state).toEqual([['b/home/state', 'on']])
  })

  it('sends each event once to existing subscribers, and in the snapshot to later ones', async ({
    opened: { feed, follow, snapshot, clock },
  }) => {
    const { frames } = follow()
    feed.sent('b/home/event', '{"event_type":"crashed"}')
    const late = follow()
    expect(snapshot().recent).toMatchObject([{ topic: 'b/home/event', payload: '{"event_type":"crashed"}' }])
    await clock.advance(1_000)
    expect(frames.flatMap((frame) => (frame.type === 'changes' ? frame.happenings : []))).toHaveLength(1)
    expect(late.frames.flatMap((frame) => (frame.type === 'changes' ? frame.happenings : []))).toHaveLength(0)
  })

  it('leaves out messages between bridges', ({ opened: { feed, snapshot } }) => {
    feed.sent('b/bridge/presence', '{}')
    feed.sent('b/bridge/probe', 'x')
    feed.sent('elsewhere/x', 'x')
    expect(snapshot().recent).toEqual([])
  })

  it('keeps the latest 500 events, or fewer if they are large', ({ opened: { feed, snapshot } }) => {
    for (let n = 0; n < 600; n += 1) feed.record('b/home/event', String(n))
    expect(snapshot().recent).toHaveLength(500)
    expect(snapshot().recent[0]?.payload).toBe('100')
    for (let n = 0; n < 100; n += 1) feed.record('b/home/event', 'x'.repeat(60_000))
    const { recent } = snapshot()
    expect(recent.length).toBeLessThan(10)
    expect(recent.at(-1)?.payload).toHaveLength(60_000)
  })

  it('renders an event for its subscribers, with the time at which it happened', async ({
    opened: { feed, follow, snapshot, clock },
  }) => {
    let made = 0
    const happen = () => feed.record('b/home/result/x', () => `{"n":${++made}}`)
    const at = new Date(clock.now()).toISOString()
    happen()
    expect(made).toBe(0)
    await clock.advance(1_000)
    expect(snapshot().recent).toEqual([{ at, topic: 'b/home/result/x', payload: '{"n":1}' }])
    const { frames } = follow()
    happen()
    await clock.advance(1_000)
    expect(frames).toMatchObject([{ happenings: [{ topic: 'b/home/result/x', payload: '{"n":2}' }] }])
  })

  it('renders nothing without subscribers, and each change only once for all of them', async ({
    opened: { hold, follow, snapshot, clock, rendered },
  }) => {
    for (let n = 0; n < 10; n += 1) hold(app('x'), state(n))
    expect(rendered()).toBe(0)
    const { end } = follow()
    snapshot()
    for (let n = 0; n < 10; n += 1) hold(app('x'), state(n))
    await clock.advance(1000)
    snapshot()
    expect(rendered()).toBe(1)
    end()
    for (let n = 0; n < 10; n += 1) hold(app('x'), state(n))
    expect(rendered()).toBe(1)
  })

  it('includes the usage of the last 15 minutes in a snapshot', ({ opened: { snapshot, asked } }) => {
    expect(snapshot().usage).toEqual({ [app('x')]: [[1, 1.25, 4_000_000_000]] })
    expect(asked).toEqual([15 * 60_000])
  })
})
