/** The latest crash of an app, and what happened before it. */
import { useMemo } from 'preact/hooks'
import * as v from 'valibot'
import type { Crash, PriorEvent } from '../../../../../contract/crash.ts'
import { commandName, dataOf, refusal } from '../../commands.ts'
import { readTopic } from '../../live/store.ts'
import type { Charted } from '../../parts/chart.tsx'
import { type Answer, copyText, Facts, Json, Report, Table, Time } from '../../parts/controls.tsx'
import type { AppProps } from '../../parts/state.tsx'
import { hrefOf } from '../../route.ts'
import { usePage } from '../../session.ts'
import { defineStrings, formatSpan, terms, textFor } from '../../terms.ts'
import { HealthFacts } from '../bridge/hub.tsx'
import { Figures, SHORTEST_SECONDS } from './usage.tsx'

const text = defineStrings('crash', {
  title: 'Latest crash',
  hint: '“Copy for the developer” copies the crash and what happened before it as a text without personal data.',
  copy: 'Copy for the developer',
  at: 'Time',
  firmware: 'Hub firmware',
  hubUp: 'Hub had been up for',
  appUp: 'App had been up for',
  exit: 'Exit code',
  signal: 'Exit signal',
  usage: 'Usage before it',
  over: 'before the crash',
  before: 'What happened before it',
  others: 'Crashed at about the same time',
  hub: 'The hub at that time',
  happened: {
    command: 'Command',
    setting: 'Setting changed',
    firmware_updated: 'New firmware',
    hub_restarted: 'Hub restarted',
  },
  by: 'by {by}',
})

export function CrashCard({ entry }: AppProps) {
  const page = usePage()
  const crash = readTopic(entry, 'crash')
  if (crash === undefined) return null
  const ask = async (): Promise<Answer> => {
    const answer = await dataOf(entry.target, 'get-crash')
    if (!answer.ok) return answer
    const { markdown } = v.parse(v.object({ markdown: v.nullable(v.string()) }), answer.value)
    if (markdown !== null) await copyText(markdown)
    return { ok: true, value: markdown }
  }
  const request = { label: text.copy, refused: refusal(page, entry.target, 'get-crash'), ask }
  return (
    <Report title={text.title} hint={text.hint} requests={[request]}>
      <Said crash={crash} />
      <div class="crash">
        <div>
          <Circumstances crash={crash} />
          <Others hub={entry.hub} ids={crash.others_crashed} />
        </div>
        {crash.hub !== null && (
          <div>
            <h3>{text.hub}</h3>
            <HealthFacts health={crash.hub} />
          </div>
        )}
        <UsageBefore crash={crash} />
        <Before crash={crash} hub={entry.hub} own={entry.id} />
      </div>
    </Report>
  )
}

/** A longer first line is shown small, because it would fill the screen. */
const MAX_LARGE = 200

/** The message of the crash: the first line large, then the unchanged stack. */
function Said({ crash: { message, stack_head } }: { readonly crash: Crash }) {
  const [first = '', ...stack] = (message ?? stack_head ?? terms.noMessage).split('\n')
  return (
    <div class="said">
      <div class={first.length > MAX_LARGE ? '' : 'headline'}>{first}</div>
      {stack.length > 0 && <Json value={stack.join('\n')} />}
    </div>
  )
}

function Circumstances({ crash }: { readonly crash: Crash }) {
  const { at, reason, version, firmware, exit_code, exit_signal, uptime_seconds, app_uptime_seconds } = crash
  return (
    <Facts
      rows={[
        [text.at, <Time at={at} />],
        [terms.reason, terms.causes[reason]],
        [terms.columns.version, version],
        [text.appUp, app_uptime_seconds === null ? undefined : formatSpan(app_uptime_seconds)],
        [text.exit, exit_code === null ? undefined : String(exit_code)],
        [text.signal, exit_signal],
        [text.firmware, firmware],
        [text.hubUp, uptime_seconds === null ? undefined : formatSpan(uptime_seconds)],
      ]}
    />
  )
}

function AppLink({ hub, id }: { readonly hub: string; readonly id: string }) {
  const known = usePage().store.app(hub, id)
  return known === undefined ? <code>{id}</code> : <a href={hrefOf({ at: 'app', hub, app: id })}>{known.name.value}</a>
}

function Others({ hub, ids }: { readonly hub: string; readonly ids: readonly string[] }) {
  if (ids.length === 0) return null
  return (
    <>
      <h3>{text.others}</h3>
      <ul class="lines">
        {ids.map((id) => (
          <li key={id}>
            <AppLink hub={hub} id={id} />
          </li>
        ))}
      </ul>
    </>
  )
}

function Before({ crash, hub, own }: { readonly crash: Crash; readonly hub: string; readonly own: string }) {
  if (crash.before.length === 0) return null
  return (
    <div class="all">
      <h3>{text.before}</h3>
      <Table label={text.before}>
        {crash.before.map((one, i) => (
          <tr key={`${one.at} ${crash.before.length - i}`}>
            <td class="c-time">
              <Time at={one.at} />
            </td>
            <td>{textFor({ ...terms.events, ...text.happened }, one.what)}</td>
            <td>
              {one.app !== null && one.app !== own && <AppLink hub={hub} id={one.app} />} {detailOf(one)}
            </td>
          </tr>
        ))}
      </Table>
    </div>
  )
}

function detailOf({ what, from, to, by }: PriorEvent): string {
  const named = what === 'command' && to !== null ? commandName(to) : to
  return [from !== null && to !== null ? `${from} → ${to}` : named, by !== null && text.by({ by })]
    .filter((part) => part)
    .join(' ')
}

function UsageBefore({ crash }: { readonly crash: Crash }) {
  const charted = useMemo(() => chartedOf(crash), [crash])
  if (charted.points.times.length === 0) return null
  return (
    <div class="all">
      <h3>{text.usage}</h3>
      <Figures charted={charted} over={text.over} />
    </div>
  )
}

function chartedOf({ at, samples }: Crash): Charted {
  const to = Math.floor(Date.parse(at) / 1000)
  const times = samples.map(([before]) => to - before)
  const points = { times, cpu: samples.map(([, cpu]) => cpu), memory: samples.map(([, , memory]) => memory) }
  return { points, marks: [{ at: to, kind: 'crash' }], from: Math.min(times[0] ?? to, to - SHORTEST_SECONDS), to }
}
