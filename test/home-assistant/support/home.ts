/** A home: an emulated hub, a broker, the bridge as a process, and a real Home Assistant. */
import { readFileSync } from 'node:fs'
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

/** Names that users might choose, and that could break a template, a page or an entity id. */
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

/** Part of the messages of version 0.1.0 for the doorbell, with entity ids and a sensor that no longer exists. */
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

/** Payloads that earlier versions published, by topic: 0.1.0 for the vacuum; 0.2.0 for the weather, hub and bridge. */
const EARLIER: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(new URL('earlier.json', import.meta.url), 'utf8'),
)
export const VACUUM = 'hub2mqtt--5f0c8a1b2d3e4f5061728394--se_norrsken_vacuum'
export const WEATHER = 'hub2mqtt--5f0c8a1b2d3e4f5061728394--com_parkstreet_weather'

const SETTINGS = `
  com.athom.hue:
    transition: { type: number, min: 0, max: 5000 }
    night: switch
    mode: { type: select, options: [calm, "{{ party }}"], name: Mood }
    greeting: text
    pin: password
`

/** The blueprint for users who choose only the apps. */
export const BLUEPRINT = 'hub2mqtt/tell_of_crashes.yaml'
const TELL_OF_CRASHES = {
  id: 'crashes',
  alias: 'Tell of crashes',
  use_blueprint: { path: BLUEPRINT, input: { apps: ['event.lumen_lights_event', 'event.heat_pump_event'] } },
}

/** An automation that asks on a phone. In the tests, a script shows the question and the possible answers instead. */
const ASK_BEFORE_AN_UPDATE = {
  id: 'updates',
  alias: 'Ask before an update',
  use_blueprint: {
    path: 'hub2mqtt/ask_before_an_update.yaml',
    input: { updates: ['update.lumen_lights_update', 'update.heat_pump_update'], notifier: 'script.ask' },
  },
}

export const PUBLIC_URL = 'https://home.example.org/hub2mqtt'

export const CABIN = 'hub2mqtt--00000000000000000000cab1'

export class Home extends AnyWorld<EmulatedHub, BridgeProcess, Mosquitto> {
  readonly ha: HomeAssistant
  /** Entities that were registered before the current bridge ran; the user changed some of them. */
  readonly legacy: readonly RegisteredEntity[]
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
    const keys = { [KEY]: ['homey'] }
    const hub = open.use(await EmulatedHub.start({ keys, apps, flavour: 'older', settleMs: 200 }))
    const broker = open.use(await Mosquitto.start({ persistent: true }))
    const ha = open.use(await HomeAssistant.start(installation, broker.port, [TELL_OF_CRASHES, ASK_BEFORE_AN_UPDATE]))
    const { path } = open.use(await mkdtempDisposable(join(tmpdir(), 'hub2mqtt-')))
    const config = join(path, 'hub2mqtt.yaml')
    await writeFile(config, configuration(hub.url, broker.url), { mode: 0o600 })
    const observer = open.use(await Observer.on(broker.port, { reconnects: true }))
    const earlier = { ...EARLIER, [`homeassistant/device/${LEGACY_DEVICE}/config`]: JSON.stringify(LEGACY) }
    for (const [topic, payload] of Object.entries(earlier)) await observer.publish(topic, payload, { retain: true })
    const legacy = await settle(ha, Object.values(earlier))
    const home = new Home({ hub, broker, observer }, ha, legacy, config, open)
    home.startBridge()
    return home.keep(open)
  }

  startBridge(env: Readonly<Record<string, string>> = {}): void {
    this.bridges.push(new BridgeProcess({ config: this.#config, env }))
  }

  /** Starts a second hub with one of the first hub's apps. The caller must close the second hub. */
  static cabin(): Promise<EmulatedHub> {
    const apps = DEFAULT_APPS.filter(({ id }) => id === 'com.athom.hue')
    return EmulatedHub.start({
      id: CABIN.slice('hub2mqtt--'.length),
      keys: { [KEY]: ['homey'] },
      apps,
      flavour: 'older',
    })
  }

  async device(objectId: string): Promise<RegisteredDevice> {
    const found = (await this.ha.devices()).find(({ identifiers }) => identifiers[0]?.[1] === objectId)
    if (found === undefined) throw new Error(`no device ${objectId}`)
    return found
  }

  async entity(uniqueId: string): Promise<RegisteredEntity> {
    const found = (await this.ha.entities()).find(({ unique_id }) => unique_id === uniqueId)
    if (found === undefined) throw new Error(`no entity ${uniqueId}`)
    return found
  }

  async state(uniqueId: string): Promise<State | undefined> {
    const { entity_id } = await this.entity(uniqueId)
    return (await this.ha.states()).get(entity_id)
  }

  async untilState(uniqueId: string, wanted: string, timeout = 30_000): Promise<State> {
    const { entity_id } = await this.entity(uniqueId)
    const isThere = async () => {
      const state = (await this.ha.states()).get(entity_id)
      if (state?.state !== wanted) throw new Error(`${entity_id} is ${state?.state}, not ${wanted}`)
      return state
    }
    return vi.waitFor(isThere, { timeout })
  }

  /** Calls a service of Home Assistant for an entity. */
  async use(service: string, uniqueId: string, data?: Readonly<Record<string, unknown>>): Promise<void> {
    await this.ha.call(service, (await this.entity(uniqueId)).entity_id, data)
  }

  asked(operation: string): number {
    return this.hub.requests.filter((request) => request.operation === operation).length
  }
}

/** Returns the id of an app's device. It does not use the code under test, because users depend on these ids. */
export const appId = (encoded: string) => `${HUB}--${encoded}`

/** Resolves with the registry when it has all entities. Disables one entity and enables two, as a user would. */
async function settle(ha: HomeAssistant, payloads: readonly string[]): Promise<RegisteredEntity[]> {
  const components = payloads.flatMap((payload) => Object.values<object>(JSON.parse(payload).components))
  const wanted = components.flatMap((component) => ('unique_id' in component ? [component.unique_id] : [])).sort()
  const registered = () =>
    vi.waitFor(
      async () => {
        const found = await ha.entities()
        expect(found.map(({ unique_id }) => unique_id).sort()).toEqual(wanted)
        return found
      },
      { timeout: 60_000 },
    )
  for (const { unique_id, entity_id } of await registered()) {
    const byOwner: Readonly<Record<string, string | null>> = {
      [`${WEATHER}--crash_count`]: 'user',
      [`${VACUUM}--cpu`]: null,
      [`${VACUUM}--garbage_collect`]: null,
    }
    const disabled_by = byOwner[unique_id]
    if (disabled_by === undefined) continue
    await ha.command({ type: 'config/entity_registry/update', entity_id, disabled_by })
  }
  // Home Assistant would restart the integration half a minute after an entity is enabled, so restart it now.
  await ha.stop()
  await ha.run()
  // Home Assistant removes only entities that it has found in this run, even if the registry already contains them all.
  await vi.waitFor(
    async () =>
      expect([...(await ha.states()).values()].filter(({ attributes }) => attributes['restored'])).toEqual([]),
    { timeout: 60_000 },
  )
  return registered()
}

function configuration(hubUrl: string, brokerUrl: string): string {
  return `
hubs:
  home: { url: "${hubUrl}", api_key: ${KEY}, poll_interval: 2s, poll_interval_fallback: 1s }
mqtt: { url: "${brokerUrl}" }
http: { port: 0, public_url: "${PUBLIC_URL}" }
log: { level: info, format: json }
settings:
  publish:
${SETTINGS.replace(/^/gm, '  ')}`
}
