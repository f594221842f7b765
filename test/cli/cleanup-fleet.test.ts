import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { type CleanupOptions, cleanup } from '../../src/cli/cleanup.ts'
import { createTopics } from '../../src/contract/topics.ts'
import { Members } from '../cluster/members.ts'
import { retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'

const FOREIGN = {
  'hub2mqtt/kitchen/state': 'on',
  // A command that somebody retained by mistake, which is not the bridge's to clear.
  'hub2mqtt/bridge/cmd/log-level': 'debug',
  'hub2mqtt/bridge/Upper/state': 'online',
} as const

/** A member that is gone for good, with a hub that nobody has any more. */
const FORMER = {
  'hub2mqtt/bridge/former/state': 'offline',
  'hub2mqtt/bridge/former/info': '{"hubs":{"attic":{}}}',
  'hub2mqtt/attic/state': 'online',
} as const

const run = (url: string, more: Partial<CleanupOptions> = {}) =>
  cleanup({
    broker: { urls: [url] },
    topics: createTopics('hub2mqtt'),
    prefix: 'homeassistant',
    hubs: [],
    clear: true,
    timeoutMs: 20_000,
    clock: systemClock,
    ...more,
  })

describe('cleanup of a fleet', () => {
  test('clears what all members have left, former ones too, and touches nothing else', async () => {
    const shards = [1, 2].map((number) => ({ fleet: { shard: `${number}/2` } }))
    const config = { discovery: { prefix: 'elsewhere' } }
    await using world = await Members.start({ hubs: 3, members: shards, config })
    const { url, port } = world.broker
    await world.served(['shard-1', 'shard-2'])
    await until('devices', () => world.observer.seen.some(({ topic }) => topic.startsWith('elsewhere/device/')))
    await expect(run(url)).rejects.toThrow(/hub2mqtt\/bridge\/shard-[12]\/state says.* stop it first/)
    await Promise.all(world.processes.map((one) => one?.stop()))
    for (const [topic, text] of Object.entries({ ...FOREIGN, ...FORMER })) {
      await world.observer.publish(topic, text, { retain: true })
    }
    // As after an end of all members at once.
    await world.observer.publish('hub2mqtt/bridge/state', 'online', { retain: true })
    const ours = [...(await retainedOn(port)).keys()].filter((topic) => !(topic in FOREIGN)).sort()
    expect(ours).toEqual(
      expect.arrayContaining([
        ...Object.keys(FORMER),
        'hub2mqtt/fleet',
        'hub2mqtt/bridge/state',
        ...['state', 'info', 'health', 'log-level', 'discovery'].map((last) => `hub2mqtt/bridge/shard-2/${last}`),
        ...[...world.hubs.keys()].map((hub) => `hub2mqtt/${hub}/state`),
      ]),
    )
    expect(await run(url, { clear: false })).toEqual({ found: ours, left: [] })
    expect(await run(url)).toEqual({ found: ours, left: [] })
    expect(Object.fromEntries(await retainedOn(port))).toEqual(FOREIGN)
  }, 60_000)

  test('leaves a single bridge alone that runs where a fleet has been', async () => {
    await using world = await World.start()
    await world.settle()
    await world.observer.publish('hub2mqtt/bridge/former/state', 'offline', { retain: true })
    const before = await retainedOn(world.broker.port)
    await expect(run(world.broker.url)).rejects.toThrow('a bridge is running with the base topic hub2mqtt')
    expect(await retainedOn(world.broker.port)).toEqual(before)
  })
})
