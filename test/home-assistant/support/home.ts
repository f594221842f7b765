/** A home: an emulated hub, a broker, the bridge as a process, and a real Home Assistant. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'
import { type AppSeed, EmulatedHub } from '../../../src/emulator/hub.ts'
import { DEFAULT_APPS } from '../../../src/emulator/population.ts'
import { AnyWorld, type Parts } from '../../support/any-world.ts'
import { BridgeProcess } from '../../support/bridge-process.ts'
import { Mosquitto } from '../../support/brokers.ts'
import { Observer } from '../../support/observer.ts'
import { HomeAssistant, type RegisteredEntity, type State } from './home-assistant.ts'
import { installHomeAssistant } from './python.ts'

export const KEY = 'key-for-tests'
export const HUB = 'hub2mqtt--5f0c8a1b2d3e4f5061728394'
export const BRIDGE = 'hub2mqtt-bridge--5f0c8a1b2d3e4f5061728394'

/** Names that somebody might use, and that a template, a page or a slug might choke on. */
const HOSTILE: readonly AppSeed[] = [
  { id: 'x.hostile', name: '"<b>&\' {{ 1/0 }} {% raw %} 😀', version: '1.0.0', author: '{{ states }}' },
  { id: 'x.long', name: 'Long '.repeat(60), version: '1.0.0' },
  { id: 'x.same-a', name: 'Twins' },
  { id: 'x.same_b', name: 'Twins' },
  { id: 'x.nameless', name: '' },
]

const SETTINGS = `
  com.athom.hue:
    transition: { type: number, min: 0, max: 5000 }
    night: switch
    mode: { type: select, options: [calm, "{{ party }}"], name: Mood }
    greeting: text
`

export class Home extends AnyWorld<EmulatedHub, BridgeProcess, Mosquitto> {
  readonly ha: HomeAssistant
  readonly #config: string

  private constructor(
    parts: Parts<EmulatedHub, Mosquitto>,
    ha: HomeAssistant,
    config: string,
    open: AsyncDisposableStack,
  ) {
    super(parts, open)
    this.ha = ha
    this.#config = config
  }

  static async start(): Promise<Home> {
    await using open = new AsyncDisposableStack()
    const hass = await installHomeAssistant()
    const apps = [...DEFAULT_APPS, ...HOSTILE]
    const keys = { [KEY]: ['homey.app', 'homey.speech', 'homey.system'] }
    const hub = open.use(await EmulatedHub.start({ keys, apps, flavour: 'older', settleMs: 200 }))
    const broker = open.use(await Mosquitto.start({ persistent: true }))
    const ha = open.use(await HomeAssistant.start(hass, broker.port))
    const { path } = open.use(await mkdtempDisposable(join(tmpdir(), 'hub2mqtt-')))
    const config = join(path, 'hub2mqtt.yaml')
    await writeFile(config, configuration(hub.url, broker.url), { mode: 0o600 })
    const observer = open.use(await Observer.on(broker.port, { comesBack: true }))
    const home = new Home({ hub, broker, observer }, ha, config, open)
    home.startBridge()
    return home.keep(open)
  }

  /** With further configuration as environment variables, if any. */
  startBridge(env: Readonly<Record<string, string>> = {}): void {
    this.bridges.push(new BridgeProcess({ config: this.#config, env }))
  }

  /** An entity by its unique id. */
  async entity(uniqueId: string): Promise<RegisteredEntity> {
    const found = (await this.ha.entities()).find(({ unique_id }) => unique_id === uniqueId)
    if (found === undefined) throw new Error(`no entity ${uniqueId}`)
    return found
  }

  /** State of an entity by its unique id. */
  async state(uniqueId: string): Promise<State | undefined> {
    const { entity_id } = await this.entity(uniqueId)
    return (await this.ha.states()).get(entity_id)
  }

  /** Waits until an entity is in a state. */
  async untilState(uniqueId: string, wanted: string, timeout = 30_000): Promise<State> {
    const { entity_id } = await this.entity(uniqueId)
    const isThere = async () => {
      const state = (await this.ha.states()).get(entity_id)
      if (state?.state !== wanted) throw new Error(`${entity_id} is ${state?.state}, not ${wanted}`)
      return state
    }
    return vi.waitFor(isThere, { timeout })
  }

  /** Uses a service of Home Assistant on an entity. */
  async use(service: string, uniqueId: string, data?: Readonly<Record<string, unknown>>): Promise<void> {
    await this.ha.call(service, (await this.entity(uniqueId)).entity_id, data)
  }

  asked(operation: string): number {
    return this.hub.requests.filter((request) => request.operation === operation).length
  }
}

/** Object id of an app, written by hand as whoever depends on it would. */
export const appId = (encoded: string) => `${HUB}--${encoded}`

function configuration(hubUrl: string, brokerUrl: string): string {
  return `
hubs:
  home: { url: "${hubUrl}", api_key: ${KEY}, poll_interval: 2s, poll_interval_fallback: 1s }
mqtt: { url: "${brokerUrl}" }
http: { enabled: false }
log: { level: info, format: json }
settings:
  publish:
${SETTINGS.replace(/^/gm, '  ')}`
}
