/** A broker, a client that observes it, hubs, and the bridges that share the hubs. */
import { EmulatedHub, type EmulatedHubOptions } from '../../src/emulator/hub.ts'
import { type RunningBridge, startBridge } from './bridge.ts'
import { BROKERS, type Broker, type BrokerKind, Mosquitto, startBroker } from './brokers.ts'
import { JumpClock } from './jump-clock.ts'
import type { Nats } from './nats.ts'
import { Observer } from './observer.ts'
import { temporaryFile } from './temporary-file.ts'
import { until } from './until.ts'
import { ALL_SCOPES, type Answer, KEY } from './world.ts'

type Env = Readonly<Record<string, string>>

/** The options of each hub by name. */
type HubsByName = Readonly<Record<string, EmulatedHubOptions>>

/** The configuration of the bridges, without broker and hubs. */
export type FleetConfig = Readonly<Record<string, unknown>>

/** The only app of each hub, unless a test chooses other apps. */
export const APP = 'the.app'

/** Returns the id of a numbered hub. The first hub is 0. */
export const idOf = (hub: number): string => String(hub).padStart(24, '0')

/** Returns the options of hubs with the names `h0`, `h1`, and so on. */
export const numbered = (count: number, common: EmulatedHubOptions = { apps: [{ id: APP }] }): HubsByName =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`h${i}`, { id: idOf(i), ...common }]))

export interface FleetParts<K extends Broker = Broker> extends Pick<Fleet<K>, 'hubs' | 'broker' | 'observer'> {
  readonly open: AsyncDisposableStack
}

interface FleetOptions {
  /** The hubs, or the number of numbered hubs with one app each. */
  readonly hubs: HubsByName | number
  /** The broker; default: the first of `BROKERS`, for tests that do not depend on the kind of broker. */
  readonly broker?: BrokerKind | Mosquitto
  /** The configuration of the bridges; default: rollouts are allowed. */
  readonly config?: FleetConfig
  /** Additional configuration of bridges in this process, as environment variables. */
  readonly env?: Env
}

/** Starts the hubs and an observer of the broker, which is closed with them. */
export async function openFleet<K extends Broker>(wanted: HubsByName, broker: K): Promise<FleetParts<K>> {
  await using open = new AsyncDisposableStack()
  open.use(broker)
  const protocol = broker instanceof Mosquitto ? '5' : '3.1.1'
  const observer = open.use(await Observer.on(broker.port, { protocol, retainAsPublished: true, reconnects: true }))
  const hubs = new Map<string, EmulatedHub>()
  const keys = { [KEY]: ALL_SCOPES }
  for (const [name, own] of Object.entries(wanted))
    hubs.set(name, open.use(await EmulatedHub.start({ keys, settleMs: 0, flavour: 'older', ...own })))
  return { hubs, broker, observer, open: open.move() }
}

/** Returns a configuration file in JSON, which is valid YAML. `ofHub` are the options of each hub. */
export function configOf(
  { hubs, broker }: Pick<FleetParts, 'hubs' | 'broker'>,
  ofHub: Readonly<Record<string, string>>,
  config: FleetConfig,
): string {
  const entries = [...hubs].map(([name, { url }]) => [name, { url, api_key: KEY, ...ofHub }])
  return JSON.stringify({ mqtt: { url: broker.url }, hubs: Object.fromEntries(entries), ...config })
}

export class Fleet<K extends Broker = Broker> implements AsyncDisposable {
  readonly hubs: Map<string, EmulatedHub>
  readonly broker: K
  readonly observer: Observer
  /** The clock of the bridges in this process. */
  readonly clock = new JumpClock()
  protected readonly open: AsyncDisposableStack
  readonly #options: Partial<FleetOptions>

  protected constructor({ hubs, broker, observer, open }: FleetParts<K>, options: Partial<FleetOptions> = {}) {
    this.hubs = hubs
    this.broker = broker
    this.observer = observer
    this.open = open
    this.#options = options
  }

  static async build(options: FleetOptions): Promise<Fleet> {
    const { hubs, broker = BROKERS[0] } = options
    const started = typeof broker === 'string' ? await startBroker(broker) : broker
    return new Fleet(await openFleet(typeof hubs === 'number' ? numbered(hubs) : hubs, started), options)
  }

