/** Two Mosquitto brokers with the configuration of `config/compose.fleet.yml`: users, access rules and their bridge. */
import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { withoutMosquitto } from '../mqtt/support.ts'
import { Mosquitto } from '../support/brokers.ts'
import { Observer } from '../support/observer.ts'
import { until } from '../support/until.ts'

const lines = (path: string) => readFileSync(path, 'utf8').split('\n')

const USERS = { hub2mqtt: 'one', homeassistant: 'two', broker: 'three' }
const ACL = [...lines('config/mosquitto/acl'), ...lines('config/fleet/acl')]

async function brokers(): Promise<{ first: Mosquitto; second: Mosquitto }> {
  const open = new AsyncDisposableStack()
  onTestFinished(() => open.disposeAsync())
  const options = { users: USERS, acl: ACL, persistent: true }
  const first = open.use(await Mosquitto.start(options))
  const bridge = lines('config/fleet/bridge.conf').map((line) =>
    line === 'address mosquitto:1883' ? `address 127.0.0.1:${first.port}` : line,
  )
  const second = open.use(await Mosquitto.start({ ...options, config: [...bridge, `remote_password ${USERS.broker}`] }))
  return { first, second }
}

const as = (username: keyof typeof USERS) => ({ protocol: '5' as const, username, password: USERS[username] })

async function client(broker: Mosquitto, username: keyof typeof USERS): Promise<Observer> {
  const observer = await Observer.on(broker.port, { ...as(username), filter: 'hub2mqtt/#' })
  onTestFinished(() => observer[Symbol.asyncDispose]())
  return observer
}

test.skipIf(withoutMosquitto)(
  'the brokers of the fleet forward every message once, and no command late',
  async () => {
    const { first, second } = await brokers()
    const bridge = await client(first, 'hub2mqtt')
    const home = await client(second, 'homeassistant')
    const say = async (from: Observer, to: Observer, topic: string, retain = false) => {
      await until(`${topic} to pass`, async () => {
        await from.publish(topic, 'x', { retain })
        return to.last(topic) === 'x'
      })
    }
    await say(bridge, home, 'hub2mqtt/home/state', true)
    await say(home, bridge, 'hub2mqtt/home/cmd/refresh')
    const later = await client(second, 'homeassistant')
    await later.until('the retained state', () => later.last('hub2mqtt/home/state') === 'x')
    // Each side must receive a message exactly once.
    for (const one of [bridge, home]) one.forget()
    await bridge.publish('hub2mqtt/home/event', 'once')
    await home.publish('hub2mqtt/home/cmd/ping', 'once')
    await bridge.publish('hub2mqtt/home/end', '')
    await home.until('the end', () => home.last('hub2mqtt/home/end') !== undefined)
    await bridge.until('the command', () => bridge.last('hub2mqtt/home/cmd/ping'))
    for (const one of [bridge, home]) {
      expect(one.texts('hub2mqtt/home/event')).toEqual(['once'])
      expect(one.texts('hub2mqtt/home/cmd/ping')).toEqual(['once'])
    }
    // Retained messages that are sent while the first broker is down are forwarded later. Commands are not.
    await first.stop()
    const late = await client(second, 'hub2mqtt')
    await late.publish('hub2mqtt/home/info', 'meanwhile', { retain: true })
    await home.publish('hub2mqtt/home/cmd/restart', 'meanwhile')
    await first.run()
    const back = await client(first, 'hub2mqtt')
    await back.until('the retained info', () => back.last('hub2mqtt/home/info') === 'meanwhile', 30_000)
    await say(home, back, 'hub2mqtt/home/cmd/refresh')
    expect(back.texts('hub2mqtt/home/cmd/restart')).toEqual([])
  },
  60_000,
)
