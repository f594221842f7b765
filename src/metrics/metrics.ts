/** The metrics as prom-client keeps and prints them. */
import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import {
  type AnyRegistry,
  bridgeFamilies,
  brokerFamilies,
  eventFamilies,
  hubFamilies,
  type MetricSources,
} from './families.ts'
import type { Observer } from './observer.ts'
import type { Tally } from './tally.ts'

export interface Metrics {
  /** Counts all but events: those are the tally's. */
  readonly observer: Omit<Observer, 'event'>
  /** All of them as OpenMetrics text. */
  print(): Promise<{ readonly contentType: string; readonly text: string }>
}

const HUB_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const COMMAND_SECONDS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/**
 * The library samples the event loop a hundred times a second, which is most of what an idle bridge would do: 0.25 % of
 * a core. What it makes of such samples is left out; the loop's lag at each scrape stays.
 */
const LOOP_SAMPLE_MS = 3_600_000
const LOOP_SAMPLES = /^nodejs_eventloop_lag_.+_seconds$/

/** Events are read from `tally`, which whoever calls this keeps. */
export function createMetrics(sources: MetricSources, tally: Tally): Metrics {
  const registry = new Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>()
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_SAMPLE_MS })
  for (const { name } of registry.getMetricsAsArray()) if (LOOP_SAMPLES.test(name)) registry.removeSingleMetric(name)
  bridgeFamilies(registry, sources)
  brokerFamilies(registry, sources.link)
  hubFamilies(registry, sources.hubs)
  eventFamilies(registry, tally, sources.hubs)
  return {
    observer: createObserver(registry),
    print: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  }
}

/** Calls and commands are counted as they end: they wait for a hub, which makes the look-up by labels cheap beside it. */
function createObserver(registry: AnyRegistry): Metrics['observer'] {
  const registers = [registry]
  const calls = new Counter({
    name: 'hub2mqtt_hub_requests_total',
    help: 'Calls to the hub, by operation and outcome.',
    labelNames: ['hub', 'operation', 'outcome'],
    registers,
  })
  const callSeconds = new Histogram({
    name: 'hub2mqtt_hub_request_duration_seconds',
    help: 'How long calls to the hub took.',
    labelNames: ['hub', 'operation'],
    buckets: HUB_SECONDS,
    registers,
  })
  const commands = new Counter({
    name: 'hub2mqtt_commands_total',
    help: 'Commands answered, by name and outcome.',
    labelNames: ['command', 'outcome'],
    registers,
  })
  const commandSeconds = new Histogram({
    name: 'hub2mqtt_command_duration_seconds',
    help: 'From a command arriving to its answer.',
    labelNames: ['command'],
    buckets: COMMAND_SECONDS,
    registers,
  })
  const reloads = new Counter({
    name: 'hub2mqtt_config_reloads_total',
    help: 'Times that the configuration was read again, by outcome.',
    labelNames: ['outcome'],
    registers,
  })
  return {
    call(hub, { operation, outcome, ms }) {
      calls.inc({ hub, operation, outcome })
      callSeconds.observe({ hub, operation }, ms / 1000)
    },
    command({ command, outcome, ms }) {
      commands.inc({ command, outcome })
      commandSeconds.observe({ command }, ms / 1000)
    },
    reload: (outcome) => reloads.inc({ outcome }),
  }
}
