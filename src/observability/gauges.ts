/** The metrics that are read from the daemon's parts on each scrape. */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { HubHealth } from '../contract/crash.ts'
import { CONTRACT_VERSION, type HealthReport, type Role } from '../contract/schemas.ts'
import { APP_STATES } from '../hub/app.ts'
import type { Hub } from '../hub/hub.ts'
import type { Pulse } from '../hub/pulse.ts'
import type { LinkStatus } from '../mqtt/types.ts'

export interface GaugeSources {
  readonly version: string
  readonly link: { status(): LinkStatus }
  readonly bridge: { readonly contested: boolean; readonly role: Role }
  readonly hubs: ReadonlyMap<string, { readonly hub: Hub; readonly pulse: Pulse }>
  readonly health: { report(): HealthReport }
  readonly healthOf: (hub: string) => HubHealth | null | undefined
  readonly fleet?: FleetFigures | undefined
}

interface FleetFigures {
  readonly member: string
  readonly isLeader: boolean
  readonly epoch: number
  readonly payload: { readonly count: number }
  mayAct(): boolean
}

type Labels = Readonly<Record<string, string>>
type AnyRegistry = Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>

const UNKNOWN_STATE = 'unknown'

export function registerGauges(registry: AnyRegistry, sources: GaugeSources) {
  const { version, link, bridge, hubs, health, fleet } = sources
  const registers = [registry]
  const gauge = (name: string, help: string, figure: () => number | boolean, labels: Labels = {}) =>
    new Gauge({
      name: `hub2mqtt_${name}`,
      help,
      labelNames: Object.keys(labels),
      registers,
      collect() {
        this.set(labels, Number(figure()))
      },
    })
  const counter = (name: string, help: string, figure: (link: LinkStatus) => number) =>
    new Counter({
      name: `hub2mqtt_mqtt_${name}_total`,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(figure(link.status()))
      },
    })

  const build = { version, node: process.versions.node, contract: String(CONTRACT_VERSION) }
  gauge('build_info', 'Always 1; the labels identify the running version.', () => 1, build)
  gauge(
    'ready',
    'Whether the broker is connected and at least one hub has been read and answers.',
    () => health.report().ready,
  )
  gauge('contested', 'Whether another bridge uses the same base topic.', () => bridge.contested)
  gauge(
    'active',
    'Whether this bridge publishes and executes commands; 0 while another bridge does.',
    () => bridge.role === 'active',
  )
  gauge('problems', 'Number of problems in the health report.', () => health.report().problems.length)

  if (fleet !== undefined) {
    const { member } = fleet
    gauge('fleet_members', 'Number of members of the fleet.', () => fleet.payload.count)
    gauge('fleet_epoch', 'Epoch of the fleet, which increases whenever its members change.', () => fleet.epoch)
    gauge('fleet_leased', 'Whether this member may act because its lease is valid.', () => fleet.mayAct(), { member })
    gauge('fleet_speaks', 'Whether this member is the fleet leader.', () => fleet.isLeader, { member })
    gauge('fleet_hubs', 'Number of hubs that this member serves.', () => hubs.size, { member })
  }

  gauge('mqtt_connected', 'Whether the MQTT broker is connected.', () => link.status().state === 'connected')
  gauge('mqtt_queued', 'Retained topics and messages that wait to be sent.', () => link.status().queued)
  gauge('mqtt_unacknowledged', 'Publishes that wait for an acknowledgement.', () => link.status().unacknowledged)
  gauge('mqtt_denied_topics', 'Retained topics that the broker currently refuses.', () => link.status().deniedTopics)
  counter('publishes', 'Publishes sent.', ({ publishes }) => publishes)
  counter('published_bytes', 'Payload bytes of the publishes sent.', ({ bytes }) => bytes)
  counter('dropped', 'Events, answers and commands dropped at the limits of queues.', ({ dropped }) => dropped)
  counter('reconnects', 'Lost connections to the broker.', ({ reconnects }) => reconnects)
  registerHubGauges(registry, sources)
}

/** Returns the values of a hub, each with its additional labels. */
type ReadHub = (hub: Hub, pulse: Pulse, name: string) => Iterable<readonly [number, Labels?]>

function registerHubGauges(registry: AnyRegistry, { hubs, healthOf }: Pick<GaugeSources, 'hubs' | 'healthOf'>) {
  const gauge = (name: string, help: string, read: ReadHub) =>
    new Gauge({
      name: `hub2mqtt_${name}`,
      help,
      labelNames: ['hub', 'state'],
      registers: [registry],
      collect() {
        this.reset()
        for (const [name, { hub, pulse }] of hubs) {
          for (const [value, labels] of read(hub, pulse, name)) this.set({ hub: name, ...labels }, value)
        }
      },
    })
  gauge('hub_up', 'Whether the hub answers with a valid key.', ({ status }) => [[Number(status.online)]])
  gauge('hub_realtime_up', 'Whether events arrive immediately; otherwise the hub is polled.', ({ status }) => [
    [Number(status.realtime === 'connected')],
  ])
  gauge('hub_last_read_timestamp_seconds', 'When the list of apps was last read successfully.', (_, { readAt }) =>
    readAt === undefined ? [] : [[readAt / 1000]],
  )
  gauge('apps', 'Apps by state.', (hub) => [...byState(hub)].map(([state, value]) => [value, { state }]))
  for (const [figureName, [help, figure]] of Object.entries(MACHINE)) {
    gauge(`hub_${figureName}`, help, (_hub, _pulse, name) => {
      const health = healthOf(name)
      const value = health && figure(health)
      return value === null || value === undefined ? [] : [[Number(value)]]
    })
  }
}

/** Metrics of a hub's health, which the bridge can read only if the API key permits it. */
const MACHINE: Readonly<
  Record<string, readonly [help: string, figure: (health: HubHealth) => number | boolean | null]>
> = {
  memory_total_bytes: ['Memory of the hub.', ({ memory_total_bytes }) => memory_total_bytes],
  memory_free_bytes: ['Free memory of the hub.', ({ memory_free_bytes }) => memory_free_bytes],
  storage_free_bytes: ['Free storage of the hub.', ({ storage_free_bytes }) => storage_free_bytes],
  load1: ['Load of the hub in the last minute.', ({ load_1m }) => load_1m],
  temperature_celsius: ['Temperature of the hub.', ({ temperature_celsius }) => temperature_celsius],
  undervoltage: ["Whether the hub's power supply is too weak.", ({ undervoltage }) => undervoltage],
  boot_time_seconds: [
    'When the hub started.',
    ({ booted_at }) => (booted_at === null ? null : Date.parse(booted_at) / 1000),
  ],
}

function byState(hub: Hub): Map<string, number> {
  const counts = new Map<string, number>([...APP_STATES, UNKNOWN_STATE].map((state) => [state, 0]))
  for (const { state } of hub.apps.all.values()) {
    const key = state ?? UNKNOWN_STATE
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}
