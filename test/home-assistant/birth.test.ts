import { expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { createTopics } from '../../src/contract/topics.ts'
import { HomeAssistant } from '../../src/home-assistant/home-assistant.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { silentLog } from '../support/silent-log.ts'
import { FakeLink } from './support/fake-link.ts'

function start(random: number) {
  const clock = new FakeClock()
  const link = new FakeLink()
  const homeAssistant = new HomeAssistant(
    {
      topics: createTopics('hub2mqtt'),
      hubs: new Map(),
      version: '1',
      live: { value: loadConfig({ env: {}, requireHub: false }).config },
      clock,
      random: () => random,
      log: silentLog,
    },
    link,
  )
  const receive = (payload: string, { retain = false } = {}) =>
    homeAssistant.receive({ payload: Buffer.from(payload), retain })
  return { clock, link, receive }
}

test.each([
  [0, 1_000],
  [0.999, 4_996],
])('after a birth message everything is published again within one to five seconds: %d', async (random, ms) => {
  const { clock, link, receive } = start(random)
  receive('online')
  await clock.advance(ms - 1)
  expect(link.told).toEqual([])
  await clock.advance(1)
  expect(link.told).toEqual(['again hub2mqtt/bridge/state'])
})

test.each([
  ['a retained birth message', 'online', { retain: true }],
  ['a will', 'offline', {}],
  ['something else', 'Online', {}],
])('%s does not count as a birth message', async (_, payload, options) => {
  const { clock, link, receive } = start(0)
  receive(payload, options)
  await clock.advance(10_000)
  expect(link.told).toEqual([])
})
