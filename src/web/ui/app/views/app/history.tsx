import { useComputed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import * as v from 'valibot'
import { headOf, isCrashed } from '../../../../../contract/classify.ts'
import type { Crash, PriorEvent } from '../../../../../contract/crash.ts'
import { MAX_GUARD_MESSAGE } from '../../../../../contract/guard.ts'
import { actionsOf } from '../../actions.ts'
import { commandName, dataOf, refusal } from '../../commands.ts'
import { crashTexts, rowsOf } from '../../live/activity.ts'
import { readTopic } from '../../live/store.ts'
import type { Charted } from '../../parts/chart.tsx'
import {
  Action,
  type Answer,
  Badge,
  Card,
  copyText,
  Facts,
  Json,
  Report,
  ScrollTable,
  Time,
} from '../../parts/controls.tsx'
import { type AppProps, CommandSwitch, GuardBadge } from '../../parts/state.tsx'
import { hrefOf } from '../../route.ts'
import { usePage } from '../../session.ts'
import { defineStrings, formatBytes, formatSpan, terms, textFor } from '../../terms.ts'
import { GroupRows } from '../activity.tsx'
import { HealthFacts } from '../bridge/hub.tsx'
import { Figures, SHORTEST_SECONDS } from './usage.tsx'

const crashText = defineStrings('crash', {
  title: 'Latest crash',
  hint: '“Copy for the developer” copies the crash and what happened before it as a text without personal data.',
  copy: 'Copy for the developer',
  at: 'Time',
  firmware: 'Hub firmware',
  hubUp: 'Hub had been up for',
  appUp: 'App had been up for',
  exit: 'Exit code',
  signal: 'Exit signal',
  usage: 'Usage before the crash',
  over: 'before the crash',
  before: 'What happened before the crash',
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
  const run = async (): Promise<Answer> => {
    const answer = await dataOf(entry.target, 'get-crash')
    if (!answer.ok) return answer
    const { markdown } = v.parse(v.object({ markdown: v.nullable(v.string()) }), answer.value)
    if (markdown !== null) await copyText(markdown)
    return { ok: true, value: markdown }
  }
  const request = { label: crashText.copy, refused: refusal(page, entry.target, 'get-crash'), run }
  return (
    <Report title={crashText.title} hint={crashText.hint} requests={[request]}>
      <CrashMessage crash={crash} />
      <div class="crash">
        <div>
          <Circumstances crash={crash} />
          <Others hub={entry.hub} ids={crash.others_crashed} />
        </div>
        {crash.hub !== null && (
          <div>
            <h3>{crashText.hub}</h3>
            <HealthFacts health={crash.hub} />
          </div>
        )}
        <UsageBefore crash={crash} />
        <Before crash={crash} hub={entry.hub} own={entry.id} />
      </div>
    </Report>
  )
}

/** Maximum length of a first line in large text. A longer line in large text would fill the screen. */
const MAX_LARGE = 200

/** Shows the first line of a crash message in large text, and the unchanged stack below it. */
function CrashMessage({ crash: { message, stack_head } }: { readonly crash: Crash }) {
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
        [crashText.at, <Time at={at} />],
        [terms.reason, terms.causes[reason]],
        [terms.columns.version, version],
        [crashText.appUp, app_uptime_seconds === null ? undefined : formatSpan(app_uptime_seconds)],
        [crashText.exit, exit_code === null ? undefined : String(exit_code)],
        [crashText.signal, exit_signal],
        [crashText.firmware, firmware],
        [crashText.hubUp, uptime_seconds === null ? undefined : formatSpan(uptime_seconds)],
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
      <h3>{crashText.others}</h3>
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
      <h3>{crashText.before}</h3>
      <ScrollTable label={crashText.before}>
        {crash.before.map((one, i) => (
          <tr key={`${one.at} ${crash.before.length - i}`}>
            <td class="c-time">
              <Time at={one.at} />
            </td>
            <td>{textFor({ ...terms.events, ...crashText.happened }, one.what)}</td>
            <td>
              {one.app !== null && one.app !== own && <AppLink hub={hub} id={one.app} />} {detailOf(one)}
            </td>
          </tr>
        ))}
      </ScrollTable>
    </div>
  )
}

function detailOf({ what, from, to, by }: PriorEvent): string {
  const named = what === 'command' && to !== null ? commandName(to) : to
  return [from !== null && to !== null ? `${from} → ${to}` : named, by !== null && crashText.by({ by })]
    .filter((part) => part)
    .join(' ')
}

function UsageBefore({ crash }: { readonly crash: Crash }) {
  const charted = useMemo(() => chartedOf(crash), [crash])
  if (charted.points.times.length === 0) return null
  return (
    <div class="all">
      <h3>{crashText.usage}</h3>
      <Figures charted={charted} over={crashText.over} />
    </div>
  )
}

function chartedOf({ at, samples }: Crash): Charted {
  const to = Math.floor(Date.parse(at) / 1000)
  const times = samples.map(([before]) => to - before)
  const points = { times, cpu: samples.map(([, cpu]) => cpu), memory: samples.map(([, , memory]) => memory) }
  return { points, marks: [{ at: to, kind: 'crash' }], from: Math.min(times[0] ?? to, to - SHORTEST_SECONDS), to }
}

const text = defineStrings('guardian', {
  watches: 'Watches this app',
  restarts: 'Restarts',
  counted: '{total} in total, {recent} recently',
  next: 'Next restart',
  retry: 'Next try',
  snoozed: 'Snoozed until',
  trend: 'Memory trend',
  perHour: '{bytes} per hour',
  attention: 'Needs attention',
  events: 'Events and commands',
  none: 'No events or commands since hub2mqtt started.',
  crashes: 'Crashes and restarts',
  kinds: {
    crash: 'Crash',
    restart: 'Restart',
    gave_up: 'Gave up',
    update: 'Update',
    bad_update: 'Bad update',
    memory_rising: 'Memory rises',
  },
  by: { guard: 'by the guardian', command: 'by a command' },
  byAndCause: '{by} ({cause})',
})

export function Guardian({ entry }: AppProps) {
  const page = usePage()
  const guard = readTopic(entry, 'guard')
  if (guard === undefined) return null
  const isOn = guard.state !== 'off'
  const { next_restart_at: next, snoozed_until: until, memory_trend_bytes_per_hour: trend, attention } = guard
  const sign = (trend ?? 0) < 0 ? '−' : '+'
  return (
    <Card title={terms.columns.guardian} aside={<GuardBadge state={guard.state} />}>
      <Facts
        rows={[
          [text.watches, <CommandSwitch entry={entry} command="guard" label={text.watches} on={isOn} />],
          [text.restarts, text.counted({ total: guard.restarts, recent: guard.restarts_in_window })],
          [text.next, next && <Time at={next} />],
          [text.retry, guard.retry_at && <Time at={guard.retry_at} />],
          [text.snoozed, until && <Time at={until} />],
          [text.trend, trend && text.perHour({ bytes: sign + formatBytes(Math.abs(trend)) })],
          [text.attention, attention.map((reason) => terms.causes[reason]).join(', ')],
        ]}
      />
      {isOn && (
        <div class="buttons">
          {actionsOf(entry, page)
            .filter(({ command, key }) => command === 'guard' && key !== 'unwatch')
            .map((action) => (
              <Action {...action} key={action.key} />
            ))}
        </div>
      )}
    </Card>
  )
}

const MAX_SHOWN = 50

export function History({ entry }: AppProps) {
  const { store } = usePage()
  const own = useComputed(() =>
    rowsOf(store.recent.value.filter(({ hub, app }) => app === entry.id && hub === entry.hub)).slice(0, MAX_SHOWN),
  ).value
  // After a restart of the daemon, the list is empty. Hide it if a crash is known, because the two would not match.
  if (own.length === 0 && (isCrashed(entry.app.value) || readTopic(entry, 'crash') !== undefined)) return null
  return (
    <Card title={text.events} wide>
      {own.length === 0 ? (
        <p class="empty small">{text.none}</p>
      ) : (
        <ScrollTable label={text.events}>
          {own.map((row) => (
            <GroupRows key={row.entries[0]?.number} row={row} />
          ))}
        </ScrollTable>
      )}
    </Card>
  )
}

export function Crashes({ entry }: AppProps) {
  const { store } = usePage()
  const history = readTopic(entry, 'history')
  const texts = useComputed(() => crashTexts(store.recent.value, entry.hub, entry.id)).value
  if (history === undefined || history.length === 0) return null
  const known = [entry.app.value.crash_message, ...texts]
  return (
    <Card title={text.crashes} wide>
      <ScrollTable label={text.crashes}>
        {history.map(({ at, what, reason, version, by, message }, i) => (
          <tr key={`${at} ${history.length - i}`}>
            <td class="c-time">
              <Time at={at} />
            </td>
            <td>
              <Badge tone={what === 'restart' || what === 'update' ? 'info' : 'bad'}>{text.kinds[what]}</Badge>
            </td>
            <td>
              {whyOf(by && textFor(text.by, by), reason && terms.causes[reason])}
              {version !== null && <small> {version}</small>}
              {message !== null && <div class="said">{wholeText(message, known)}</div>}
            </td>
          </tr>
        ))}
      </ScrollTable>
    </Card>
  )
}

function whyOf(by: string | null, cause: string | null): string | null {
  return by !== null && cause !== null ? text.byAndCause({ by, cause }) : (by ?? cause)
}

/** Returns the whole text if it is known. The history contains only the start of each text, on one line. */
function wholeText(head: string, known: readonly (string | null)[]): string {
  return known.find((text) => headOf(text) === head) ?? (head.length < MAX_GUARD_MESSAGE - 1 ? head : `${head}…`)
}
