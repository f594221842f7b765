/** The families that the tally counts. */
import type { Family, Sample } from './family.ts'
import type { HubTally, Tally, Timed } from './tally.ts'

/** `hubs` are the names of those that are open at present: events are told of them only, and as zeros at first. */
export function tallyFamilies(tally: Tally, hubs: () => Iterable<string>): Family[] {
  return [...eventFamilies(tally, hubs), ...callFamilies(tally), ...commandFamilies(tally), reloadFamily(tally)]
}

function eventFamilies(tally: Tally, hubs: () => Iterable<string>): Family[] {
  const counter = (
    name: string,
    help: string,
    label: string,
    counts: (hub: HubTally) => Iterable<[string, number]>,
  ) => ({
    name,
    help,
    type: 'counter' as const,
    *read() {
      for (const hub of hubs()) {
        for (const [key, value] of counts(tally.of(hub))) yield { labels: { hub, [label]: key }, value }
      }
    },
  })
  return [
    counter('hub2mqtt_events_total', 'Events published, by kind.', 'type', ({ events }) => [...events]),
    counter(
      'hub2mqtt_app_crashes_total',
      'Crashes seen, by app; only apps that have crashed, and not more than 200 by name.',
      'app',
      ({ crashes }) => crashes,
    ),
  ]
}

function callFamilies(tally: Tally): Family[] {
  return timedFamilies(
    {
      counter: 'hub2mqtt_hub_requests_total',
      counts: 'Calls to the hub, by operation and outcome.',
      histogram: 'hub2mqtt_hub_request_duration_seconds',
      measures: 'How long calls to the hub took.',
    },
    function* () {
      for (const [hub, { calls }] of tally.hubs) {
        for (const [operation, timed] of calls.all) yield [{ hub, operation }, timed]
      }
    },
  )
}

function commandFamilies(tally: Tally): Family[] {
  return timedFamilies(
    {
      counter: 'hub2mqtt_commands_total',
      counts: 'Commands answered, by name and outcome.',
      histogram: 'hub2mqtt_command_duration_seconds',
      measures: 'From a command arriving to its answer.',
    },
    function* () {
      for (const [command, timed] of tally.commands.all) yield [{ command }, timed]
    },
  )
}

interface TimedNames {
  readonly counter: string
  /** Help text of the counter. */
  readonly counts: string
  readonly histogram: string
  /** Help text of the histogram. */
  readonly measures: string
}

/** A counter with the outcome as its last label, and a histogram of the durations. */
function timedFamilies(names: TimedNames, all: () => Iterable<[Sample['labels'], Timed]>): Family[] {
  return [
    {
      name: names.counter,
      help: names.counts,
      type: 'counter',
      *read() {
        for (const [labels, { outcomes }] of all()) {
          for (const [outcome, value] of outcomes) yield { labels: { ...labels, outcome }, value }
        }
      },
    },
    {
      name: names.histogram,
      help: names.measures,
      type: 'histogram',
      *read() {
        for (const [labels, timed] of all()) yield* histogramSamples(names.histogram, labels, timed)
      },
    },
  ]
}

function* histogramSamples(name: string, labels: Sample['labels'], timed: Timed): Iterable<Sample> {
  const metricName = `${name}_bucket`
  let value = 0
  for (const { bound: le, count } of timed.buckets) {
    value += count
    yield { metricName, labels: { le, ...labels }, value }
  }
  yield { metricName, labels: { le: '+Inf', ...labels }, value: timed.count }
  yield { metricName: `${name}_sum`, labels, value: timed.seconds }
  yield { metricName: `${name}_count`, labels, value: timed.count }
}

function reloadFamily(tally: Tally): Family {
  return {
    name: 'hub2mqtt_config_reloads_total',
    help: 'Times that the configuration was read again, by outcome.',
    type: 'counter',
    *read() {
      for (const [outcome, value] of Object.entries(tally.reloads)) if (value > 0) yield { labels: { outcome }, value }
    },
  }
}