  /** Like `build`, but also starts a bridge in this process. */
  static async open(options: FleetOptions): Promise<Fleet> {
    await using open = new AsyncDisposableStack()
    const fleet = open.use(await Fleet.build(options))
    await fleet.bridge()
    open.move()
    return fleet
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.open.disposeAsync()
  }

  /** Registers a resource that is closed with the fleet. */
  use<T extends AsyncDisposable>(resource: T): T {
    return this.open.use(resource)
  }

  hub(name: string): EmulatedHub {
    const hub = this.hubs.get(name)
    if (hub === undefined) throw new Error(`there is no ${name}`)
    return hub
  }

  /** Returns the configuration file of the bridges, in JSON. */
  config({ commands = { allow: ['bridge/rollout'] }, ...config }: FleetConfig = this.#options.config ?? {}): string {
    const ofHub = { poll_interval: '2s', poll_interval_fallback: '1s', timeout: '1m' }
    return configOf(this, ofHub, { commands, ...config })
  }

  /** Starts a bridge in this process. Resolves when it is online with all of its hubs. */
  async bridge(): Promise<RunningBridge> {
    const times = this.onlines
    const bridge = this.begin()
    await this.online(times)
    return bridge
  }

  begin(env: Env = {}): RunningBridge {
    return this.use(startBridge({ ...this.#options.env, ...env }, this.config(), this.clock))
  }

  /** Starts a member of a fleet with leases in this process. */
  join(nats: Nats, member: string, env: Env = {}): RunningBridge {
    return this.begin({ FLEET_NATS: nats.urls.join(), FLEET_MEMBER: member, FLEET_LEASE: '5s', ...env })
  }

  /** Writes a configuration file for a bridge in a separate process, and returns its path. */
  write(file: string): Promise<string> {
    return temporaryFile(this.open, 'hub2mqtt.json', file)
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

  /** Sends a command to a hub or the bridge, by default with a new transaction, and resolves with its answer. */
  async ask(command: string, payload: object = {}, of = 'bridge'): Promise<Answer> {
    const { observer } = this
    const result = `hub2mqtt/${of}/result/${command}`
    const before = observer.texts(result).length
    const order: { transaction?: string } = { transaction: `t${Math.random()}`, ...payload }
    const isAnswer = (text: string) => text.includes(order.transaction ?? '')
    await observer.publish(`hub2mqtt/${of}/cmd/${command}`, JSON.stringify(order))
    const find = () => observer.texts(result).slice(before).find(isAnswer)
    return JSON.parse(await observer.until(`an answer on ${result}`, find, 30_000))
  }

  /** Returns the newest payload of a topic; an object without keys if there is none. */
  payload(topic: string) {
    return Object(JSON.parse(this.observer.last(topic) || '{}'))
  }

  /** Returns the owner of each hub, according to the hub's `info` message. */
  owners(): Map<string, unknown> {
    return new Map([...this.hubs.keys()].map((hub) => [hub, this.payload(`hub2mqtt/${hub}/info`).owner]))
  }

  /** Returns whether every hub is online and one of these members is its owner. */
  isServed(by: readonly string[]): boolean {
    const isOnline = (hub: string) => this.observer.last(`hub2mqtt/${hub}/state`) === 'online'
    return [...this.owners()].every(([hub, owner]) => isOnline(hub) && by.includes(String(owner)))
  }

  /** Resolves when every hub is online and one of these members is its owner. */
  async served(by: readonly string[], ms = 60_000): Promise<void> {
    await until(`hubs served by ${by.join(', ')}`, () => this.isServed(by), ms)
  }

  /** Returns whether the `fleet` message lists exactly these members, each with the number of hubs that it owns. */
  isWhole(names: readonly string[]): boolean {
    const owners = [...this.owners().values()]
    const { count, members } = this.payload('hub2mqtt/fleet')
    const hasShare = (name: string) => members?.[name]?.hubs === owners.filter((one) => one === name).length
    return count === names.length && names.every(hasShare)
  }
}
