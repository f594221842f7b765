/** The metrics as text. The library that prints them is loaded when somebody asks for the first time. */
import type { Metrics } from './family.ts'
import { type Parts, partFamilies } from './part-families.ts'
import type { Tally } from './tally.ts'
import { tallyFamilies } from './tally-families.ts'

export interface MetricSources extends Parts {
  readonly tally: Tally
}

export function createMetrics(sources: MetricSources): Metrics {
  let loading: Promise<Metrics> | undefined
  // Loading the library takes a tenth of the start, and most bridges are never asked.
  const load = async () => {
    const { createPrinter } = await import('./printer.ts')
    return createPrinter([...partFamilies(sources), ...tallyFamilies(sources.tally, () => sources.hubs.keys())])
  }
  return {
    async print() {
      loading ??= load()
      return (await loading).print()
    },
  }
}
