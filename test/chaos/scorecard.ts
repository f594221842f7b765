import { execFileSync } from 'node:child_process'
import { table } from '../bench/table.ts'
import type { EpisodeResult } from './episode.ts'
import type { PlantResult } from './prove.ts'

interface ScorecardInput {
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

/** Returns the time until the retained messages matched the hub's state: median, 95th percentile and maximum. */
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
    [
      'Confirmed but not executed / confirmed but without an effect on the hub',
      `${by('confirmed, not executed')} / ${by('false ok')}`,
    ],
    ['Executed twice', by('executed twice')],
    ['Executed late', by('executed late')],
    ['Executed although not permitted (retained, sent while the bridge was offline, refused)', by('executed unasked')],
    ['Executed although denied', by('denied executed')],
    ['Not answered / answered twice', `${by('not answered')} / ${by('answered twice')}`],
    ['Answered from memory after more than five minutes', by('remembered too long')],
    ['Events lost', by('event lost')],
    [
      'Invalid inputs sent / accepted',
      `${whole(sum(results.map((one) => one.badInputs)))} / ${by('bad input accepted')}`,
    ],
    ['Retained messages: outdated / missing / wrong', `${by('ghosts')} / ${by('missing')} / ${by('wrong')}`],
    ['Cleared although the app existed / published although it was removed', `${by('wiped')} / ${by('resurrected')}`],
    ['Topics of other programs changed', by('foreign touched')],
    ['Cleared or changed topics not restored', by('not repaired')],
    [
      '`offline` published without a reason / not `online` again without a reason',
      `${by('said offline')} / ${by('kept offline')}`,
    ],
    ['API key sent to servers other than a hub', by('key shown')],
    ['States that were outdated when sent', by('stale state')],
    ['Secrets disclosed', by('secret shown')],
    ['Process exited, crashed or did not stop in time', by('process')],
    ['Episodes that did not reach a stable state', by('calm')],
    ['Time from the fault until the broker and the hub have the same state: p50, p95, max', `${p50}, ${p95}, ${max}`],
    ['Planted bugs detected', plants.length === 0 ? 'not tried' : `${caught} of ${plants.length}`],
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
    'Generated by `npm run chaos -- --campaign --write`. The bridge runs as in production, with a real Mosquitto broker and an emulated hub. One or more faults occur while a client sends random commands and the state of the hub changes. Independent checkers then check the behaviour of the hub, the broker and the process of the bridge. [How it works](../../test/chaos/README.md).',
    table(['Figure', 'Value'], figures),
    '## By kind of fault',
    '"Failed" is the number of episodes in which a checker found a violation. Some delays are intended: the bridge retries after a minute if its password or key is refused, and waits before it reconnects if another client with the same client id has replaced its connection.',
    table(['Fault', ...COLUMNS], [...kinds].sort().map(row)),
    ...(composed.length === 0
      ? []
      : [
          '## Combined faults',
          'Each script has two or three quick kinds of faults with random timing. fast-check generates the scripts, and shrinks the scripts that fail.',
          table(['Script', ...COLUMNS], [...sizes].sort().map(row)),
        ]),
    '## Planted bugs',
    'Each planted bug is a module that is loaded into the bridge before the bridge starts. The checkers must detect the bug.',
    table(
      ['Bug', 'Detected by'],
      plants.map(({ name, by: checkers, caught: ok }) => [name, ok ? checkers.join(', ') : '**not detected**']),
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
