/** Renders the results of a campaign as a document: first the totals, then each fault. */
import { execFileSync } from 'node:child_process'
import { table } from '../bench/table.ts'
import type { EpisodeResult } from './episode.ts'
import type { PlantResult } from './prove.ts'

export interface ScorecardInput {
  readonly results: readonly EpisodeResult[]
  readonly plants: readonly PlantResult[]
  readonly seed: number
  readonly date: Date
  readonly minutes: number
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0)

function percentile(numbers: readonly number[], part: number): number | undefined {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]
}

const seconds = (ms: number | undefined) => (ms === undefined ? '—' : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`)
const whole = (value: number) => value.toLocaleString('en')

/** Returns the time until the broker agreed with the hub: median, 95th percentile and maximum. */
function timesOf(results: readonly EpisodeResult[]): string[] {
  const times = results.flatMap(({ agreeMs }) => (agreeMs === undefined ? [] : [agreeMs]))
  return [0.5, 0.95, 1].map((part) => seconds(percentile(times, part)))
}

const kindsOf = (results: readonly EpisodeResult[]) =>
  Map.groupBy(
    results.filter(({ script }) => script === undefined),
    ({ fault }) => fault,
  )

const failed = (results: readonly EpisodeResult[]) => results.filter(({ violations }) => violations.length > 0).length

const COLUMNS = ['Episodes', 'Commands', 'Unknown', 'Failed', 'Agree again p50', 'p95', 'max']

export function renderScorecard({ results, plants, seed, date, minutes }: ScorecardInput): string {
  const kinds = kindsOf(results)
  const repeats = Math.min(...[...kinds.values()].map(({ length }) => length))
  const composed = results.filter(({ script }) => script !== undefined)
  const answers = sum(results.map((one) => one.answers))
  const unknown = sum(results.map((one) => one.unknown))
  const by = (checker: string) =>
    whole(results.flatMap(({ violations }) => violations).filter((one) => one.checker === checker).length)
  const [p50 = '', p95 = '', max = ''] = timesOf(results)
  const caught = plants.filter((plant) => plant.caught).length
  const figures = [
    ['Fault kinds × repeats', kinds.size === 0 ? '—' : `${kinds.size} × ${repeats}`],
    ['Combinations of two or three faults', whole(composed.length)],
    ['Episodes', whole(results.length)],
    ['Commands issued', whole(sum(results.map((one) => one.commands)))],
    ['Answers received', whole(answers)],
    ['Answered `outcome_unknown`', `${whole(unknown)} (${((100 * unknown) / Math.max(1, answers)).toFixed(1)} %)`],
    ['Confirmed, not executed / effect not shown by the hub', `${by('confirmed, not executed')} / ${by('false ok')}`],
    ['Executed twice', by('executed twice')],
    ['Executed late', by('executed late')],
    ['Executed without a request (retained, sent while offline, refused)', by('executed unasked')],
    ['Executed although denied', by('denied executed')],
    ['Not answered / answered twice', `${by('not answered')} / ${by('answered twice')}`],
    ['Answered from memory after more than five minutes', by('remembered too long')],
    ['Events lost', by('event lost')],
    ['Bad inputs sent / accepted', `${whole(sum(results.map((one) => one.badInputs)))} / ${by('bad input accepted')}`],
    ['Retained messages: outdated / missing / wrong', `${by('ghosts')} / ${by('missing')} / ${by('wrong')}`],
    ['Cleared although the app existed / published although it was removed', `${by('wiped')} / ${by('resurrected')}`],
    ['Topics of other programs changed', by('foreign touched')],
    ['Cleared or changed topics not restored', by('not repaired')],
    ['Offline without a reason / kept offline without a reason', `${by('said offline')} / ${by('kept offline')}`],
    ['API key sent to servers other than a hub', by('key shown')],
    ['States that were outdated when sent', by('stale state')],
    ['Secrets disclosed', by('secret shown')],
    ['Process exited, failed or did not stop in time', by('process')],
    ['Episodes that did not settle', by('calm')],
    ['Time until broker and hub agree again after the fault: p50, p95, max', `${p50}, ${p95}, ${max}`],
    ['Planted bugs caught', plants.length === 0 ? 'not tried' : `${caught} of ${plants.length}`],
    [
      'Seed, commit, date, length',
      `${seed}, ${commit()}, ${date.toISOString().slice(0, 10)}, ${minutes.toFixed(0)} minutes`,
    ],
  ]
  const row = ([kind, of]: readonly [string, readonly EpisodeResult[]]) => [
    kind,
    whole(of.length),
    whole(sum(of.map((one) => one.commands))),
    whole(sum(of.map((one) => one.unknown))),
    String(failed(of)),
    ...timesOf(of),
  ]
  const sizes = Map.groupBy(composed, ({ script = [] }) => `${script.length} faults at a time`)
  return [
    '# Reliability',
    'Generated by `npm run chaos -- --campaign --write`. The bridge runs as in production, with a real Mosquitto and an emulated hub. One or more faults happen while a client sends random commands and the state of the hub changes. Independent checkers judge the behaviour of the hub, the broker and the process. [How it works](../../test/chaos/README.md).',
    table(['Figure', 'Value'], figures),
    '## By kind of fault',
    '"Failed" counts the episodes in which any checker found a violation. Some delays are part of the contract: a refused password or key is retried after a minute, and a client waits before it reconnects after another client has taken over its connection.',
    table(['Fault', ...COLUMNS], [...kinds].sort().map(row)),
    ...(composed.length === 0
      ? []
      : [
          '## Combined faults',
          'Two or three quick kinds with random timing, from scripts that fast-check generates, and shrinks if they fail.',
          table(['Script', ...COLUMNS], [...sizes].sort().map(row)),
        ]),
    '## Planted bugs',
    'Each bug is a module that is loaded into the bridge before it starts; the checkers must detect it.',
    table(
      ['Bug', 'Caught by'],
      plants.map(({ name, by: checkers, caught: ok }) => [name, ok ? checkers.join(', ') : '**not caught**']),
    ),
    '',
  ].join('\n\n')
}

function commit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim()
  try {
    return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain', 'src') === '' ? '' : ' with changes'}`
  } catch {
    return 'unknown'
  }
}
