import fc from 'fast-check'
import { expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { ApiKeys } from '../../src/observability/api-keys.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'

const KEY = 'key/of+the hub%41'

function keysOf(key: string): ApiKeys {
  const env = { HUB2MQTT_HUB_URL: 'http://127.0.0.1:1', HUB2MQTT_HUB_API_KEY: key }
  return new ApiKeys({ value: loadConfig({ env }).config, onReplaced: () => {} })
}

const everyByte = (text: string) =>
  [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')

test('a name that contains an API key is recognised, however often and in whatever part it is percent-encoded', () => {
  const key = fc.string({ unit: fc.constantFrom(...'abcXYZ019-_.:/+% é'), minLength: 8, maxLength: 40 })
  const spellings = fc.array(fc.constantFrom(encodeURIComponent, encodeURI, everyByte), { maxLength: 4 })
  // Exclude a lone `%`, because decoding would combine it with the first characters of the key.
  const before = fc.string({ unit: fc.constantFrom(...'aé9.~\u{1f600}', '%80', '%C3', '%E2%82', '%00') })
  fc.assert(
    fc.property(key, spellings, before, fc.string(), (given, steps, start, after) => {
      fc.pre(given.trim() === given)
      const spelled = steps.reduce((text, encode) => encode(text), given)
      expect(keysOf(given).areIn(`${start}${spelled}${after}`)).toBe(true)
    }),
    { examples: [['éaaaaaaaa', [encodeURIComponent, encodeURIComponent], '%80', '']] },
  )
})

test('other names are not recognised; keys shorter than eight characters are not searched for', () => {
  const keys = keysOf('0123456789abcdef~')
  fc.assert(fc.property(fc.string(), (name) => !keys.areIn(name)))
  for (const name of ['%', '%%41', '%FF%FE', '%E0%A4%A', '%'.repeat(5_000), `%${'25'.repeat(500_000)}41`])
    expect(keysOf(KEY).areIn(name)).toBe(false)
  expect(keysOf('short').areIn('com.short.app')).toBe(false)
})

test('an app whose id contains the API key is in no topic, and is logged once without its id', async () => {
  const key = 'key-of-the-hub-in-a-topic'
  const ids = ['com.example.good', `com.${key}`, `org.${everyByte(key)}`, `net.${key}.too`]
  await using world = await World.start({
    hub: { keys: { [key]: ['hub.app', 'hub.speech'] }, id: `hub-${key}`, apps: ids.map((id) => ({ id })) },
    env: { HUB_API_KEY: key },
  })
  await until('the good one', () => world.state('com.example.good') !== undefined)
  await world.request('home/cmd/refresh')
  const seen = world.observer.seen.map(({ topic }) => topic)
  // The bridge derives the ids of the devices from the hub's name, because the hub's id also contains the key.
  const devices = seen.filter((topic) => topic.startsWith('homeassistant/'))
  expect(devices.length).toBeGreaterThan(0)
  expect(devices.filter((topic) => !topic.includes('--20home'))).toEqual([])
  for (const topic of seen) expect(decodeURIComponent(decodeURIComponent(topic))).not.toContain(key)
  const said = world.bridge.lines.filter((line) => line.includes('with an API key'))
  expect(said).toHaveLength(1)
  expect(world.bridge.lines.join('')).not.toContain(key)
})
