/** A broker, a client that observes it, and hubs that several bridges share. Subclasses start the bridges. */
import { EmulatedHub, type EmulatedHubOptions } from '../../src/emulator/hub.ts'
import { type Broker, Mosquitto } from './brokers.ts'
import { Observer } from './observer.ts'
import { ALL_SCOPES, type Answer, KEY } from './world.ts'

/** The options of each hub by name. */
export type HubsByName = Readonly<Record<string, EmulatedHubOptions>>

/** Returns the id of a numbered hub. The first hub is 0. */
export const idOf = (hub: number): string => String(hub).padStart(24, '0')

/** Returns the options of hubs with the names `h0`, `h1`, and so on. */
export const numbered = (count: number, common: EmulatedHubOptions): HubsByName =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`h${i}`, { id: idOf(i), ...common }]))

export interface FleetParts<K extends Broker = Broker> extends Pick<Fleet<K>, 'hubs' | 'broker' | 'observer'> {
  readonly open: AsyncDisposableStack
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

export class Fleet<K extends Broker = Broker> implements AsyncDisposable {
  readonly hubs: Map<string, EmulatedHub>
  readonly broker: K
  readonly observer: Observer
  protected readonly open: AsyncDisposableStack

  protected constructor({ hubs, broker, observer, open }: FleetParts<K>) {
    this.hubs = hubs
    this.broker = broker
    this.observer = observer
    this.open = open
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

  /** Returns whether the `fleet` message lists exactly these members, each with the number of hubs that it owns. */
  isWhole(names: readonly string[]): boolean {
    const owners = [...this.owners().values()]
    const { count, members } = this.payload('hub2mqtt/fleet')
    const hasShare = (name: string) => members?.[name]?.hubs === owners.filter((one) => one === name).length
    return count === names.length && names.every(hasShare)
  }
}
