import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { mkdtempDisposable, rm, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { createTopics } from '../../src/contract/topics.ts'
import { startEmbeddedBroker } from '../../src/mqtt/embedded.ts'
import { freePort, onFreePorts } from './ports.ts'
import { Process } from './process.ts'
import { silentLog } from './silent-log.ts'
import { findServer } from './skipped.ts'

export const mosquittoPath = findServer('Mosquitto', 'mosquitto', 'apt-get install mosquitto')

export interface MosquittoOptions {
  readonly acl?: readonly string[]
  /** The password of each user. Without users, every client may connect. */
  readonly users?: Readonly<Record<string, string>>
  /** Whether retained messages survive `restart`. */
  readonly persistent?: boolean
  readonly config?: readonly string[]
}

export class Mosquitto implements AsyncDisposable {
  readonly port: number
  readonly url: string
  readonly #folder: string
  #open = new AsyncDisposableStack()
  #process: Process | undefined
  #hung = false

  private constructor(port: number, folder: string) {
    this.port = port
    this.url = `mqtt://127.0.0.1:${port}`
    this.#folder = folder
  }

  static start(options: MosquittoOptions = {}): Promise<Mosquitto> {
    return onFreePorts(() => Mosquitto.#start(options))
  }

  static async #start(options: MosquittoOptions): Promise<Mosquitto> {
    await using open = new AsyncDisposableStack()
    const { path } = open.use(await mkdtempDisposable(join(tmpdir(), 'mosquitto-')))
    const broker = new Mosquitto(await freePort(), path)
    open.defer(() => broker.stop('SIGKILL'))
    await broker.configure(options)
    await broker.run()
    broker.#open = open.move()
    return broker
  }

  /** Changes the configuration. The changes take effect with the next `run`. */
  async configure({ acl, users, persistent = false, config = [] }: MosquittoOptions): Promise<void> {
    const lines = [
      `listener ${this.port} 127.0.0.1`,
      // Without this line, Mosquitto would switch from root to a user that cannot read these files.
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

  async run(): Promise<void> {
    this.#process = new Process(mosquittoPath ?? 'mosquitto', ['-c', join(this.#folder, 'conf')], { output: 'drop' })
    await this.#process.untilPort(this.port)
  }

  /** Stops the broker. On SIGTERM, the broker saves its data. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await this.#process?.stop(signal)
  }

  /** Deletes the saved data. Must be called only while the broker is stopped. */
  async forget(): Promise<void> {
    await rm(join(this.#folder, 'mosquitto.db'), { force: true })
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#hung = signal === 'SIGSTOP'
    this.#process?.signal(signal)
  }

  get hung(): boolean {
    return this.#hung
  }

  get pid(): number | undefined {
    return this.#process?.alive ? this.#process.pid : undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open.disposeAsync()
  }

  async #write(name: string, text: string): Promise<string> {
    const path = join(this.#folder, name)
    await writeFile(path, text, { mode: 0o600 })
    return path
  }
}

/** Hashes a password like mosquitto_passwd, by default with a random salt. */
export function passwordHash(password: string, salt = randomBytes(12)): string {
  const hash = pbkdf2Sync(password, salt, 101, 64, 'sha512')
  return `$7$101$${salt.toString('base64')}$${hash.toString('base64')}`
}

export type BrokerKind = 'mosquitto' | 'aedes'

/** The available brokers. Together, they cover both protocols, because the embedded broker supports only 3.1.1. */
export const BROKERS = mosquittoPath === undefined ? (['aedes'] as const) : (['mosquitto', 'aedes'] as const)

const PROTOCOLS = [
  ['mosquitto', '5'],
  ['mosquitto', '3.1.1'],
  ['aedes', '3.1.1'],
] as const
export const WITH_PROTOCOLS = PROTOCOLS.filter(([kind]) => BROKERS.some((broker) => broker === kind))

export interface Broker extends AsyncDisposable {
  readonly url: string
  readonly port: number
}

/** @param config additional lines of Mosquitto's configuration */
export async function startBroker(kind: BrokerKind, config: readonly string[] = []): Promise<Broker> {
  if (kind === 'mosquitto') return Mosquitto.start({ persistent: true, config })
  const { commandFilters } = createTopics('hub2mqtt')
  const broker = await startEmbeddedBroker({ host: '127.0.0.1', port: 0, commandFilters }, silentLog)
  return Object.assign(broker, { port: Number(new URL(broker.url).port) })
}
