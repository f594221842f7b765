/** Prints the families, and what prom-client itself knows of the process, with the text format of that library. */
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Family, Metrics, Sample } from './family.ts'

/**
 * The library samples the event loop a hundred times a second, which is most of what an idle bridge would do: 0.25 % of
 * a core. What it makes of such samples is left out; the loop's lag at each scrape stays.
 */
const LOOP_SAMPLE_MS = 3_600_000
const LOOP_SAMPLES = /^nodejs_eventloop_lag_.+_seconds$/

type OpenMetricsRegistry = Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>

export function createPrinter(families: readonly Family[]): Metrics {
  const registry: OpenMetricsRegistry = new Registry()
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_SAMPLE_MS })
  for (const { name } of registry.getMetricsAsArray()) if (LOOP_SAMPLES.test(name)) registry.removeSingleMetric(name)
  for (const family of families) new PrintedFamily(family, registry)
  return { print: async () => ({ contentType: registry.contentType, text: await registry.metrics() }) }
}

/** A family as the registry prints it: of the library's metric it has the name and the help, but not the numbers. */
class PrintedFamily extends Gauge {
  readonly type: Family['type']
  readonly #read: () => Iterable<Sample>

  constructor({ name, help, type, read }: Family, registry: OpenMetricsRegistry) {
    super({ name, help, registers: [registry] })
    this.type = type
    this.#read = read
  }

  override async get() {
    return { ...(await super.get()), values: [...this.#read()] }
  }
}
