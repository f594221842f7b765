/** A broker, a client that observes it, and hubs that several bridges share. Subclasses start the bridges. */
import { type AppSeed, EmulatedHub } from '../../src/emulator/hub.ts'
import { BROKERS, type Broker, type BrokerKind, Mosquitto, startBroker } from './brokers.ts'
import { Observer } from './observer.ts'
import { ALL_SCOPES, KEY } from './world.ts'

export interface FleetOptions {
  readonly hubs: number
  /** The broker; default: the first of `BROKERS`, for tests that do not depend on the kind of broker. */
  readonly broker?: BrokerKind | Mosquitto
  readonly apps?: AppSeed[]
  /** The API keys that all hubs accept. */
  readonly keys?: readonly string[]
}

/** Returns the id of a hub. The first hub is 0. */
export const idOf = (hub: number): string => String(hub).padStart(24, '0')

export type FleetParts = Awaited<ReturnType<typeof openFleet>>

export async function openFleet({ hubs: count, broker: kind = BROKERS[0], apps, keys = [KEY] }: FleetOptions) {
  await using open = new AsyncDisposableStack()
  const broker: Broker = open.use(typeof kind === 'string' ? await startBroker(kind) : kind)
  const protocol = broker instanceof Mosquitto ? '5' : '3.1.1'
  const observer = open.use(await Observer.on(broker.port, { protocol, retainAsPublished: true, comesBack: true }))
  const hubs = new Map<string, EmulatedHub>()
  const scopes = Object.fromEntries(keys.map((key) => [key, ALL_SCOPES]))
  for (let i = 0; i < count; i += 1) {
    const options = { id: idOf(i), keys: scopes, settleMs: 0, flavour: 'older', ...(apps && { apps }) } as const
    hubs.set(`h${i}`, open.use(await EmulatedHub.start(options)))
  }
  return { hubs, broker, observer, open: open.move() }
}

export class Fleet implements AsyncDisposable {
  readonly hubs: Map<string, EmulatedHub>
  readonly broker: Broker
  readonly observer: Observer
  protected readonly open: AsyncDisposableStack

  protected constructor({ hubs, broker, observer, open }: FleetParts) {
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

  /** Returns whether `B/fleet` has as many hubs of each member as there are hubs with this owner. */
  isWhole(names: readonly string[]): boolean {
    const owners = [...this.owners().values()]
    const { count, members } = this.payload('hub2mqtt/fleet')
    const hasShare = (name: string) => members?.[name]?.hubs === owners.filter((one) => one === name).length
    return count === names.length && names.every(hasShare)
  }
}
