/** Tests that no spelling, command or timing bypasses the rules for permissions and response topics. */
import { describe, expect, test } from 'vitest'
import { mosquittoPath } from '../support/brokers.ts'
import { until } from '../support/until.ts'
import { KEY, World } from '../support/world.ts'

describe.skipIf(mosquittoPath === undefined)('a response topic', { concurrent: true }, () => {
  const answersOn = async (world: World, responseTopic: string) => {
    const topic = `home/app/${world.app}/cmd/get`
    world.observer.forget()
    await world.observer.publish(`hub2mqtt/${topic}`, '', { properties: { responseTopic } })
    const isAnswer = ({ text }: { text: string }) => text.startsWith('{"ok":')
    return (await until('the answer', () => world.observer.seen.findLast(isAnswer))).topic
  }

  test('below the discovery prefix is not used, nor one that is not configured', async () => {
    await using world = await World.start({ broker: 'mosquitto', file: 'discovery: {prefix: ha/discovery}\n' })
    const result = `hub2mqtt/home/app/${world.app}/result/get`
    expect(await answersOn(world, 'ha/discovery/switch/x/config')).toBe(result)
    // Mosquitto closes the connection of a client that publishes on a topic with more than 201 levels.
    for (const deep of [64, 250].map((levels) => `me${'/x'.repeat(levels)}`))
      expect(await answersOn(world, deep)).toBe(result)
    expect(world.observer.texts('hub2mqtt/bridge/state')).not.toContain('offline')
    expect(await answersOn(world, `me${'/x'.repeat(63)}`)).toBe(`me${'/x'.repeat(63)}`)
    expect(await answersOn(world, 'me/answers')).toBe('me/answers')
    world.bridge.reload('discovery: {prefix: ha/discovery}\ncommands: {response_topics: [answers]}\n')
    expect(await answersOn(world, 'me/answers')).toBe(result)
    expect(await answersOn(world, 'answers/me')).toBe('answers/me')
    expect(await answersOn(world, `${result}/mine`)).toBe(`${result}/mine`)
  })
})

test.concurrent("the hub's own record is answered without an API key, and not above 1 MiB", async () => {
  await using world = await World.start({
    hub: { apps: [{ id: 'the.app', record: { icon: `/x?key=${KEY}`, exitSignal: 'SIGKILL' } }] },
  })
  const ask = () => world.request('home/app/the.app/cmd/get', '{"raw":true}')
  expect((await ask()).data).toMatchObject({ raw: { icon: '/x?key=***', exitSignal: 'SIGKILL' } })
  world.hub.change('the.app', { novelty: 'x'.repeat(1024 * 1024) }, { silent: true })
  expect(await ask()).toMatchObject({ ok: false, error: { code: 'hub_failed' } })
})
