/** Bridges in separate processes that are the members of a fleet, and their connections, which a test can cut. */
import { BridgeProcess, type BridgeProcessOptions } from '../support/bridge-process.ts'
import { configOf, type Fleet, type FleetConfig } from '../support/fleet.ts'
import { freePort } from '../support/ports.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { ALL_SCOPES } from '../support/world.ts'

export interface MembersOptions {
  /** The `fleet.…` options of each member, by its name. */
  readonly members: Readonly<Record<string, FleetConfig>>
  /** Additional configuration of all members. */
  readonly config?: FleetConfig
  /** The ports of NATS, if the members use leases. */
  readonly natsPorts?: readonly number[]
  /** Whether a test can set the wall clocks of the members. If so, the members run from the sources. */
  readonly hasClocks?: true
}

/** Lets the test set a member's wall clock. */
const CLOCK = new URL('../chaos/preload/clock.ts', import.meta.url).href
const KEY = 'key-of-'

export class Member implements AsyncDisposable {
  readonly name: string
  /** The connections to the broker and to NATS. */
  readonly broker: TcpProxy
  readonly nats: readonly TcpProxy[]
  process: BridgeProcess
  readonly #options: BridgeProcessOptions

  constructor({ name, broker, nats }: Pick<Member, 'name' | 'broker' | 'nats'>, options: BridgeProcessOptions) {
    this.name = name
    this.broker = broker
    this.nats = nats
    this.#options = options
    this.process = new BridgeProcess(options)
  }

  run(): void {
    this.process = new BridgeProcess(this.#options)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.process.stop('SIGKILL')
  }
}

/** Starts the members. Each has its own API key of every hub. */
export async function startMembers(fleet: Fleet, options: MembersOptions): Promise<Member[]> {
  const { members, config, natsPorts = [], hasClocks } = options
  const keys = Object.fromEntries(Object.keys(members).map((name) => [`${KEY}${name}`, ALL_SCOPES]))
  for (const hub of fleet.hubs.values()) hub.setKeys(keys)
  const proxyTo = async (port: number) => fleet.use(await TcpProxy.to(port))
  const started: Member[] = []
  for (const [name, own] of Object.entries(members)) {
    const broker = await proxyTo(fleet.broker.port)
    const nats = await Promise.all(natsPorts.map(proxyTo))
    const urls = nats.map(({ port }) => `nats://127.0.0.1:${port}`)
    const ofHub = { api_key: `${KEY}${name}`, poll_interval: '1s', poll_interval_fallback: '1s' }
    const file = configOf(fleet, ofHub, {
      mqtt: { url: `mqtt://127.0.0.1:${broker.port}`, keepalive: '2s' },
      http: { port: await freePort() },
      ...config,
      fleet: { ...own, ...(urls.length > 0 && { nats: urls }) },
    })
    const process = { config: await fleet.write(file), ...(hasClocks && { preload: [CLOCK], channel: true }) }
    started.push(fleet.use(new Member({ name, broker, nats }, process)))
  }
  return started
}

/** Restarts stopped members. Resolves when each member serves its share. */
export async function whole(fleet: Fleet, members: readonly Member[]): Promise<void> {
  const names = members.map(({ name }) => name)
  const isOnline = (name: string) => fleet.observer.last(`hub2mqtt/bridge/${name}/state`) === 'online'
  for (const member of members) {
    if (member.process.alive) continue
    await until(`the end of ${member.name}`, () => !isOnline(member.name))
    member.run()
  }
  await until(`a fleet of ${names.join(', ')}`, () => names.every(isOnline) && fleet.isWhole(names), 60_000)
  await fleet.served(names)
}

/** Clears the recorded requests and messages, except the newest retained message of each topic. */
export function forget({ observer, hubs }: Fleet): void {
  const held = new Map(observer.seen.filter(({ retain }) => retain).map((one) => [one.topic, one]))
  observer.seen = [...held.values()]
  for (const hub of hubs.values()) hub.forgetRequests()
}

export type MemberRequest = ReturnType<typeof memberRequests>[number]

/** Returns every request to a hub since a time, with the member that sent it, according to its API key. */
export function memberRequests({ hubs }: Fleet, since = 0) {
  return [...hubs].flatMap(([hub, { requests }]) =>
    requests.flatMap(({ at, path, key = '' }) =>
      key.startsWith(KEY) && at >= since ? [{ hub, member: key.slice(KEY.length), at, path }] : [],
    ),
  )
}
