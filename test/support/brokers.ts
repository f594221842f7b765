/** Real brokers for tests: Mosquitto in a process of its own, and clients that write down what a subscriber sees. */
import { type ChildProcess, spawn } from 'node:child_process'
import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect as connectTcp, createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { delimiter, join } from 'node:path'
import { type IClientPublishOptions, type IPublishPacket, MqttClient } from 'mqtt'

/** Where the binary is, or undefined. With REQUIRE_MOSQUITTO=1 its absence is an error instead of a reason to skip. */
export const mosquittoPath = findMosquitto()

function findMosquitto(): string | undefined {
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter),
    '/usr/sbin',
    '/usr/local/sbin',
    '/opt/homebrew/sbin',
  ]
  const found = folders.map((folder) => join(folder, 'mosquitto')).find((path) => existsSync(path))
  if (found !== undefined) return found
  if (process.env['REQUIRE_MOSQUITTO'] === '1') throw new Error('REQUIRE_MOSQUITTO=1, but there is no mosquitto binary')
  process.stderr.write('mosquitto is not installed: its tests are skipped\n')
  return undefined
}

/** A test run that is broken off leaves no broker behind. */
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

export interface MosquittoOptions {
  /** Lines of an access control file. */
  readonly acl?: readonly string[]
  /** Name to password; without, anybody may connect. */
  readonly users?: Readonly<Record<string, string>>
  /** Whether retained messages survive `restart`. */
  readonly persistent?: boolean
  /** Further lines of configuration. */
  readonly config?: readonly string[]
}

export class Mosquitto implements AsyncDisposable {
  readonly port: number
  readonly url: string
  readonly #folder: string
  #child: ChildProcess | undefined
  #hung = false

  private constructor(port: number, folder: string) {
    this.port = port
    this.url = `mqtt://127.0.0.1:${port}`
    this.#folder = folder
  }

  static async start(options: MosquittoOptions = {}): Promise<Mosquitto> {
    for (let tries = 0; ; tries += 1) {
      const broker = new Mosquitto(await freePort(), await mkdtemp(join(tmpdir(), 'mosquitto-')))
      await broker.configure(options)
      try {
        await broker.run()
        return broker
      } catch (error) {
        // Somebody else took the port in between.
        await broker[Symbol.asyncDispose]()
        if (tries === 3) throw error
      }
    }
  }

  /** Replaces the configuration; it takes effect with the next `run`. */
  async configure({ acl, users, persistent = false, config = [] }: MosquittoOptions): Promise<void> {
    const lines = [
      `listener ${this.port} 127.0.0.1`,
      // It would else become another user and could not read these files.
      `user ${userInfo().username}`,
      `allow_anonymous ${users === undefined}`,
      `persistence ${persistent}`,
      `persistence_location ${this.#folder}/`,
      ...config,
    ]
    if (users !== undefined) {
      const entries = Object.entries(users).map(([name, password]) => `${name}:${passwordHash(password)}\n`)
      lines.push(`password_file ${await this.#write('users', entries.join(''))}`)
    }
    if (acl !== undefined) lines.push(`acl_file ${await this.#write('acl', acl.map((line) => `${line}\n`).join(''))}`)
    await this.#write('conf', lines.map((line) => `${line}\n`).join(''))
  }

