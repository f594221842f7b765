/** What happened to an app: while the daemon has run, and as far back as the guardian keeps it. */
import { useComputed } from '@preact/signals'
import { MAX_GUARD_MESSAGE } from '../../../../../contract/guard.ts'
import { headOf } from '../../../../../guardian/classify.ts'
import { crashTexts } from '../../live/activity.ts'
import { furtherOf } from '../../live/entries.ts'
import { Badge } from '../../parts/controls.tsx'
import { Card, Table, Time } from '../../parts/layout.tsx'
import type { AppProps } from '../../parts/state.tsx'
import { usePage } from '../../session.ts'
import { defineStrings, textFor } from '../../strings.ts'
import { terms } from '../../terms.ts'
import { ActivityRow } from '../activity.tsx'

const text = defineStrings('history', {
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

const MOST_SHOWN = 50

export function History({ entry }: AppProps) {
  const { store } = usePage()
  const own = useComputed(() =>
    store.recent.value
      .filter(({ hub, app }) => app === entry.id && hub === entry.hub)
      .slice(-MOST_SHOWN)
      .toReversed(),
  ).value
  return (
    <Card title={text.events}>
      {own.length === 0 ? (
        <p class="empty small">{text.none}</p>
      ) : (
        <Table label={text.events}>
          {own.map((one) => (
            <ActivityRow key={one.number} entry={one} />
          ))}
        </Table>
      )}
    </Card>
  )
}

/** Crashes and restarts, as far back as the guardian keeps them. */
export function Crashes({ entry }: AppProps) {
  const { store } = usePage()
  const history = furtherOf(entry, 'history')
  const texts = useComputed(() => crashTexts(store.recent.value, entry.hub, entry.id)).value
  if (history === undefined || history.length === 0) return null
  const known = [entry.app.value.crash_message, ...texts]
  return (
    <Card title={text.crashes}>
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

/** The history holds only the head of each text, on one line. */
function wholeText(head: string, known: readonly (string | null)[]): string {
  return known.find((text) => headOf(text) === head) ?? (head.length < MAX_GUARD_MESSAGE - 1 ? head : `${head}…`)
}
