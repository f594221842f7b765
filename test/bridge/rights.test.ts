/** Who may do what, and by which topic: rights that no other spelling, command or moment gets around. */
import { describe, expect, test } from 'vitest'
import { BROKERS, mosquittoPath } from '../support/brokers.ts'
import { until } from '../support/until.ts'
import { KEY, World } from '../support/world.ts'

const code = async (world: World, command: string, payload = '') => {
  const topic = command.startsWith('home/') ? command : `home/app/${world.app}/cmd/${command}`
  return (await world.ask(topic, payload)).error?.code ?? 'ok'
}

describe.concurrent('a command that waits', () => {
  test.each(['read_only: true', 'deny: [restart]'])('is refused when %s came before its turn', async (commands) => {
    await using world = await World.start({ file: 'commands: {}\n' })
    world.hub.behave('slow-headers', { ms: 1000, times: 1, operation: 'disableApp' })
    const { app } = world
    const first = code(world, `home/app/${app}/cmd/disable`)
    await until('the first', () => world.asked('disableApp') === 1)
    const second = code(world, `home/app/${app}/cmd/restart`)
    await world.ask('bridge/cmd/ping')
    world.bridge.reload(`commands: {${commands}}\n`)
    expect(await first).toBe('ok')
    expect(await second).toBe('not_allowed')
    expect(world.asked('restartApp')).toBe(0)
  })
})

describe.concurrent('commands that do the same share their rights', () => {
  const CASES: readonly (readonly [deny: string, refused: readonly string[], allowed: readonly string[]])[] = [
    ['enable', ['enable', 'enabled ON', 'enabled OFF'], ['disable']],
    ['disable', ['disable', 'enabled OFF'], ['enable']],
    ['enabled', ['enabled ON', 'enable', 'disable'], ['restart']],
    ['autoupdate', ['autoupdate ON', 'update {"autoupdate":true}'], ['update {"channel":"beta"}', 'install']],
    ['update', ['update {"channel":"beta"}', 'autoupdate ON', 'install {"channel":"beta"}'], ['install']],
    [
      'install',
      ['install', 'update {"channel":"beta"}', 'home/cmd/install {"id":"x"}', 'home/cmd/update-all'],
      ['update {"autoupdate":true}'],
    ],
    ['hub/install', ['home/cmd/install {"id":"x"}'], ['install', 'home/cmd/update-all']],
    ['update-all', ['home/cmd/update-all'], ['install']],
    ['get-setting', ['get-setting/transition', 'get-setting {"name":"transition"}', 'get-settings'], ['get']],
    ['get-settings', ['get-settings', 'get-setting/transition'], ['get']],
    ['get', ['get', 'home/cmd/get-apps'], ['get-locales']],
    ['get-apps', ['home/cmd/get-apps'], ['get']],
    ['set-setting', ['set-setting/x 1', 'set-setting {"name":"x","value":1}'], ['unset-setting/transition']],
  ]

  test.each(CASES)('deny: [%s]', async (deny, refused, allowed) => {
    const apps = [{ id: 'the.app', settings: { transition: 1 }, update: '2.0.0' }]
    await using world = await World.start({ env: { COMMANDS_DENY: deny, COMMANDS_ALLOW: '*' }, hub: { apps } })
    const ask = (text: string) => {
      const [, command = '', payload] = text.match(/^(\S+) ?(.*)$/) ?? []
      return code(world, command, payload)
    }
    for (const one of refused) expect(`${one}: ${await ask(one)}`).toBe(`${one}: not_allowed`)
    for (const one of allowed) expect(`${one}: ${await ask(one)}`).toBe(`${one}: ok`)
  })

  test('and the commands that the hub info names follow', async () => {
    await using world = await World.start({ env: { COMMANDS_DENY: 'disable,autoupdate,get' } })
    const { commands } = JSON.parse(world.observer.last('hub2mqtt/home/info') ?? '{}')
    for (const name of ['disable', 'enabled', 'autoupdate', 'get', 'get-apps']) expect(commands).not.toContain(name)
    for (const name of ['enable', 'update', 'install']) expect(commands).toContain(name)
  })
})

