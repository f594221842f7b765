import { expect, it } from 'vitest'
import type { BridgeLink } from '../../src/bridge/bridge.ts'
import { CleanLink } from '../../src/bridge/clean-link.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { SendOptions } from '../../src/mqtt/types.ts'

const KEY = 'key-of-the-hub'

it('an API key is in no payload that leaves or is shown, nor in what takes the place of one that was refused', () => {
  const env = { HUB2MQTT_HUB_URL: 'http://127.0.0.1:1', HUB2MQTT_HUB_API_KEY: KEY }
  const left: (string | null | undefined)[] = []
  const note = (payload: string | null, options?: SendOptions) => {
    left.push(payload, options?.ifRefused?.('denied')?.payload)
  }
  const link: BridgeLink = {
    hold: (topic, payload, recall) => {
      note(payload)
      if (recall !== undefined) left.push(recall(topic))
    },
    send: (_, payload, options) => note(payload, options),
    isCurrent: () => true,
    status: () => ({ protocol: '5', queued: 0 }),
    sweep: () => 0,
    refresh: () => undefined,
    release: () => undefined,
    setWriting: () => undefined,
    startOver: () => undefined,
    readTransient: () => undefined,
  }
  const shown: (string | null)[] = []
  const onlooker = {
    held: (_: string, payload: string | null) => shown.push(payload),
    sent: (_: string, payload: string) => shown.push(payload),
    released: () => undefined,
  }
  const clean = new CleanLink(link, { value: loadConfig({ env }).config }, onlooker)
  const payload = JSON.stringify({ said: `no ${KEY}` })
  clean.hold('a', payload)
  clean.send('a', payload, { ifRefused: () => ({ topic: 'b', payload }) })
  const masked = '{"said":"no ***"}'
  expect(left.splice(0)).toEqual([masked, undefined, masked, masked])
  clean.hold('b', payload, (topic) => (topic === 'b' ? payload : undefined))
  expect(left).toEqual([masked, undefined, masked])
  // Whoever gives an answer shows it under its own topic.
  clean.send('a', payload, { isAnswer: true })
  expect(shown).toEqual([masked, masked, masked])
})
