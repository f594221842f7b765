/** Houses with one emulated hub each, a broker that outlives every bridge, and an observing client. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as base, expect } from 'vitest'
import { readRollout } from '../../../src/cluster/rollout/record.ts'
import type { Rollout } from '../../../src/contract/rollout.ts'
import { createTopics } from '../../../src/contract/topics.ts'
import type { AppSeed, EmulatedHub } from '../../../src/emulator/hub.ts'
import { type RunningBridge, startBridge } from '../../support/bridge.ts'
import { BridgeProcess } from '../../support/bridge-process.ts'
import { BROKERS, type BrokerKind, type Mosquitto, startBroker } from '../../support/brokers.ts'
import { Fleet, type FleetParts, numbered, openFleet } from '../../support/fleet.ts'
import { JumpClock } from '../../support/jump-clock.ts'
import type { Nats } from '../../support/nats.ts'
import { type Answer, KEY } from '../../support/world.ts'

/** Run the tests concurrently, because each has its own street and mostly waits. */
export const test = base.concurrent

export const APP = 'the.app'
const PAUSE_MS = 1_000
export const RESTART = { command: 'restart', app: APP, pause: '1s' } as const
/** A pause in milliseconds that exceeds the time for which apps in the last wave are watched. */
export const SHORT_PAUSE_MS = 6_000
const STEP_MS = 5_000
const topics = createTopics('hub2mqtt')

interface StreetOptions {
  /** The broker; default: the first of `BROKERS`, for tests that do not depend on the kind of broker. */
  readonly broker?: BrokerKind | Mosquitto
  readonly houses: number
  readonly apps?: AppSeed[]
  /** The configuration's `commands`, in YAML. */
  readonly commands?: string
  /** Additional configuration of bridges in this process, as environment variables. */
  readonly env?: Readonly<Record<string, string>>
}

export class Street extends Fleet {
  readonly clock = new JumpClock()
  readonly #options: StreetOptions

  private constructor(parts: FleetParts, options: StreetOptions) {
    super(parts)
    this.#options = options
  }

  static async build(options: StreetOptions): Promise<Street> {
    const { broker = BROKERS[0], houses, apps = [{ id: APP }] } = options
    const started = typeof broker === 'string' ? await startBroker(broker) : broker
    return new Street(await openFleet(numbered(houses, { apps }), started), options)
  }

  /** Like `build`, but also starts a bridge in this process. */
  static async open(options: StreetOptions): Promise<Street> {
    await using open = new AsyncDisposableStack()
    const street = open.use(await Street.build(options))
    await street.bridge()
    open.move()
    return street
  }

  file(commands = this.#options.commands ?? '{allow: [bridge/rollout]}'): string {
    const hubs = [...this.hubs].map(
      ([name, { url }]) =>
        `  ${name}: {url: "${url}", api_key: ${KEY}, poll_interval: 2s, poll_interval_fallback: 1s, timeout: 1m}`,
    )
    return [`mqtt: {url: "${this.broker.url}"}`, `commands: ${commands}`, 'hubs:', ...hubs, ''].join('\n')
  }

  /** Starts a bridge in this process. Resolves when it is online with all of its hubs. */
  async bridge(): Promise<RunningBridge> {
    const times = this.onlines
    const bridge = this.begin()
    await this.online(times)
    return bridge
  }