describe.concurrent('only the canonical spelling of a topic level is an address', () => {
  test.each([
    ['home/app/com%2Eathom%2Ehue/cmd/restart', 'unknown_app'],
    ['home/app/com.athom.hu%65/cmd/restart', 'unknown_app'],
    ['h%6Fme/app/com.athom.hue/cmd/restart', 'unknown_hub'],
    ['home/app/com.athom.hue/cmd/rest%61rt', 'unknown_command'],
    ['home/app/com.athom.hue/cmd/set-setting/p%61ssword', 'invalid_payload'],
    ['home/app/b%c3%bchne/cmd/restart', 'unknown_app'],
  ])('%s is answered %s', async (topic, expected) => {
    await using world = await World.start({ hub: { apps: [{ id: 'com.athom.hue' }, { id: 'bühne' }] } })
    const before = world.hub.requests.length
    expect((await world.ask(topic, 'x'.repeat(topic.includes('set-') ? 1 : 0))).error?.code).toBe(expected)
    expect(world.hub.requests.slice(before).filter(({ method }) => method === 'POST' || method === 'PUT')).toEqual([])
    expect(await world.ask('home/app/b%C3%BChne/cmd/restart')).toMatchObject({ ok: true, app: 'bühne' })
  })
})

describe.skipIf(mosquittoPath === undefined)('a response topic', { concurrent: true }, () => {
  const answersOn = async (world: World, responseTopic: string) => {
    const topic = `home/app/${world.app}/cmd/get`
    await world.observer.publish(`hub2mqtt/${topic}`, '', { properties: { responseTopic } })
    const isAnswer = ({ text }: { text: string }) => text.startsWith('{"ok":')
    return (await until('the answer', () => world.observer.seen.findLast(isAnswer))).topic
  }

  test('below the discovery prefix is not used, and neither is another than those configured', async () => {
    await using world = await World.start({ broker: 'mosquitto', file: 'discovery: {prefix: ha/discovery}\n' })
    const result = `hub2mqtt/home/app/${world.app}/result/get`
    expect(await answersOn(world, 'ha/discovery/switch/x/config')).toBe(result)
    world.observer.seen.length = 0
    expect(await answersOn(world, 'me/answers')).toBe('me/answers')
    world.bridge.reload('discovery: {prefix: ha/discovery}\ncommands: {response_topics: [answers]}\n')
    world.observer.seen.length = 0
    expect(await answersOn(world, 'me/answers')).toBe(result)
    world.observer.seen.length = 0
    expect(await answersOn(world, 'answers/me')).toBe('answers/me')
    world.observer.seen.length = 0
    expect(await answersOn(world, `${result}/mine`)).toBe(`${result}/mine`)
  })
})

test.concurrent('the own record of the hub comes with an app that is asked for raw, and else does not', async () => {
  await using world = await World.start({
    hub: { apps: [{ id: 'the.app', record: { permissions: ['homey:manager:api'] } }] },
  })
  const topic = 'home/app/the.app/cmd/get'
  const { data } = await world.ask(topic, '{"raw":true}')
  expect(data).toMatchObject({ id: 'the.app', crash_count: 0, raw: { id: 'the.app', exitCount: 0 } })
  expect(data).toMatchObject({ raw: { permissions: ['homey:manager:api'], state: 'running' } })
  expect((await world.ask(topic)).data).not.toHaveProperty('raw')
})

test.concurrent('the own record of the hub comes without an API key, and none that is above a MiB', async () => {
  await using world = await World.start({
    hub: { apps: [{ id: 'the.app', record: { icon: `/x?key=${KEY}`, exitSignal: 'SIGKILL' } }] },
  })
  const ask = () => world.ask('home/app/the.app/cmd/get', '{"raw":true}')
  expect((await ask()).data).toMatchObject({ raw: { icon: '/x?key=***', exitSignal: 'SIGKILL' } })
  world.hub.change('the.app', { novelty: 'x'.repeat(1024 * 1024) }, { silent: true })
  expect(await ask()).toMatchObject({ ok: false, error: { code: 'hub_failed' } })
})

test.concurrent.each(BROKERS)(
  'an empty setting is a value where it cannot be the clearing of a retained one (%s)',
  async (broker) => {
    await using world = await World.start({ broker })
    const answer = await world.ask(`home/app/${world.app}/cmd/set-setting/x`, '')
    if (broker === 'mosquitto') {
      expect(answer).toMatchObject({ ok: true })
      expect(world.hub.settings(world.app)).toMatchObject({ x: '' })
    } else {
      expect(answer.error?.code).toBe('invalid_payload')
      expect(world.asked('setAppSetting')).toBe(0)
      expect(await world.ask(`home/app/${world.app}/cmd/set-setting/x`, '""')).toMatchObject({ ok: true })
      expect(world.hub.settings(world.app)).toMatchObject({ x: '' })
    }
  },
)
