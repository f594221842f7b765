import { describe, expect, test } from 'vitest'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { BridgeProcess } from '../support/bridge-process.ts'
import { Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { Observer } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { ALL_SCOPES, KEY } from '../support/world.ts'

const STATE = 'hub2mqtt/bridge/state'
const PROBLEM = /another hub2mqtt uses the same base topic/

describe.skipIf(mosquittoPath === undefined)(
  'two daemons of one machine with the same configuration',
  { concurrent: true },
  () => {
    test('do not throw each other out, say so once, and the second takes over when the first ends', async () => {
      await using broker = await Mosquitto.start()
      await using hub = await EmulatedHub.start({ keys: { [KEY]: ALL_SCOPES }, settleMs: 0 })
      await using observer = await Observer.on(broker.port)
      const env = {
        HUB2MQTT_HUB_URL: hub.url,
        HUB2MQTT_HUB_API_KEY: KEY,
        HUB2MQTT_MQTT_URL: broker.url,
        HUB2MQTT_HTTP_ENABLED: 'false',
      }
      const states = () => observer.texts(STATE)
      const health = () => JSON.parse(observer.last('hub2mqtt/bridge/health') ?? '{}')
      await using first = new BridgeProcess({ env })
      await until('the first', () => observer.last('hub2mqtt/home/state') === 'online')
      await using second = new BridgeProcess({ env })
      await second.untilLine('this one stands by')
      await first.untilLine('this one started first')
      await until('the same in its health', () => PROBLEM.test(String(health().problems)))
      expect(states()).toEqual(['online'])

      await second.stop('SIGKILL')
      // The will of a bridge that only stood by is not true.
      await until('the will, and its correction', () => states().length >= 3)
      expect(states()).toEqual(['online', 'offline', 'online'])

      await using third = new BridgeProcess({ env })
      await third.untilLine('this one stands by')
      await first.stop()
      await until('the next one', () => states().at(-1) === 'online' && states().length > 4)
      for (const { lines } of [first, second, third])
        expect(lines.filter((line) => PROBLEM.test(line)).length).toBeLessThan(3)
      expect(second.lines.filter((line) => PROBLEM.test(line))).toHaveLength(1)
      expect([first, second, third].flatMap(({ lines }) => lines).join()).not.toContain('taken_over')
    })
  },
)
