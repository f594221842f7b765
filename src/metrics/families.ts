/** The metric families that are read from the daemon's parts when somebody asks. */
import { Counter, Gauge, type Registry } from 'prom-client'
import { CONTRACT_VERSION } from '../contract/version.ts'
import type { Pulse } from '../health/pulse.ts'
import type { HealthReport } from '../health/report.ts'
import type { Hub } from '../hub/hub.ts'
import { APP_STATES } from '../model/app.ts'
import type { LinkStatus } from '../mqtt/types.ts'
import type { Tally } from './tally.ts'

export interface MetricSources {
  readonly version: string
  readonly link: () => LinkStatus
  readonly hubs: ReadonlyMap<string, { readonly hub: Hub; readonly pulse: Pulse }>
  readonly health: () => HealthReport
}

/** Any registry; which text it prints is of no matter here. */
export type AnyRegistry = Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>

const UNKNOWN_STATE = 'unknown'

export function bridgeFamilies(registry: AnyRegistry, { version, health }: MetricSources): void {
  new Gauge({
    name: 'hub2mqtt_build_info',
    help: 'Always 1; the labels say what runs.',
    labelNames: ['version', 'node', 'contract'],
    registers: [registry],
  }).set({ version, node: process.versions.node, contract: String(CONTRACT_VERSION) }, 1)
  new Gauge({
    name: 'hub2mqtt_ready',
    help: 'Whether the broker is connected and at least one hub has been read and answers.',
    registers: [registry],
    collect() {
      this.set(Number(health().ready))
    },
  })
}

/** What the MQTT link counts itself, read when somebody asks. */
export function brokerFamilies(registry: AnyRegistry, status: () => LinkStatus): void {
  const gauge = (name: string, help: string, read: (status: LinkStatus) => number) =>
    new Gauge({
      name: `hub2mqtt_mqtt_${name}`,
      help,
      registers: [registry],
      collect() {
        this.set(read(status()))
      },
    })
  const counter = (name: string, help: string, read: (status: LinkStatus) => number) =>
    new Counter({
      name: `hub2mqtt_mqtt_${name}_total`,
      help,
      registers: [registry],
      collect() {
        this.reset()
        this.inc(read(status()))
      },
    })
  gauge('connected', 'Whether the MQTT broker is connected.', ({ state }) => Number(state === 'connected'))
  gauge('queued', 'Retained topics and messages that wait to be sent.', ({ queued }) => queued)
  gauge('unacknowledged', 'Publishes under way.', ({ unacknowledged }) => unacknowledged)
  gauge('denied_topics', 'Retained topics that the broker refuses at present.', ({ deniedTopics }) => deniedTopics)
  counter('publishes', 'Publishes sent.', ({ publishes }) => publishes)
  counter('published_bytes', 'Payload bytes of the publishes sent.', ({ bytes }) => bytes)
  counter('dropped', 'Events and answers lost to the limits of the queue.', ({ dropped }) => dropped)
  counter('reconnects', 'Connections to the broker lost.', ({ reconnects }) => reconnects)
}

/** What is known of the hubs, read when somebody asks. */
export function hubFamilies(registry: AnyRegistry, hubs: MetricSources['hubs']): void {
  const gauge = (name: string, help: string, read: (hub: Hub, pulse: Pulse) => number | undefined) =>
    new Gauge({
      name: `hub2mqtt_${name}`,
      help,
      labelNames: ['hub'],
      registers: [registry],
      collect() {
        this.reset()
        for (const [name, { hub, pulse }] of hubs) {
          const value = read(hub, pulse)
          if (value !== undefined) this.set({ hub: name }, value)
        }
      },
    })
  gauge('hub_up', 'Whether the hub answers with a valid key.', ({ status }) => Number(status.online))
  gauge('hub_realtime_up', 'Whether events arrive at once; else the hub is polled.', ({ status }) =>
    Number(status.realtime === 'connected'),
  )
  gauge('hub_last_read_timestamp_seconds', 'When the list of apps was last read well.', (_, { readAt }) =>
    readAt === undefined ? undefined : readAt / 1000,
  )
  new Gauge({
    name: 'hub2mqtt_apps',
    help: 'Apps by state.',
    labelNames: ['hub', 'state'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [name, { hub }] of hubs) {
        for (const [state, count] of byState(hub)) this.set({ hub: name, state }, count)
      }
    },
  })
}

function byState(hub: Hub): Map<string, number> {
  const counts = new Map<string, number>([...APP_STATES, UNKNOWN_STATE].map((state) => [state, 0]))
  for (const { state } of hub.apps.all.values()) {
    const key = state ?? UNKNOWN_STATE
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

export function eventFamilies(registry: AnyRegistry, tally: Tally, hubs: MetricSources['hubs']): void {
  new Counter({
    name: 'hub2mqtt_events_total',
    help: 'Events published, by kind.',
    labelNames: ['hub', 'type'],
    registers: [registry],
    collect() {
      this.reset()
      for (const hub of hubs.keys()) {
        for (const [type, count] of Object.entries(tally.of(hub).events)) this.inc({ hub, type }, count)
      }
    },
  })
  new Counter({
    name: 'hub2mqtt_app_crashes_total',
    help: 'Crashes seen, by app; only apps that have crashed, and not more than 200 by name.',
    labelNames: ['hub', 'app'],
    registers: [registry],
    collect() {
      this.reset()
      for (const hub of hubs.keys()) {
        for (const [app, count] of tally.of(hub).crashes) this.inc({ hub, app }, count)
      }
    },
  })
}
