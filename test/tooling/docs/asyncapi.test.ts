import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { COMMANDS } from '../../../src/contract/commands.ts'
import { PUBLICATIONS, type Publication } from '../../../src/contract/publications.ts'
import { FAILURE, SUCCESS } from '../../../src/contract/schemas.ts'
import { asyncapi } from '../../../src/tooling/docs/asyncapi.ts'
import { address, commandTopics } from '../../../src/tooling/docs/markdown.ts'
import { BROKERS } from '../../support/brokers.ts'
import { until } from '../../support/until.ts'
import { KEY, World } from '../../support/world.ts'

const FILE = `
settings:
  publish:
    the.app: {mode: text}
`

/** Returns an expression for the real topics of a documented topic. */
const pattern = (topic: string) =>
  new RegExp(`^${address(topic, (name) => ROOTS[name] ?? '[^/]+').replaceAll('.', '\\.')}$`)

const ROOTS: Readonly<Record<string, string>> = { base: 'hub2mqtt', prefix: 'homeassistant' }
const rows = Object.values<Publication>(PUBLICATIONS)
const spoken = rows.map((row) => ({ ...row, pattern: pattern(row.topic) }))
/** Returns whether a message is a command, which clients send to the bridge. */
const isCommand = (topic: string) => /\/cmd(\/|$)/.test(topic)
const answers = COMMANDS.map((command) => pattern(commandTopics(command).result))

// The two cases cover both versions of MQTT, and both forms of discovery.
test.concurrent.each([[BROKERS[0], 'device'] as const, ['aedes', 'component'] as const])(
  'every message that a subscriber sees on %s is documented, with discovery by %s',
  async (broker, format) => {
    const apps = [{ id: 'the.app', settings: { mode: 'x' } }, { id: 'a/b c' }]
    await using world = await World.start({
      broker,
      hub: { apps, keys: { [KEY]: ['homey'] } },
      file: FILE,
      env: { DISCOVERY_FORMAT: format, GUARD_WATCH: '*', COMMANDS_ALLOW: 'bridge/rollout' },
    })
    await until('the links', () => world.observer.last('hub2mqtt/home/app/the.app/links'))
    await until('the health', () => world.observer.last('hub2mqtt/home/health'))
    await world.request('home/app/the.app/cmd/disable')
    await world.request('home/app/the.app/cmd/enable', '{"transaction":1}')
    await world.request('home/app/the.app/cmd/enable', '{"transaction":1}')
    await world.request('home/app/the.app/cmd/restart', '{')
    await world.request('home/app/nobody/cmd/get-setting/x')
    await world.request('home/cmd/get-apps')
    await world.request('home/app/the.app/cmd/guard', 'ON')
    world.hub.crash('the.app')
    await until('the history', () => world.observer.last('hub2mqtt/home/app/the.app/history')?.includes('crash'))
    await until('the setting', () => world.observer.last('hub2mqtt/home/app/the.app/setting/mode'))
    await world.request('bridge/cmd/rollout', '{"command":"restart","app":"the.app","transaction":"t"}')
    await until('the rollout', () => world.observer.last('hub2mqtt/rollout/t')?.includes('answered'))
    world.hub.uninstall('the.app')
    await until('the remembered data', () => world.observer.last('hub2mqtt/home/guard-memory')?.includes('the.app'))
    await world.hub.close()
    await until('offline', () => world.observer.last('hub2mqtt/home/state') === 'offline')

    const seen = world.observer.seen.filter(({ topic }) => !isCommand(topic))
    const documented = new Set<string>()
    for (const { topic, text, packet } of seen.filter(({ text }) => text !== '')) {
      const row = spoken.find((one) => one.pattern.test(topic))
      if (row === undefined) {
        expect(
          answers.filter((one) => one.test(topic)),
          topic,
        ).toHaveLength(1)
        expect(v.is(v.union([SUCCESS, FAILURE]), JSON.parse(text)), `${topic} ${text}`).toBe(true)
        expect(packet.retain, topic).toBe(false)
        continue
      }
      documented.add(row.topic)
      const value: unknown = row.text ? text : JSON.parse(text)
      expect(v.safeParse(row.schema, value).issues, `${topic} ${text}`).toBeUndefined()
    }
    const other = format === 'device' ? PUBLICATIONS.discoveryComponent : PUBLICATIONS.discoveryDevice
    // Leave out the messages of a fleet, which other tests cover.
    const notHere: readonly string[] = [other.topic, PUBLICATIONS.fleet.topic]
    const expected = spoken.map(({ topic }) => topic).filter((topic) => !notHere.includes(topic))
    expect([...documented].sort()).toEqual(expected.sort())
  },
)

describe('the AsyncAPI document', () => {
  test('has each address once', () => {
    const addresses = [...asyncapi().matchAll(/^ {4}address: (.*)$/gm)].map(([, text]) => text)
    expect(addresses).toHaveLength(rows.length + 2 * COMMANDS.length)
    expect(new Set(addresses).size).toBe(addresses.length)
  })

  test('describes with one message only topics that have the same payload', () => {
    const schemas = new Map(rows.map(({ message, schema }) => [message, schema]))
    for (const { message, schema } of rows) if (message !== undefined) expect(schema).toBe(schemas.get(message))
    expect(asyncapi()).toContain('storm_over')
  })
})
