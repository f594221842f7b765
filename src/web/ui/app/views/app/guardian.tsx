/** What the guardian does about an app. */
import { actOn, refusal } from '../../commands.ts'
import { formatBytes } from '../../format.ts'
import { furtherOf } from '../../live/entries.ts'
import { Action, Badge, type Tone } from '../../parts/controls.tsx'
import { Card, Facts, Time } from '../../parts/layout.tsx'
import { type AppProps, CommandSwitch } from '../../parts/state.tsx'
import { usePage } from '../../session.ts'
import { defineStrings } from '../../strings.ts'
import { terms } from '../../terms.ts'

const text = defineStrings('guardian', {
  title: 'Guardian',
  states: {
    off: 'off',
    watching: 'watching',
    waiting: 'waiting before the next restart',
    restarting: 'restarting',
    given_up: 'given up',
    snoozed: 'snoozed',
  },
  watches: 'Watches this app',
  restarts: 'Restarts',
  counted: '{total} in total, {recent} recently',
  next: 'Next restart',
  snoozed: 'Snoozed until',
  trend: 'Memory trend',
  perHour: '{bytes} per hour',
  attention: 'Needs attention',
  snooze: 'Snooze for 1 hour',
  forget: 'Clear history and counts',
})

const TONES: Readonly<Record<keyof typeof text.states, Tone>> = {
  off: 'quiet',
  watching: 'ok',
  waiting: 'warn',
  restarting: 'info',
  given_up: 'bad',
  snoozed: 'quiet',
}

export function Guardian({ entry }: AppProps) {
  const page = usePage()
  const guard = furtherOf(entry, 'guard')
  if (guard === undefined) return null
  const refused = refusal(page, { hub: entry.hub, app: entry.id }, 'guard')
  const isOn = guard.state !== 'off'
  const { next_restart_at: next, snoozed_until: until, memory_trend_bytes_per_hour: trend, attention } = guard
  const sign = (trend ?? 0) < 0 ? '−' : '+'
  return (
    <Card title={text.title} aside={<Badge tone={TONES[guard.state]}>{text.states[guard.state]}</Badge>}>
      <Facts
        rows={[
          [text.watches, <CommandSwitch entry={entry} command="guard" label={text.watches} on={isOn} />],
          [text.restarts, text.counted({ total: guard.restarts, recent: guard.restarts_in_window })],
          [text.next, next && <Time at={next} />],
          [text.snoozed, until && <Time at={until} />],
          [text.trend, trend && text.perHour({ bytes: sign + formatBytes(Math.abs(trend)) })],
          [text.attention, attention.map((reason) => terms.causes[reason]).join(', ')],
        ]}
      />
      {isOn && (
        <div class="buttons">
          <Action label={text.snooze} refused={refused} act={() => void actOn(entry, 'guard', { snooze: '1h' })} />
          <Action label={text.forget} refused={refused} act={() => void actOn(entry, 'guard', { forget: true })} />
        </div>
      )}
    </Card>
  )
}
