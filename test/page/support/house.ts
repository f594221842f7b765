/** The environment of the page: emulated hubs, a real broker, and the daemon as a separate process. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import * as v from 'valibot'
import { onTestFinished } from 'vitest'
import { EmulatedHub, type EmulatedHubOptions } from '../../../src/emulator/hub.ts'
import { SESSION } from '../../../src/web/server/api/protocol.ts'
import { BridgeProcess } from '../../support/bridge-process.ts'
import { Mosquitto } from '../../support/brokers.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/until.ts'
import { type View, visit } from './browser.ts'

const KEY = 'key-of-the-house'

export interface HouseOptions {
  /** Hubs by name; default: a hub called `home`. */
  readonly hubs?: Readonly<Record<string, EmulatedHubOptions>>
  /** Configuration of the daemon, in addition to hubs, broker and port. */
  readonly config?: Readonly<Record<string, unknown>>
  readonly scopes?: readonly string[]
  /** The port of the daemon; default: any free port. */
  readonly port?: number
}

export class House implements AsyncDisposable {
  readonly hubs: ReadonlyMap<string, EmulatedHub>
  readonly broker: Mosquitto
  readonly url: string
  readonly port: number
  /** The address that the daemon has printed for its user; with a password, the same as `url`. */
  page: string
  readonly #config: string
  readonly #open: AsyncDisposableStack
  daemon: BridgeProcess

  private constructor(parts: Pick<House, 'hubs' | 'broker' | 'url' | 'port' | 'daemon'> & Inner) {
    this.hubs = parts.hubs
    this.broker = parts.broker
    this.url = parts.url
    this.port = parts.port
    this.page = parts.url
    this.daemon = parts.daemon
    this.#config = parts.config
    this.#open = parts.open
  }

  static async start({ hubs: wanted = { home: {} }, config = {}, scopes, port }: HouseOptions = {}): Promise<House> {
    await using open = new AsyncDisposableStack()
    const broker = open.use(await Mosquitto.start())
    const hubs = new Map<string, EmulatedHub>()
    const keys = { [KEY]: scopes ?? ['hub.app', 'hub.speech'] }
    let id = 10
    for (const [name, options] of Object.entries(wanted)) {
      id += 1
      const own = { keys, settleMs: 150, flavour: 'older', id: `5f0c8a1b2d3e4f50617283${id}`, ...options } as const
      hubs.set(name, open.use(await EmulatedHub.start(own)))
    }
    const { path: folder } = open.use(await mkdtempDisposable(join(tmpdir(), 'house-')))
    const file = join(folder, 'hub2mqtt.yaml')
    const http = await listening(port ?? (await freePort()), config['http'])
    const addresses = [...hubs].map(([name, { url }]) => [name, { url, api_key: KEY }])
    // JSON is also valid YAML.
    const text = JSON.stringify({
      hubs: Object.fromEntries(addresses),
      ...config,
      mqtt: { url: broker.url, ...(config['mqtt'] instanceof Object && config['mqtt']) },
      http,
    })
    await writeFile(file, text, { mode: 0o600 })
    const daemon = new BridgeProcess({ config: file })
    const house = new House({
      hubs,
      broker,
      daemon,
      port: http.port,
      url: `http://127.0.0.1:${http.port}/`,
      config: file,
      open: open.move(),
    })
    try {
      await house.#ready()
      return house
    } catch (error) {
      await house[Symbol.asyncDispose]()
      throw error
    }
  }

  hub(name = 'home'): EmulatedHub {
    const hub = this.hubs.get(name)
    if (hub === undefined) throw new Error(`there is no hub ${name}`)
    return hub
  }

  /** Starts a second daemon with the same configuration, except for these variables. */
  another(env: Readonly<Record<string, string>>): BridgeProcess {
    return new BridgeProcess({ config: this.#config, env })
  }

  /** Restarts the daemon on the same port. */
  async restart(): Promise<void> {
    await this.daemon.stop()
    await this.start()
  }

  async start(): Promise<void> {
    this.daemon = new BridgeProcess({ config: this.#config })
    await this.#ready()
  }

  async #ready(): Promise<void> {
    await this.daemon.untilPort(this.port, 30_000)
    await until('the daemon to be ready', async () => (await fetch(`${this.url}readyz`)).ok, 20_000, 20)
    if (v.parse(SESSION, await (await fetch(`${this.url}api/session`)).json()).login === 'token') {
      this.page = await this.daemon.page()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.daemon.stop()
    await this.#open.disposeAsync()
  }
}

/** Starts a house, which is closed at the end of the test. */
export async function startHouse(options?: HouseOptions): Promise<House> {
  const house = await House.start(options)
  onTestFinished(() => house[Symbol.asyncDispose]())
  return house
}

export async function show(options?: HouseOptions, view?: View): Promise<{ house: House; page: Page }> {
  const house = await startHouse(options)
  return { house, page: await visit(house.page, view) }
}

export const rowWith = (page: Page, text: string | RegExp) => page.getByRole('row').filter({ hasText: text })

/** Returns the requests that the hub received and whose path contains `path`. */
export const asked = (at: House, path: string) => at.hub().requests.filter((request) => request.path.includes(path))

interface Inner {
  readonly config: string
  readonly open: AsyncDisposableStack
}

function listening(port: number, more: unknown): { readonly port: number } {
  return { ...(typeof more === 'object' && more), port }
}