  begin(env: Readonly<Record<string, string>> = {}): RunningBridge {
    return this.use(startBridge({ ...this.#options.env, ...env }, this.file(), this.clock))
  }

  /** Starts a member of a fleet with leases in this process. */
  join(nats: Nats, member: string, env: Readonly<Record<string, string>> = {}): RunningBridge {
    return this.begin({ FLEET_NATS: nats.urls.join(), FLEET_MEMBER: member, FLEET_LEASE: '5s', ...env })
  }

  /** Starts a bridge in a separate process, without waiting until it is online. */
  async process(): Promise<BridgeProcess> {
    const { path } = this.use(await mkdtempDisposable(join(tmpdir(), 'street-')))
    const config = join(path, 'config.yaml')
    await writeFile(config, this.file())
    return this.use(new BridgeProcess({ config, env: { HUB2MQTT_HTTP_ENABLED: 'false' } }))
  }

  /** How often a bridge has published `online`. */
  get onlines(): number {
    return this.observer.texts('hub2mqtt/bridge/state').filter((text) => text === 'online').length
  }

  /** Resolves when bridges have published `online` more than `times` times, and all hubs are online. */
  async online(times = 0): Promise<void> {
    const { observer } = this
    await observer.until('the bridge', () => this.onlines > times, 30_000)
    for (const name of this.hubs.keys()) {
      await observer.until(name, () => observer.last(`hub2mqtt/${name}/state`) === 'online', 30_000)
      await observer.until(`${name}'s app`, () => observer.last(`hub2mqtt/${name}/app/${APP}`))
    }
  }

  /** Orders a rollout. By default, the rollout is named `t` and restarts the app. */
  rollOut(order: object = {}): Promise<Answer> {
    return this.ask('rollout', { ...RESTART, transaction: 't', ...order })
  }

  answered(transaction = 't'): Promise<Rollout> {
    return this.until(transaction, ({ current }) => current[0]?.phase === 'answered')
  }

  /** Advances the clock, in steps too short to be detected as a suspension. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= STEP_MS) {
      this.clock.jump(Math.min(left, STEP_MS))
      await this.ask('ping', {})
    }
  }

  rollout(transaction: string): Rollout | undefined {
    const topic = topics.of('rollout', { transaction })
    return readRollout(topics, topic, this.observer.last(topic) ?? '')
  }

  async until(transaction: string, holds: (rollout: Rollout) => boolean, ms = 30_000): Promise<Rollout> {
    const find = () => {
      const rollout = this.rollout(transaction)
      return rollout !== undefined && holds(rollout) && rollout
    }
    return await this.observer.until(`the rollout ${transaction}`, find, ms).catch((error: Error) => {
      const told = this.observer.seen.filter(({ topic }) => topic.includes(APP)).slice(-12)
      const lines = told.map(({ at, topic, text }) => `${at} ${topic} ${text.slice(0, 200)}`)
      throw new Error(`${error.message}\n${JSON.stringify(this.rollout(transaction))}\n${lines.join('\n')}`)
    })
  }

  /** Like `until`, but advances the clock. */
  async passUntil(transaction: string, holds: (rollout: Rollout) => boolean): Promise<Rollout> {
    for (;;) {
      const rollout = this.rollout(transaction)
      if (rollout !== undefined && holds(rollout)) return rollout
      await this.pass(STEP_MS)
    }
  }

  /** Resolves when the rollout has ended. Advances the clock past the pause of `RESTART` after each wave. */
  async ended(transaction = 't'): Promise<Rollout> {
    let skippedAt = ''
    return await this.until(transaction, ({ state, current, updated_at }) => {
      const pauses = current.length > 0 && current.every(({ phase }) => phase === 'answered')
      if (pauses && updated_at !== skippedAt) {
        this.clock.jump(PAUSE_MS)
        skippedAt = updated_at
      }
      return state !== 'running'
    })
  }

  /** Returns how often each hub was asked to restart the app. */
  asked(): number[] {
    const restarts = ({ requests }: EmulatedHub) => requests.filter(({ operation }) => operation === 'restartApp')
    return [...this.hubs.values()].map((hub) => restarts(hub).length)
  }

  /** Expects that each hub received the command once, or perhaps twice if its step has no answer in the record. */
  expectRepeated(record: Rollout | undefined): void {
    const unsure = new Set(record?.current.filter(({ phase }) => phase === 'sent').map(({ hub }) => hub))
    for (const [i, times] of this.asked().entries()) {
      expect(times).toBeGreaterThanOrEqual(1)
      expect(times).toBeLessThanOrEqual(unsure.has(`h${i}`) ? 2 : 1)
    }
  }
}
