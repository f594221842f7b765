/**
 * Metrics whose library is loaded when somebody asks for the figures, or when much waits to be counted: it takes as long
 * to load as a tenth of the start, and most bridges are never asked.
 */
import type { MetricSources } from './families.ts'
import type { Metrics } from './metrics.ts'
import type { Observer } from './observer.ts'
import { Tally } from './tally.ts'

const MAX_WAITING = 1_000

type Count = (observer: Metrics['observer']) => void

export function deferMetrics(sources: MetricSources): Metrics & { readonly observer: Observer } {
  const tally = new Tally()
  let waiting: Count[] = []
  let observer: Metrics['observer'] | undefined
  let loading: Promise<Metrics> | undefined
  const load = async (): Promise<Metrics> => {
    const { createMetrics } = await import('./metrics.ts')
    const metrics = createMetrics(sources, tally)
    observer = metrics.observer
    for (const count of waiting) count(observer)
    waiting = []
    return metrics
  }
  const loaded = () => {
    loading ??= load()
    return loading
  }
  const tell = (count: Count) => {
    if (observer !== undefined) return count(observer)
    waiting.push(count)
    if (waiting.length >= MAX_WAITING) void loaded()
  }
  return {
    observer: {
      event: (hub, event) => tally.event(hub, event),
      call: (hub, call) => tell((observer) => observer.call(hub, call)),
      command: (end) => tell((observer) => observer.command(end)),
      reload: (outcome) => tell((observer) => observer.reload(outcome)),
    },
    print: async () => (await loaded()).print(),
  }
}
