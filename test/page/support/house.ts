/** The environment of the page: emulated hubs, a real broker, and the daemon. */
import type { Page } from 'playwright-core'
import * as v from 'valibot'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { VERSION } from '../../../src/base/version.ts'
import type { EmulatedHub, EmulatedHubOptions } from '../../../src/emulator/hub.ts'
import { SESSION } from '../../../src/web/server/api/protocol.ts'
import { type RunningBridge, startBridge } from '../../support/bridge.ts'
import { BridgeProcess } from '../../support/bridge-process.ts'
import { Mosquitto } from '../../support/brokers.ts'
import { configOf, Fleet, type FleetParts, openFleet } from '../../support/fleet.ts'
import { freePort } from '../../support/ports.ts'
import { temporaryFile } from '../../support/temporary-file.ts'
import { until } from '../../support/until.ts'
import { type View, visit } from './browser.ts'

const KEY = 'key-of-the-house'
export const PASSWORD = 'a password for tests'

export interface HouseOptions {
  /** The hubs by name; default: a hub called `home`. */
  readonly hubs?: Readonly<Record<string, EmulatedHubOptions>>
  /** Options of the daemon, in addition to hubs, broker and port. */
  readonly config?: Readonly<Record<string, unknown>>
  readonly scopes?: readonly string[]
}

type Daemon = RunningBridge | BridgeProcess

export class House<D extends Daemon = RunningBridge> extends Fleet<Mosquitto> {
  readonly port: number
  readonly url: string
  /** The address of the page that the daemon has printed; with a password, the same as `url`. */
  page: string
  daemon: D
  /** The path of the configuration file. */
  readonly file: string
  readonly #run: (file: string) => D

  private constructor(parts: FleetParts<Mosquitto>, port: number, file: string, run: (file: string) => D) {
    super(parts)
    this.port = port
    this.file = file
    this.url = `http://127.0.0.1:${port}/`
    this.page = this.url
    this.#run = run
    this.daemon = run(file)
  }

  static start(options: HouseOptions = {}): Promise<House> {
    return House.#start(options, (path) => startBridge({}, undefined, systemClock, { version: VERSION, path }))
  }

  /** Starts a house whose daemon is a separate process, for tests that kill or suspend it, and for measurements. */
  static startApart(options: HouseOptions = {}): Promise<House<BridgeProcess>> {
    return House.#start(options, (config) => new BridgeProcess({ config }))
  }

  static async #start<D extends Daemon>(options: HouseOptions, run: (file: string) => D): Promise<House<D>> {
    const { hubs: wanted = { home: {} }, config = {}, scopes = ['hub.app', 'hub.speech'] } = options
    await using closing = new AsyncDisposableStack()
    const entries = Object.entries(wanted).map(([name, more], i) => {
      const own = { keys: { [KEY]: scopes }, settleMs: 150, id: `5f0c8a1b2d3e4f50617283${11 + i}` }
      return [name, { ...own, ...more }] as const
    })
    const parts = await openFleet(Object.fromEntries(entries), await Mosquitto.start())
    const { open } = parts
    closing.use(open)
    const port = await freePort()
    const more = (key: string) => config[key] instanceof Object && config[key]
    const own = { ...config, mqtt: { url: parts.broker.url, ...more('mqtt') }, http: { ...more('http'), port } }
    const file = await temporaryFile(open, 'hub2mqtt.yaml', configOf(parts, { api_key: KEY }, own))
    const house = new House(parts, port, file, run)
    open.defer(() => house.daemon.stop())
    await house.#ready()
    closing.move()
    return house
  }

  override hub(name = 'home'): EmulatedHub {
    return super.hub(name)
  }

  /** Restarts the daemon on the same port. */
  async restart(): Promise<void> {
    await this.daemon.stop()
    await this.start()
  }

  async start(): Promise<void> {
    this.daemon = this.#run(this.file)
    await this.#ready()
  }

  async #ready(): Promise<void> {
    const isReady = async () => (await fetch(`${this.url}readyz`).catch(() => undefined))?.ok
    await until('the daemon to be ready', isReady, 30_000, 20)
    if (v.parse(SESSION, await (await fetch(`${this.url}api/session`)).json()).login === 'token') {
      this.page = await this.daemon.page()
    }
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

export async function logIn(page: Page, password = PASSWORD): Promise<void> {
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Log in' }).click()
}

export const rowWith = (page: Page, text: string | RegExp) => page.getByRole('row').filter({ hasText: text })

/** Returns the requests that the hub received and whose path contains `path`. */
export const asked = (at: Pick<House, 'hub'>, path: string) =>
  at.hub().requests.filter((request) => request.path.includes(path))
