/** An emulated hub and bridges that know several addresses of a broker, for what happens when one of them dies. */
import { randomBytes } from 'node:crypto'
import { onTestFinished } from 'vitest'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { type RunningBridge, startBridge } from '../support/bridge.ts'
import { JumpClock } from '../support/jump-clock.ts'
import { Observer } from '../support/observer.ts'
import { until } from '../support/until.ts'

const KEY = 'key-for-tests'
/**
 * Clusters elect new leaders, and share what is retained a moment later. Until then NATS ends each new connection after
 * five seconds, or denies its subscriptions, and the bridge waits a little longer each time before it asks again.
 */
export const PATIENCE_MS = 120_000

export const STATE = 'hub2mqtt/bridge/state'

export interface House {
  readonly hub: EmulatedHub
  /** Of all its bridges. */
  readonly clock: JumpClock
  /** An app that runs. */
  readonly app: string
  /** Starts a bridge that knows these addresses. */
  bridge(urls: readonly string[], env?: Readonly<Record<string, string>>): RunningBridge
}

/** It ends with the test that starts it. */
export async function startHouse(): Promise<House> {
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
    bridge: (urls, env = {}) => {
      const own = { HUB_URL: hub.url, HUB_API_KEY: KEY, MQTT_URL: urls.join(',') }
      return open.use(startBridge({ ...own, ...env }, undefined, clock))
    },
  }
}

/** A client that sees everything at one address; it ends with the test. */
export async function look(port: number, protocol: '5' | '3.1.1' = '3.1.1'): Promise<Observer> {
  // A cluster that has just begun may turn the first ones away.
  const connect = () => Observer.on(port, { filter: 'hub2mqtt/#', protocol, comesBack: true }).catch(() => undefined)
  const observer = await until('a connection', connect, PATIENCE_MS)
  onTestFinished(() => observer[Symbol.asyncDispose]())
  return observer
}

/** The bridge and its hub are online, as this client sees it. */
export async function online(observer: Observer): Promise<void> {
  const says = (topic: string, text: string) =>
    observer.until(`${topic} to be ${text}`, () => observer.last(topic) === text, PATIENCE_MS)
  await says(STATE, 'online')
  await says('hub2mqtt/home/state', 'online')
}

/** Asks the bridge until it answers; returns how long that took, in milliseconds. */
export async function answers(observer: Observer): Promise<number> {
  const start = performance.now()
  const transaction = randomBytes(6).toString('hex')
  const answered = () => observer.texts('hub2mqtt/bridge/result/ping').some((text) => text.includes(transaction))
  await say(observer, 'hub2mqtt/bridge/cmd/ping', JSON.stringify({ transaction }), answered)
  return Math.round(performance.now() - start)
}

/** Resolves when what is published here comes back: a cluster that has lost a node does nothing for a while. */
export async function works(observer: Observer): Promise<void> {
  const marker = `hub2mqtt/marker/${randomBytes(6).toString('hex')}`
  await say(observer, marker, '', () => observer.last(marker) !== undefined)
}

/** Publishes ten times a second until something holds. Some of it may be lost, as may the connection. */
async function say(observer: Observer, topic: string, text: string, holds: () => boolean): Promise<void> {
  const publish = () => void observer.publish(topic, text).catch(() => undefined)
  publish()
  const repeated = setInterval(publish, 100)
  await observer.until(`what follows on ${topic}`, holds, PATIENCE_MS).finally(() => clearInterval(repeated))
}

/** Lets time pass for the bridges of a house, in steps in which their broker can answer, until something holds. */
export async function pass(house: House, observer: Observer, what: string, holds: () => boolean): Promise<void> {
  for (let minutes = 0; minutes < 15; minutes += 0.25) {
    house.clock.jump(15_000)
    await works(observer)
    // What has begun by then goes at the pace of the network.
    if (await until(what, holds, 500).catch(() => false)) return
  }
  throw new Error(`15 minutes passed without ${what}`)
}

/** How many lines with both texts the log of a bridge has. */
export const logged = (bridge: RunningBridge, one: string, other = '') =>
  bridge.lines.filter((line) => line.includes(one) && line.includes(other)).length
