/** What the guardian does about an app, and what it has seen of it. */
import { useComputed } from '@preact/signals'
import { MAX_GUARD_MESSAGE } from '../../../../../contract/guard.ts'
import { headOf } from '../../../../../guardian/classify.ts'
import { actOn, refusal } from '../../commands.ts'
import { formatBytes } from '../../format.ts'
import { furtherOf } from '../../live/entries.ts'
import { crashTexts } from '../../live/happenings.ts'
import { Action, Badge, Card, Facts, Switch, Time, type Tone } from '../../parts/small.tsx'
import { S } from '../../strings.ts'
import type { PartProps } from './app.tsx'

type State = keyof typeof S.guard.states

const TONES: Readonly<Record<State, Tone>> = {
  off: 'quiet',
  watching: 'ok',
  waiting: 'warn',
  restarting: 'info',
  given_up: 'bad',
  snoozed: 'quiet',
}

export function Guardian({ entry, door }: PartProps) {
  const guard = furtherOf(entry, 'guard')
  if (guard === undefined) return null
  const refused = refusal(door, { hub: entry.hub, app: entry.id }, 'guard')
  const isOn = guard.state !== 'off'
  const { next_restart_at: next, snoozed_until: until, memory_trend_bytes_per_hour: trend, attention } = guard
  const sign = (trend ?? 0) < 0 ? '−' : '+'
  return (
    <Card title={S.guard.title} aside={<Badge tone={TONES[guard.state]}>{S.guard.states[guard.state]}</Badge>}>
      <Facts
        rows={[
          [
            S.guard.watches,
            <Switch
              key="watches"
              on={isOn}
              label={S.guard.watches}
              disabled={refused !== undefined || entry.running.value !== undefined}
              title={refused}
              flip={() => void actOn(entry, 'guard', isOn ? 'OFF' : 'ON')}
            />,
          ],
          [S.guard.restarts, S.guard.counted(guard.restarts, guard.restarts_in_window)],
          [S.guard.next, next === null ? undefined : <Time key="next" at={Date.parse(next)} />],
          [S.guard.snoozed, until === null ? undefined : <Time key="until" at={Date.parse(until)} />],
          [S.guard.trend, trend === null ? undefined : S.guard.perHour(sign + formatBytes(Math.abs(trend)))],
          [S.guard.attention, attention.map((reason) => S.guard.reasons[reason]).join(', ')],
        ]}
      />
      {isOn && (
        <div class="buttons">
          <Action label={S.guard.snooze} refused={refused} act={() => void actOn(entry, 'guard', { snooze: '1h' })} />
          <Action label={S.guard.forget} refused={refused} act={() => void actOn(entry, 'guard', { forget: true })} />
        </div>
      )}
    </Card>
  )
}

/** Crashes and restarts, as far back as the guardian keeps them. */
export function Chronicle({ entry, door: { store } }: PartProps) {
  const history = furtherOf(entry, 'history')
  const texts = useComputed(() => crashTexts(store.recent.value, entry.hub, entry.id)).value
  if (history === undefined || history.length === 0) return null
  const known = [entry.app.value.crash_message, ...texts]
  return (
    <Card title={S.guard.history}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and a keyboard must be able to. */}
      <div class="scroll" tabIndex={0}>
        <table class="happenings" aria-label={S.guard.history}>
          <tbody>
            {history.map(({ at, what, reason, version, by, message }, i) => (
              <tr key={`${at} ${history.length - i}`}>
                <td class="c-time">
                  <Time at={Date.parse(at)} />
                </td>
                <td>
                  <Badge tone={what === 'restart' || what === 'update' ? 'info' : 'bad'}>{S.guard.kinds[what]}</Badge>
                </td>
                <td class="c-what">
                  {[reason === null ? '' : S.guard.reasons[reason], by === null ? '' : (S.guard.by[by] ?? by)]
                    .filter((part) => part !== '')
                    .join(' · ')}
                  {version !== null && <small class="version">{version}</small>}
                  {message !== null && <div class="said">{wholeText(message, known)}</div>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  )
}

/** The history holds only the head of each text, on one line. */
function wholeText(head: string, known: readonly (string | null)[]): string {
  return known.find((text) => headOf(text) === head) ?? (head.length < MAX_GUARD_MESSAGE - 1 ? head : `${head}…`)
}