  /** Starts the process; resolves when it accepts connections. */
  async run(): Promise<void> {
    const child = spawn(mosquittoPath ?? 'mosquitto', ['-c', join(this.#folder, 'conf')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#child = child
    running.add(child)
    child.once('exit', () => running.delete(child))
    let output = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-4000)
    })
    let exited = false
    child.once('exit', () => {
      exited = true
    })
    const deadline = performance.now() + 10_000
    while (!(await accepts(this.port))) {
      if (exited || performance.now() > deadline) throw new Error(`mosquitto did not start: ${output}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    if (exited) throw new Error(`mosquitto did not start: ${output}`)
  }

  /** Ends the process; SIGTERM lets it save what it keeps. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    child.kill(signal)
    await exited
  }

  /** What it has kept is lost; only while it is stopped. */
  async forget(): Promise<void> {
    await rm(join(this.#folder, 'mosquitto.db'), { force: true })
  }

  /** Sends a signal and does not wait for an end: SIGSTOP hangs the broker, SIGCONT wakes it. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#hung = signal === 'SIGSTOP'
    this.#child?.kill(signal)
  }

  get hung(): boolean {
    return this.#hung
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGKILL')
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #write(name: string, text: string): Promise<string> {
    const path = join(this.#folder, name)
    await writeFile(path, text, { mode: 0o600 })
    return path
  }
}

/** As mosquitto_passwd writes it. */
export function passwordHash(password: string): string {
  const salt = randomBytes(12)
  const hash = pbkdf2Sync(password, salt, 101, 64, 'sha512')
  return `$7$101$${salt.toString('base64')}$${hash.toString('base64')}`
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectTcp({ port, host: '127.0.0.1' })
    const answer = (open: boolean) => {
      socket.destroy()
      resolve(open)
    }
    socket.once('connect', () => answer(true))
    socket.once('error', () => answer(false))
  })
}

export interface Seen {
  readonly topic: string
  readonly text: string
  readonly retain: boolean
  readonly packet: IPublishPacket
}

export interface ObserverOptions {
  readonly protocol?: '5' | '3.1.1'
  readonly username?: string
  readonly password?: string
  /** Default `#`. */
  readonly filter?: string
}

/** An ordinary client that subscribes to everything and remembers it, in order. */
export class Observer implements AsyncDisposable {
  readonly seen: Seen[] = []
  readonly #client: MqttClient

  private constructor(client: MqttClient) {
    this.#client = client
    client.on('message', (topic, payload, packet) => {
      this.seen.push({ topic, text: payload.toString(), retain: packet.retain, packet })
    })
  }

  /** Subscribed when it resolves; retained messages follow. */
  static async on(
    port: number,
    { protocol = '3.1.1', filter = '#', ...login }: ObserverOptions = {},
  ): Promise<Observer> {
    const client = new MqttClient(() => connectTcp({ port, host: '127.0.0.1', noDelay: true }), {
      ...login,
      clientId: `observer-${randomBytes(6).toString('hex')}`,
      protocolVersion: protocol === '5' ? 5 : 4,
      reconnectPeriod: 0,
    })
    // Each publish under way listens for the end of the connection.
    client.setMaxListeners(0)
    const observer = new Observer(client)
    await new Promise<void>((resolve, reject) => {
      client.once('connect', () => resolve())
      client.once('error', reject)
      client.once('close', () => reject(new Error('the broker closed the connection')))
    })
    client.on('error', () => undefined)
    await client.subscribeAsync(filter, { qos: 1 })
    return observer
  }

  /** What is seen of `topic`, oldest first. */
  texts(topic: string): string[] {
    return this.seen.filter((seen) => seen.topic === topic).map(({ text }) => text)
  }

  last(topic: string): string | undefined {
    return this.texts(topic).at(-1)
  }

  /** Resolves when the broker has it; rejects when it hangs up instead. */
  publish(topic: string, text: string | Buffer, options: IClientPublishOptions = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      const lost = () => reject(new Error('the broker closed the connection'))
      this.#client.once('close', lost)
      this.#client.publish(topic, text, { qos: 1, ...options }, (error) => {
        this.#client.off('close', lost)
        if (error) reject(error)
        else resolve()
      })
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise((resolve) => this.#client.end(true, () => resolve()))
  }
}

/** What a broker holds now, `$SYS` aside: topic to payload. */
export async function retainedOn(port: number, options: ObserverOptions = {}): Promise<Map<string, string>> {
  await using observer = await Observer.on(port, { filter: '#', ...options })
  const marker = `marker-${randomBytes(6).toString('hex')}`
  // aedes lets a live message overtake retained ones: over when none has come for three rounds.
  for (let round = 0, quiet = 0, seen = -1; quiet < 3; round += 1) {
    await observer.publish(marker, String(round))
    while (observer.last(marker) !== String(round)) await new Promise((resolve) => setTimeout(resolve, 2))
    const found = observer.seen.filter(({ retain }) => retain).length
    quiet = found === seen ? quiet + 1 : 0
    seen = found
  }
  return new Map(observer.seen.filter(({ retain }) => retain).map(({ topic, text }) => [topic, text]))
}
