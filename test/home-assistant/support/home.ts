/** A real Home Assistant, connected to the broker of a world with the bridge as a process. */
import { readFileSync } from 'node:fs'
import { expect, vi } from 'vitest'
import { type AppSeed, EmulatedHub } from '../../../src/emulator/hub.ts'
import { DEFAULT_APPS } from '../../../src/emulator/population.ts'
import { variables } from '../../support/bridge.ts'
import { BridgeProcess } from '../../support/bridge-process.ts'
import { Mosquitto } from '../../support/brokers.ts'
import { temporaryFile } from '../../support/temporary-file.ts'
import { KEY, World } from '../../support/world.ts'
import { HomeAssistant, type RegisteredEntity } from './home-assistant.ts'
import { installHomeAssistant } from './installation.ts'
import type { TestedVersion } from './versions.ts'

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
settings:
  publish:
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

export type Home = Awaited<ReturnType<typeof startHome>>

/** Starts everything. `legacy` are the entities that were registered before; the user changed some of them. */
export async function startHome(version: TestedVersion) {
  await using open = new AsyncDisposableStack()
  const installation = await installHomeAssistant(version)
  const broker = await Mosquitto.start({ persistent: true })
  const run = (env: Readonly<Record<string, string>>) => new BridgeProcess({ config, env: variables(env) })
  const world = open.use(
    await World.open(run, {
      hub: { keys: { [KEY]: ['homey'] }, apps: [...DEFAULT_APPS, ...HOSTILE], settleMs: 200 },
      broker,
      observer: { reconnects: true },
      env: { HTTP_PORT: '0', HTTP_PUBLIC_URL: PUBLIC_URL },
    }),
  )
  // The hub is also in the file, so that the variables can add a second hub.
  const hubs = `hubs: {home: {url: "${world.hub.url}", api_key: ${KEY}}}`
  const config = await temporaryFile(open, 'hub2mqtt.yaml', hubs + SETTINGS)
  const ha = open.use(await HomeAssistant.start(installation, broker.port, [TELL_OF_CRASHES, ASK_BEFORE_AN_UPDATE]))
  const earlier = { ...EARLIER, [`homeassistant/device/${LEGACY_DEVICE}/config`]: JSON.stringify(LEGACY) }
  for (const [topic, payload] of Object.entries(earlier)) await world.observer.publish(topic, payload, { retain: true })
  const legacy = await settle(ha, Object.values(earlier))
  world.startBridge()
  const parts = open.move()
  return { world, broker, ha, legacy, [Symbol.asyncDispose]: () => parts.disposeAsync() }
}

/** Starts a second hub with one of the first hub's apps. The caller must close the second hub. */
export function startCabin(): Promise<EmulatedHub> {
  const apps = DEFAULT_APPS.filter(({ id }) => id === 'com.athom.hue')
  const id = CABIN.slice('hub2mqtt--'.length)
  return EmulatedHub.start({ id, keys: { [KEY]: ['homey'] }, apps, flavour: 'older' })
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
