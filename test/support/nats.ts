/** Real NATS servers: one, or a cluster of three, with JetStream and optionally as MQTT 3.1.1 brokers. */
import { spawnSync } from 'node:child_process'
import { mkdtempDisposable, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { compareVersions } from '../../src/base/versions.ts'
import { freePort, onFreePorts } from './ports.ts'
import { Process } from './process.ts'
import { available, findServer } from './skipped.ts'
import { until } from './until.ts'

/** A cluster elects a leader in a few seconds, but needs more on a busy machine. */
const READY_MS = 60_000

const FROM = 'apt-get install nats-server, or NATS_SERVER=<path>'
export const natsPath = findServer('NATS', 'nats-server', FROM, process.env['NATS_SERVER'])

/** Whether NATS can be the bridge's broker. NATS before 2.10 rejects topics with dots, which app ids contain. */
export const natsIsBroker =
  natsPath !== undefined &&
  available(
    process.env['NATS_BROKER'] === '1' && isNewEnough(natsPath),
    'the tests with NATS as the broker, which take minutes',
    'they need NATS_BROKER=1 and nats-server 2.10 or newer (NATS_SERVER=<path>)',
  )

function isNewEnough(path: string): boolean {
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  return compareVersions(/v(\d\S*)/.exec(stdout)?.[1] ?? '', '2.10') >= 0
}

/** See https://docs.nats.io/running-a-nats-service/nats_admin/monitoring#jetstream-information-jsz */
const JSZ = v.object({
  account_details: v.array(
    v.object({
      stream_detail: v.optional(
        v.array(v.object({ name: v.string(), cluster: v.optional(v.object({ leader: v.optional(v.string()) })) })),
      ),
    }),
  ),
})

export interface NatsOptions {
  /** The number of servers; default: 1. */
  readonly nodes?: 1 | 3
  /** Whether the servers are also MQTT brokers; default: `false`. */
  readonly mqtt?: boolean
  readonly config?: readonly string[]
}

export interface Nats extends AsyncDisposable {
  /** The URL of each node: `nats://127.0.0.1:…`. */
  readonly urls: readonly string[]
  /** The MQTT URL of each node: `mqtt://127.0.0.1:…`; empty without `mqtt`. */
  readonly mqttUrls: readonly string[]
  readonly nodes: readonly NatsNode[]
  node(index: number): NatsNode
  /** Resolves with the node that leads a JetStream stream; `undefined` without a leader. */
  leaderOf(stream: string): Promise<NatsNode | undefined>
  /** Resolves when JetStream works on every running node. */
  untilReady(): Promise<void>
}

/** Starts the servers on free ports, with JetStream's data in a temporary folder; resolves when all are ready. */
export const startNats = (options: NatsOptions = {}): Promise<Nats> => onFreePorts(() => start(options))

async function start({ nodes: count = 1, mqtt = false, config = [] }: NatsOptions): Promise<Nats> {
  await using open = new AsyncDisposableStack()
  const { path: folder } = open.use(await mkdtempDisposable(join(tmpdir(), 'nats-')))
  const ports: Ports[] = []
  for (let i = 0; i < count; i += 1) {
    ports.push({ client: await freePort(), monitor: await freePort(), route: await freePort(), mqtt: await freePort() })
  }
  const routes = ports.map(({ route }) => `nats://127.0.0.1:${route}`)
  const nodes = ports.map((own, index) => {
    const name = `n${index + 1}`
    const lines = [
      `server_name: ${name}`,
      `listen: "127.0.0.1:${own.client}"`,
      `http: "127.0.0.1:${own.monitor}"`,
      `jetstream { store_dir: "${join(folder, name)}", max_mem: 64MB, max_file: 1GB }`,
      ...(mqtt ? [`mqtt { listen: "127.0.0.1:${own.mqtt}" }`] : []),
      ...(count > 1
        ? [`cluster { name: test, listen: "127.0.0.1:${own.route}", routes: [${routes.join(', ')}] }`]
        : []),
    ]
    return new NatsNode(name, own, { config: join(folder, `${name}.conf`), data: join(folder, name) }, lines, config)
  })
  for (const node of nodes) open.defer(() => node.kill())
  await Promise.all(nodes.map((node) => node.start()))
  const untilReady = async () => {
    await Promise.all(nodes.filter(({ runs }) => runs).map((node) => node.untilReady()))
  }
  await untilReady()
  const closing = open.move()
  return {
    urls: nodes.map(({ url }) => url),
    mqttUrls: mqtt ? nodes.map(({ mqttUrl }) => mqttUrl) : [],
    nodes,
    node(index) {
      const node = nodes[index]
      if (node === undefined) throw new RangeError(`no node ${index}`)
      return node
    },
    async leaderOf(stream) {
      const named = await Promise.all(nodes.filter(({ runs }) => runs).map((node) => node.leaderOf(stream)))
      return nodes.find(({ name, runs }) => runs && named.includes(name))
    },
    untilReady,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

interface Ports {
  readonly client: number
  readonly monitor: number
  readonly route: number
  readonly mqtt: number
}

interface Paths {
  readonly config: string
  readonly data: string
}

/** One server, which keeps its data and ports across `kill` and `restart`. */
export class NatsNode {
  /** The name in the cluster: `n1`, `n2`, `n3`. */
  readonly name: string
  readonly port: number
  readonly mqttPort: number
  readonly url: string
  readonly mqttUrl: string
  readonly #monitor: number
  readonly #paths: Paths
  readonly #lines: readonly string[]
  #config: readonly string[]
  #process: Process | undefined
  #hung = false

  constructor(name: string, ports: Ports, paths: Paths, lines: readonly string[], config: readonly string[]) {
    this.name = name
    this.port = ports.client
    this.mqttPort = ports.mqtt
    this.url = `nats://127.0.0.1:${ports.client}`
    this.mqttUrl = `mqtt://127.0.0.1:${ports.mqtt}`
    this.#monitor = ports.monitor
    this.#paths = paths
    this.#lines = lines
    this.#config = config
  }

  get runs(): boolean {
    return this.#process?.alive === true && !this.#hung
  }

  async start(): Promise<void> {
    await writeFile(this.#paths.config, [...this.#lines, ...this.#config].map((line) => `${line}\n`).join(''))
    this.#hung = false
    this.#process = new Process(natsPath ?? 'nats-server', ['-c', this.#paths.config])
    await this.#process.untilPort(this.port, READY_MS)
  }

  /** Resolves when JetStream has a leader and is up to date on this node. */
  async untilReady(): Promise<void> {
    await until(`JetStream of ${this.name}`, () => this.#isReady(), READY_MS, 50)
  }

  /** @throws Error while the process is not running */
  get pid(): number {
    if (this.#process === undefined) throw new Error(`${this.name} does not run`)
    return this.#process.pid
  }

  async kill(): Promise<void> {
    await this.#process?.stop('SIGKILL')
  }

  /** Terminates the node with SIGTERM, so that it first transfers the leadership of its streams. */
  async end(): Promise<void> {
    await this.#process?.stop('SIGTERM')
  }

  /** Suspends the process until `cont`; its connections stay open. */
  stop(): void {
    this.#hung = true
    this.#process?.signal('SIGSTOP')
  }

  cont(): void {
    this.#hung = false
    this.#process?.signal('SIGCONT')
  }

  /** Restarts the node with the same data, and waits until it is ready. `config` replaces the additional lines. */
  async restart(config = this.#config): Promise<void> {
    this.#config = config
    await this.kill()
    await this.start()
    await this.untilReady()
  }

  /** Resolves with the name of the node that leads a stream, according to this node. */
  async leaderOf(stream: string): Promise<string | undefined> {
    try {
      const url = `http://127.0.0.1:${this.#monitor}/jsz?accounts=true&streams=true`
      const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) })
      const { account_details: accounts } = v.parse(JSZ, await answer.json())
      const streams = accounts.flatMap(({ stream_detail }) => stream_detail ?? [])
      return streams.find(({ name }) => name === stream)?.cluster?.leader
    } catch {
      return undefined
    }
  }

  /** Deletes the node's data. Must be called only while the node is stopped. */
  async forget(): Promise<void> {
    await rm(this.#paths.data, { recursive: true })
  }

  async #isReady(): Promise<boolean> {
    if (this.#process?.alive !== true) throw new Error(`${this.name} has ended: ${this.#process?.errors.slice(-5)}`)
    try {
      const { ok } = await fetch(`http://127.0.0.1:${this.#monitor}/healthz`, { signal: AbortSignal.timeout(2_000) })
      return ok
    } catch {
      return false
    }
  }
}
