/** Needs an image of NATS, which NATS_IMAGE can name. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Observer } from '../support/observer.ts'
import { available } from '../support/skipped.ts'
import { demo, hasCompose, healthOf, observe } from './support/compose.ts'
import { works } from './support/engine.ts'

const PROJECT = 'hub2mqtt-fleet-test'
const NATS_IMAGE = process.env['NATS_IMAGE'] ?? 'nats:2-alpine'
/** A long limit, because nine containers start at the same time. */
const TIMEOUT_MS = 90_000

const isReady =
  hasCompose &&
  available(
    works('docker', 'image', 'inspect', NATS_IMAGE) || works('timeout', '20', 'docker', 'pull', '-q', NATS_IMAGE),
    'the tests of the compose file of a fleet',
    `the image ${NATS_IMAGE} is not available (NATS_IMAGE)`,
  )

describe.runIf(isReady)('the compose file of a fleet', () => {
  const compose = demo(PROJECT, { NATS_IMAGE }, ['-f', 'docker-compose.yml', '-f', 'config/compose.fleet.yml'])
  const payloadOf = (client: Observer, topic: string) => Object(JSON.parse(client.last(topic) ?? 'null'))

  beforeAll(() => compose('up', '-d', '--no-build'))
  afterAll(() => compose('down', '--volumes', '--timeout', '5'))

  it('starts three members, which are seen on both brokers', async () => {
    for (const port of [1883, 1884]) {
      await using client = await observe(port)
      await client.until('the members', () => payloadOf(client, 'hub2mqtt/fleet').count === 3, TIMEOUT_MS)
      await client.until('the hub', () => client.last('hub2mqtt/home/state') === 'online', TIMEOUT_MS)
      await client.until('the leader', () => client.last('hub2mqtt/bridge/state') === 'online', TIMEOUT_MS)
    }
  }, 180_000)

  it('passes doctor', async () => {
    expect(await compose('exec', '-T', 'hub2mqtt', 'hub2mqtt', 'doctor')).toContain(
      'the bucket hub2mqtt is on 3 servers',
    )
  })

  it('makes every service healthy', async () => {
    const health = async () => (await healthOf(compose)).filter((status) => status !== 'none')
    // The nine containers are three members, two brokers, three NATS servers and the hub.
    await expect.poll(health, { timeout: TIMEOUT_MS }).toEqual(Array.from({ length: 9 }, () => 'healthy'))
  }, 120_000)

  it('moves the hub to another member when its owner is killed', async () => {
    await using client = await observe(1884)
    const owner = () => String(payloadOf(client, 'hub2mqtt/home/info').owner)
    await client.until('an owner', () => owner().startsWith('hub2mqtt-'))
    const former = owner()
    const service = former === 'hub2mqtt-1' ? 'hub2mqtt' : former
    await compose('kill', service)
    await client.until('another owner', () => owner() !== former, TIMEOUT_MS)
    await client.until('the hub', () => client.last('hub2mqtt/home/state') === 'online', TIMEOUT_MS)
    expect(payloadOf(client, 'hub2mqtt/fleet').count).toBe(2)
    await compose('start', service)
    await client.until('its return', () => payloadOf(client, 'hub2mqtt/fleet').count === 3, TIMEOUT_MS)
  }, 240_000)

  it('answers on the second broker when the first one is killed', async () => {
    await using client = await observe(1884)
    await compose('kill', 'mosquitto')
    const ask = setInterval(() => void client.publish('hub2mqtt/home/cmd/refresh', '').catch(() => undefined), 1_000)
    const answer = () => client.last('hub2mqtt/home/result/refresh')?.includes('"ok":true')
    await client.until('an answer', answer, TIMEOUT_MS).finally(() => clearInterval(ask))
  }, 120_000)
})
