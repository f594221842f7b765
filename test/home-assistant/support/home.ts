/** A home: an emulated hub, a broker, the bridge as a process, and a real Home Assistant. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AppSeed, EmulatedHub } from '../../../src/emulator/hub.ts'
import { DEFAULT_APPS } from '../../../src/emulator/population.ts'
import { Mosquitto, Observer } from '../../support/brokers.ts'
import { BridgeProcess } from './bridge.ts'
import { eventually } from './eventually.ts'
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

export class Home implements AsyncDisposable {
  readonly hub: EmulatedHub
  readonly broker: Mosquitto
  readonly bridge: BridgeProcess
  readonly ha: HomeAssistant
  readonly #folder: string
  observer: Observer

  private constructor(parts: Pick<Home, 'hub' | 'broker' | 'bridge' | 'ha' | 'observer'>, folder: string) {
    this.hub = parts.hub
    this.broker = parts.broker
    this.bridge = parts.bridge
    this.ha = parts.ha
    this.observer = parts.observer
    this.#folder = folder
  }

  static async start(): Promise<Home> {
    const hass = await installHomeAssistant()
    const apps = [...DEFAULT_APPS, ...HOSTILE]
    const keys = { [KEY]: ['homey.app', 'homey.speech', 'homey.system'] }
    const hub = await EmulatedHub.start({ keys, apps, flavour: 'older', settleMs: 200 })
    const broker = await Mosquitto.start({ persistent: true })
    const ha = await HomeAssistant.start(hass, broker.port)
    const folder = await mkdtemp(join(tmpdir(), 'hub2mqtt-'))
    const config = join(folder, 'hub2mqtt.yaml')
    await writeFile(config, configuration(hub.url, broker.url), { mode: 0o600 })
    const observer = await Observer.on(broker.port)
    return new Home({ hub, broker, ha, observer, bridge: new BridgeProcess(config) }, folder)
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
  async untilState(uniqueId: string, wanted: string, ms?: number): Promise<State> {
    const { entity_id } = await this.entity(uniqueId)
    let seen: string | undefined
    const probe = async () => {
      const state = (await this.ha.states()).get(entity_id)
      seen = state?.state
      return state !== undefined && state.state === wanted && state
    }
    return eventually(`${entity_id} to be ${wanted}`, probe, ms).catch((error: unknown) => {
      throw new Error(`${entity_id} is ${seen}, not ${wanted}`, { cause: error })
    })
  }

  /** Uses a service of Home Assistant on an entity. */
  async use(service: string, uniqueId: string, data?: Readonly<Record<string, unknown>>): Promise<void> {
    await this.ha.call(service, (await this.entity(uniqueId)).entity_id, data)
  }

  asked(operation: string): number {
    return this.hub.requests.filter((request) => request.operation === operation).length
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.ha.stop()
    await this.ha[Symbol.asyncDispose]()
    await this.bridge.stop()
    await this.observer[Symbol.asyncDispose]()
    await this.broker[Symbol.asyncDispose]()
    await this.hub.close()
    await rm(this.#folder, { recursive: true, force: true })
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
