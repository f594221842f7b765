/** An emulated hub, and bridges that have several broker addresses, for tests of the loss of one broker. */
import { randomBytes } from 'node:crypto'
import type { TestContext } from 'vitest'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { type RunningBridge, startBridge } from '../support/bridge.ts'
import { JumpClock } from '../support/jump-clock.ts'
import { Observer } from '../support/observer.ts'
import { until } from '../support/until.ts'

const KEY = 'key-for-tests'
/**
 * A long limit: clusters first elect new leaders and then replicate retained messages. Until then, NATS ends each new
 * connection after five seconds or denies its subscriptions, and the bridge waits longer after each attempt.
 */
export const TIMEOUT_MS = 120_000

export const STATE = 'hub2mqtt/bridge/state'

/** The part of a test's context that closes what the test opens, because the tests run concurrently. */
export type Closing = Pick<TestContext, 'onTestFinished'>

type House = Awaited<ReturnType<typeof startHouse>>

/** Starts a house, which is closed at the end of the test. */
export async function startHouse({ onTestFinished }: Closing) {
  const open = new AsyncDisposableStack()
  onTestFinished(() => open.disposeAsync())
  const hub = open.use(await EmulatedHub.start({ keys: { [KEY]: ['hub.app', 'hub.speech'] }, settleMs: 0 }))
  const clock = new JumpClock()
  const app = [...hub.apps.values()].find(({ state }) => state === 'running')?.id
  if (app === undefined) throw new Error('no app runs')
  return {
    hub,
    clock,
    app,
    bridge: (urls: readonly string[], env: Readonly<Record<string, string>> = {}) => {
      const own = { HUB_URL: hub.url, HUB_API_KEY: KEY, MQTT_URL: urls.join(',') }
      return open.use(startBridge({ ...own, ...env }, undefined, clock))
    },
  }
}

/** Connects a client that receives everything from the broker. The client is closed at the end of the test. */
export async function observe(
  { onTestFinished }: Closing,
  port: number,
  protocol: '5' | '3.1.1' = '3.1.1',
): Promise<Observer> {
  // A cluster that has just started may refuse the first connections.
  const connect = () => Observer.on(port, { filter: 'hub2mqtt/#', protocol, reconnects: true }).catch(() => undefined)
  const observer = await until('a connection', connect, TIMEOUT_MS)
  onTestFinished(() => observer[Symbol.asyncDispose]())
  return observer
}

/** Waits until the client has received `online` from the bridge and from its hub. */
export async function online(observer: Observer): Promise<void> {
  const says = (topic: string, text: string) =>
    observer.until(`${topic} to be ${text}`, () => observer.last(topic) === text, TIMEOUT_MS)
  await says(STATE, 'online')
  await says('hub2mqtt/home/state', 'online')
}

/** Sends pings to the bridge until it answers; returns how long that took, in milliseconds. */
export async function answers(observer: Observer): Promise<number> {
  const start = performance.now()
  const transaction = randomBytes(6).toString('hex')
  const answered = () => observer.texts('hub2mqtt/bridge/result/ping').some((text) => text.includes(transaction))
  await say(observer, 'hub2mqtt/bridge/cmd/ping', JSON.stringify({ transaction }), answered)
  return Math.round(performance.now() - start)
}

/** Resolves when the broker forwards messages. A cluster that has lost a node forwards nothing for some time. */
export async function works(observer: Observer): Promise<void> {
  const marker = `hub2mqtt/marker/${randomBytes(6).toString('hex')}`
  await say(observer, marker, '', () => observer.last(marker) !== undefined)
}

/** Publishes ten times a second until `holds` returns `true`, because messages and the connection may be lost. */
async function say(observer: Observer, topic: string, text: string, holds: () => boolean): Promise<void> {
  const publish = () => void observer.publish(topic, text).catch(() => undefined)
  publish()
  const repeated = setInterval(publish, 100)
  await observer.until(`a reaction to ${topic}`, holds, TIMEOUT_MS).finally(() => clearInterval(repeated))
}

/** Moves the clock of a house until `holds` returns `true`. After each step, waits until the broker has answered. */
export async function pass(house: House, observer: Observer, what: string, holds: () => boolean): Promise<void> {
  for (let minutes = 0; minutes < 15; minutes += 0.25) {
    house.clock.jump(15_000)
    await works(observer)
    // Wait in real time for network requests that have started.
    if (await until(what, holds, 150).catch(() => false)) return
  }
  throw new Error(`15 minutes passed without ${what}`)
}

export const logged = (bridge: RunningBridge, one: string, other = '') =>
  bridge.lines.filter((line) => line.includes(one) && line.includes(other)).length
