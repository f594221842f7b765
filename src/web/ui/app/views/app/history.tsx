/** How the guardian treats an app, the activity since the daemon started, and the history that the guardian keeps. */
import { useComputed } from '@preact/signals'
import { headOf, isCrashed } from '../../../../../contract/classify.ts'
import { MAX_GUARD_MESSAGE } from '../../../../../contract/guard.ts'
import { actionsOf } from '../../actions.ts'
import { crashTexts, rowsOf } from '../../live/activity.ts'
import { readTopic } from '../../live/store.ts'
import { Action, Badge, Card, Facts, Table, Time } from '../../parts/controls.tsx'
import { type AppProps, CommandSwitch, GuardBadge } from '../../parts/state.tsx'
import { usePage } from '../../session.ts'
import { defineStrings, formatBytes, terms, textFor } from '../../terms.ts'
import { GroupRows } from '../activity.tsx'

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
  // After a restart of the daemon, do not show an empty list beside a known crash.
  if (own.length === 0 && (isCrashed(entry.app.value) || readTopic(entry, 'crash') !== undefined)) return null
  return (
    <Card title={text.events} wide>
      {own.length === 0 ? (
        <p class="empty small">{text.none}</p>
      ) : (
        <Table label={text.events}>
          {own.map((row) => (
            <GroupRows key={row.entries[0]?.number} row={row} />
          ))}
        </Table>
      )}
    </Card>
  )
}

/** The crashes and restarts that the guardian keeps. */
export function Crashes({ entry }: AppProps) {
  const { store } = usePage()
  const history = readTopic(entry, 'history')
  const texts = useComputed(() => crashTexts(store.recent.value, entry.hub, entry.id)).value
  if (history === undefined || history.length === 0) return null
  const known = [entry.app.value.crash_message, ...texts]
  return (
    <Card title={text.crashes} wide>
      <Table label={text.crashes}>
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
      </Table>
    </Card>
  )
}

function whyOf(by: string | null, cause: string | null): string | null {
  return by !== null && cause !== null ? text.byAndCause({ by, cause }) : (by ?? cause)
}

/** Completes a text of the history, which contains only the beginning of each text, on one line. */
function wholeText(head: string, known: readonly (string | null)[]): string {
  return known.find((text) => headOf(text) === head) ?? (head.length < MAX_GUARD_MESSAGE - 1 ? head : `${head}…`)
}
