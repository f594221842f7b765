/** Bridges in separate processes, with the hubs that they share, a broker, and NATS if they use leases. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { BridgeProcess } from '../support/bridge-process.ts'
import { BROKERS, startBroker } from '../support/brokers.ts'
import { Fleet, type FleetParts, numbered, openFleet } from '../support/fleet.ts'
import { freePort } from '../support/ports.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { ALL_SCOPES } from '../support/world.ts'

export interface MembersOptions {
  readonly hubs: number
  /** The `fleet.…` options of each member. */
  readonly members: readonly { readonly fleet: Readonly<Record<string, unknown>> }[]
  /** Additional configuration of all members. */
  readonly config?: Readonly<Record<string, unknown>>
  /** The ports of NATS. If set, each member has its own connections to NATS and the broker, which a test can cut. */
  readonly natsPorts?: readonly number[]
  /** Whether a test can set the wall clocks of the members. If so, the members run from the sources. */
  readonly hasClocks?: true
}

/** The proxies between a member and its servers, NATS and the broker. */
export interface Lines {
  readonly broker: TcpProxy
  readonly nats: readonly TcpProxy[]
}

export interface Asked {
  readonly hub: string
  /** The member that sent the request, according to its API key. */
  readonly member: number
  /** The time of the request, in epoch milliseconds. */
  readonly at: number
  readonly method: string
  readonly path: string
}

/** Lets the test set a member's wall clock. */
const CLOCK = new URL('../chaos/preload/clock.ts', import.meta.url).href

async function linesTo(broker: number, nats: readonly number[], open: AsyncDisposableStack): Promise<Lines> {
  const to = async (port: number) => open.use(await TcpProxy.to(port))
  return { broker: await to(broker), nats: await Promise.all(nats.map(to)) }
}

const keyOf = (member: number) => `key-of-member-${member}`

export class Members extends Fleet {
  readonly processes: (BridgeProcess | undefined)[] = []
  readonly #options: MembersOptions
  readonly #lines: Lines[] = []
  readonly #paths: string[] = []

  private constructor(parts: FleetParts, options: MembersOptions) {
    super(parts)
    this.#options = options
  }

  static async start(options: MembersOptions): Promise<Members> {
    await using closing = new AsyncDisposableStack()
    const keys = Object.fromEntries(options.members.map((_, i) => [keyOf(i), ALL_SCOPES]))
    const parts = await openFleet(numbered(options.hubs, { keys }), await startBroker(BROKERS[0]))
    const world = closing.use(new Members(parts, options))
    const { broker, open } = world
    const { path: folder } = open.use(await mkdtempDisposable(join(tmpdir(), 'fleet-')))
    for (const [i, { fleet }] of options.members.entries()) {
      const entries = [...world.hubs].map(([name, { url }]) => [
        name,
        { url, api_key: keyOf(i), poll_interval: '1s', poll_interval_fallback: '1s' },
      ])
      const lines = options.natsPorts && (await linesTo(broker.port, options.natsPorts, open))
      if (lines !== undefined) world.#lines.push(lines)
      const config = {
        mqtt: { url: lines === undefined ? broker.url : `mqtt://127.0.0.1:${lines.broker.port}`, keepalive: '2s' },
        http: { port: await freePort() },
        ...options.config,
        fleet: { ...fleet, ...(lines && { nats: lines.nats.map(({ port }) => `nats://127.0.0.1:${port}`) }) },
        hubs: Object.fromEntries(entries),
      }
      const path = join(folder, `${i}.yaml`)
      await writeFile(path, stringify(config), { mode: 0o600 })
      world.#paths.push(path)
    }
    open.defer(() => Promise.all(world.processes.map((one) => one?.stop('SIGKILL'))).then(() => undefined))
    for (const i of options.members.keys()) world.run(i)
    closing.move()
    return world
  }

  run(member: number): void {
    const config = this.#paths[member]
    if (config === undefined) throw new RangeError(`no member ${member}`)
    const { hasClocks } = this.#options
    this.processes[member] = new BridgeProcess({ config, ...(hasClocks && { preload: [CLOCK], channel: true }) })
  }

  lines(member: number): Lines {
    const found = this.#lines[member]
    if (found === undefined) throw new RangeError(`no lines of member ${member}`)
    return found
  }

  process(member: number): BridgeProcess {
    const found = this.processes[member]
    if (found === undefined) throw new RangeError(`no member ${member}`)
    return found
  }

  /** Resolves when every hub is online and one of these members is its owner. */
  async served(by: readonly string[], ms = 60_000): Promise<void> {
    await until(`hubs served by ${by.join(', ')}`, () => this.isServed(by), ms)
  }

  /** Restarts stopped members. Resolves when each member with one of these names serves its share. */
  async whole(names: readonly string[]): Promise<void> {
    const isOnline = (name: string) => this.observer.last(`hub2mqtt/bridge/${name}/state`) === 'online'
    for (const [i, name] of names.entries()) {
      if (this.process(i).alive) continue
      await until(`the end of ${name}`, () => !isOnline(name))
      this.run(i)
    }
    const isWhole = () => names.every(isOnline) && this.isWhole(names)
    await until(`a fleet of ${names.join(', ')}`, isWhole, 60_000)
    await this.served(names)
  }

  /** Clears the recorded requests and messages, except the newest retained message of each topic. */
  forget(): void {
    const held = new Map(this.observer.seen.filter(({ retain }) => retain).map((one) => [one.topic, one]))
    this.observer.seen = [...held.values()]
    for (const hub of this.hubs.values()) hub.forgetRequests()
  }

  /** Returns every request to a hub, with the member to which its API key belongs. */
  asked(since = 0): Asked[] {
    return [...this.hubs].flatMap(([hub, { requests }]) =>
      requests.flatMap(({ at, method, path, key }) => {
        const member = this.#options.members.findIndex((_, i) => keyOf(i) === key)
        return member === -1 || at < since ? [] : [{ hub, member, at, method, path }]
      }),
    )
  }
}
