/** A home: an emulated hub, a broker, the bridge as a process, and a real Home Assistant. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { type AppSeed, EmulatedHub } from '../../../src/emulator/hub.ts'
import { DEFAULT_APPS } from '../../../src/emulator/population.ts'
import { AnyWorld, type Parts } from '../../support/any-world.ts'
import { BridgeProcess } from '../../support/bridge-process.ts'
import { Mosquitto } from '../../support/brokers.ts'
import { Observer } from '../../support/observer.ts'
import { HomeAssistant, type RegisteredDevice, type RegisteredEntity, type State } from './home-assistant.ts'
import { installHomeAssistant } from './installation.ts'
import type { TestedVersion } from './versions.ts'

export const KEY = 'key-for-tests'
export const HUB = 'hub2mqtt--5f0c8a1b2d3e4f5061728394'
export const BRIDGE = 'hub2mqtt-bridge--5f0c8a1b2d3e4f5061728394'

/** Names that somebody might use, and that a template, a page or an entity id might choke on. */
const HOSTILE: readonly AppSeed[] = [
  { id: 'x.hostile', name: '"<b>&\' {{ 1/0 }} {% raw %} 😀', version: '1.0.0', author: '{{ states }}' },
  { id: 'x.long', name: 'Long '.repeat(60), version: '1.0.0' },
  { id: 'x.same-a', name: 'Twins' },
  { id: 'x.same_b', name: 'Twins' },
  { id: 'x.nameless', name: '' },
  { id: 'x.danish', name: 'Smørrebrød Außen' },
  { id: 'x.cyrillic', name: 'Умный дом' },
  { id: 'x.chinese', name: '空调' },
]

/** What version 0.1.0 published of the door bell, in part: with entity ids, and with a sensor that is no more. */
const LEGACY_DEVICE = 'hub2mqtt--5f0c8a1b2d3e4f5061728394--nl_vandermolen_doorbell'
const LEGACY = {
  device: { identifiers: [LEGACY_DEVICE], name: 'Doorbell', model: 'App' },
  origin: { name: 'hub2mqtt', sw_version: '0.1.0' },
  availability: [{ topic: 'hub2mqtt/bridge/state' }, { topic: 'hub2mqtt/home/state' }],
  availability_mode: 'all',
  components: {
    enabled: {
      platform: 'switch',
      unique_id: `${LEGACY_DEVICE}--enabled`,
      default_entity_id: 'switch.some_old_bell',
      name: null,
      state_topic: 'hub2mqtt/home/app/nl.vandermolen.doorbell',
      value_template: "{{ 'ON' if value_json.enabled else 'OFF' }}",
      command_topic: 'hub2mqtt/home/app/nl.vandermolen.doorbell/cmd/enabled',
    },
    version: {
      platform: 'sensor',
      unique_id: `${LEGACY_DEVICE}--version`,
      default_entity_id: 'sensor.some_old_bell_version',
      name: 'Version',
      state_topic: 'hub2mqtt/home/app/nl.vandermolen.doorbell',
      value_template: '{{ value_json.version }}',
    },
  },
}

const SETTINGS = `
  com.athom.hue:
    transition: { type: number, min: 0, max: 5000 }
    night: switch
    mode: { type: select, options: [calm, "{{ party }}"], name: Mood }
    greeting: text
    pin: password
`

/** The blueprint as somebody uses it who only chooses the apps. */
export const BLUEPRINT = 'hub2mqtt/tell_of_crashes.yaml'
const TELL_OF_CRASHES = {
  id: 'crashes',
  alias: 'Tell of crashes',
  use_blueprint: { path: BLUEPRINT, input: { apps: ['event.lumen_lights_event', 'event.heat_pump_event'] } },
}

export const CABIN = 'hub2mqtt--00000000000000000000cab1'

export class Home extends AnyWorld<EmulatedHub, BridgeProcess, Mosquitto> {
  readonly ha: HomeAssistant
  /** Entity ids that Home Assistant gave before the bridge of today ran, by unique id. */
  readonly legacy: Readonly<Record<string, string>>
  readonly #config: string

  private constructor(
    parts: Parts<EmulatedHub, Mosquitto>,
    ha: HomeAssistant,
    legacy: Home['legacy'],
    config: string,
    open: AsyncDisposableStack,
  ) {
    super(parts, open)
    this.ha = ha
    this.legacy = legacy
    this.#config = config
  }

  static async start(version: TestedVersion): Promise<Home> {
    await using open = new AsyncDisposableStack()
    const installation = await installHomeAssistant(version)
    const apps = [...DEFAULT_APPS, ...HOSTILE]
    const keys = { [KEY]: ['homey.app', 'homey.speech', 'homey.system'] }
    const hub = open.use(await EmulatedHub.start({ keys, apps, flavour: 'older', settleMs: 200 }))
    const broker = open.use(await Mosquitto.start({ persistent: true }))
    const ha = open.use(await HomeAssistant.start(installation, broker.port, [TELL_OF_CRASHES]))
    const { path } = open.use(await mkdtempDisposable(join(tmpdir(), 'hub2mqtt-')))
    const config = join(path, 'hub2mqtt.yaml')
    await writeFile(config, configuration(hub.url, broker.url), { mode: 0o600 })
    const observer = open.use(await Observer.on(broker.port, { comesBack: true }))
    await observer.publish(`homeassistant/device/${LEGACY_DEVICE}/config`, JSON.stringify(LEGACY), { retain: true })
    const legacy = await vi.waitFor(
      async () => {
        const registered = await ha.entities()
        expect(registered).toHaveLength(Object.keys(LEGACY.components).length)
        return Object.fromEntries(registered.map(({ unique_id, entity_id }) => [unique_id, entity_id]))
      },
      { timeout: 30_000 },
    )
    const home = new Home({ hub, broker, observer }, ha, legacy, config, open)
    home.startBridge()
    return home.keep(open)
  }

  /** With further configuration as environment variables, if any. */
  startBridge(env: Readonly<Record<string, string>> = {}): void {
    this.bridges.push(new BridgeProcess({ config: this.#config, env }))
  }

  /** Another hub with one of the apps that the first one has, to be closed by the caller. */
  static cabin(): Promise<EmulatedHub> {
    const apps = DEFAULT_APPS.filter(({ id }) => id === 'com.athom.hue')
    return EmulatedHub.start({
      id: CABIN.slice('hub2mqtt--'.length),
      keys: { [KEY]: ['homey'] },
      apps,
      flavour: 'older',
    })
  }

  /** A device by its object id. */
  async device(objectId: string): Promise<RegisteredDevice> {
    const found = (await this.ha.devices()).find(({ identifiers }) => identifiers[0]?.[1] === objectId)
    if (found === undefined) throw new Error(`no device ${objectId}`)
    return found
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
