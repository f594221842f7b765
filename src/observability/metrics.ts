/** The daemon's metrics for Prometheus. Counts events, calls and commands as they occur, and prints all metrics. */
import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import { EVENT_TYPES, type EventPayload, GUARD_EVENT_TYPES, HUB_EVENT_TYPES } from '../contract/events.ts'
import type { HubCall } from '../hub/proven-hub.ts'
import { type GaugeSources, registerGauges } from './gauges.ts'

/** Maximum number of apps with separate crash counters per hub. All other apps of the hub share one counter. */
const MAX_APPS = 200
/** The label of the shared counter, which cannot be an app id because of its space. */
export const OTHER_APPS = 'all others'

const CALL_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const COMMAND_SECONDS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Almost turns off the sampling of the event loop's lag, which by default causes most of an idle bridge's load. */
const LOOP_SAMPLE_MS = 3_600_000
const LOOP_SAMPLES = /^nodejs_eventloop_lag_.+_seconds$/

interface EventSource {
  readonly figures: { readonly health: ReturnType<GaugeSources['healthOf']> }
  onEvent(listener: (event: EventPayload) => void): void
}

/** Prints only the values of open hubs. When a closed hub is opened again, its values continue. */
class OpenHubsCounter extends Counter<'hub' | 'type' | 'app'> {
  hubs: { has(name: string): boolean } = new Set<string>()

  override async get() {
    const found = await super.get()
    return { ...found, values: found.values.filter(({ labels }) => this.hubs.has(String(labels.hub))) }
  }
}

export class Metrics {
  readonly #registry: Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE> = new Registry()
  readonly #events = new OpenHubsCounter(this.#named('events_total', 'Events published, by kind.', ['hub', 'type']))
  readonly #crashes = new OpenHubsCounter(
    this.#named('app_crashes_total', 'Crashes, by app; at most 200 apps of a hub by name.', ['hub', 'app']),
  )
  readonly #calls = new Counter(
    this.#named('hub_requests_total', 'Calls to the hub, by operation and outcome.', ['hub', 'operation', 'outcome']),
  )
  readonly #callSeconds = new Histogram({
    ...this.#named('hub_request_duration_seconds', 'How long calls to the hub took.', ['hub', 'operation']),
    buckets: CALL_SECONDS,
  })
  readonly #commands = new Counter(
    this.#named('commands_total', 'Commands answered, by name and outcome.', ['command', 'outcome']),
  )
  readonly #commandSeconds = new Histogram({
    ...this.#named('command_duration_seconds', 'Time from the arrival of a command to its answer.', ['command']),
    buckets: COMMAND_SECONDS,
  })
  readonly #reloads = new Counter(
    this.#named('config_reloads_total', 'Configuration reloads, by outcome.', ['outcome']),
  )
  /** The apps that have a crash counter, by hub. */
  readonly #crashed = new Map<string, Set<string>>()
  readonly #states = new Map<string, EventSource>()
  #hasDefaults = false

  constructor() {
    this.#registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  }

  #named<Label extends string>(name: string, help: string, labelNames: Label[]) {
    return { name: `hub2mqtt_${name}`, help, labelNames, registers: [this.#registry] }
  }

  add(sources: Omit<GaugeSources, 'healthOf'>): void {
    this.showHubs(sources.hubs)
    registerGauges(this.#registry, { ...sources, healthOf: (hub) => this.#states.get(hub)?.figures.health })
  }

  /** Sets the open hubs. Metrics of events and crashes list only these hubs. */
  showHubs(open: OpenHubsCounter['hubs']): void {
    this.#events.hubs = open
    this.#crashes.hubs = open
  }

  follow(hub: string, state: EventSource): void {
    for (const type of [...EVENT_TYPES, ...GUARD_EVENT_TYPES, ...HUB_EVENT_TYPES]) this.#events.inc({ hub, type }, 0)
    for (const name of this.#states.keys()) if (!this.#events.hubs.has(name)) this.#states.delete(name)
    this.#states.set(hub, state)
    state.onEvent((event) => this.event(hub, event))
  }

  event(hub: string, { event_type: type, app }: EventPayload): void {
    this.#events.inc({ hub, type })
    if (type === 'crashed' && app !== null) this.#crashes.inc({ hub, app: this.#crashLabel(hub, app) })
  }

  readonly called = (hub: string, { operation, outcome, ms }: HubCall): void => {
    this.#calls.inc({ hub, operation, outcome })
    this.#callSeconds.observe({ hub, operation }, ms / 1000)
  }

  /**
   * Counts a command.
   * @param command the command's name in the configuration
   * @param ms the time from the command's arrival to its answer
   */
  answered(command: string, outcome: string, ms: number): void {
    this.#commands.inc({ command, outcome })
    this.#commandSeconds.observe({ command }, ms / 1000)
  }

  reloaded(outcome: 'ok' | 'refused'): void {
    this.#reloads.inc({ outcome })
  }

  async print(): Promise<{ readonly contentType: string; readonly text: string }> {
    const registry = this.#registry
    // Start the default metrics on the first scrape, because they take resources, and most bridges are never scraped.
    if (!this.#hasDefaults) {
      this.#hasDefaults = true
      const used = process.cpuUsage()
      collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_SAMPLE_MS })
      for (const { name } of registry.getMetricsAsArray())
        if (LOOP_SAMPLES.test(name)) registry.removeSingleMetric(name)
      this.#addUsage(used)
    }
    return { contentType: registry.contentType, text: await registry.metrics() }
  }

  /** Adds the CPU time that the process used before prom-client began to count. */
  #addUsage({ user, system }: NodeJS.CpuUsage): void {
    const microseconds = { user_seconds: user, system_seconds: system, seconds: user + system }
    for (const [unit, value] of Object.entries(microseconds)) {
      const metric = this.#registry.getSingleMetric(`process_cpu_${unit}_total`)
      if (metric instanceof Counter) metric.inc(value / 1e6)
    }
  }

  #crashLabel(hub: string, app: string): string {
    const named = this.#crashed.get(hub) ?? new Set()
    this.#crashed.set(hub, named)
    if (named.size < MAX_APPS) named.add(app)
    return named.has(app) ? app : OTHER_APPS
  }
}
