/** How the guardian treats an app: as a badge, and as a glyph for lists. */
import type { GuardPayload } from '../../../../contract/guard.ts'
import { formatTime } from '../format.ts'
import { type AppEntry, furtherOf } from '../live/entries.ts'
import { defineStrings } from '../strings.ts'
import { Badge, type Tone } from './controls.tsx'
import { Glyph, type GlyphName } from './icons.tsx'
import type { AppProps } from './state.tsx'

const text = defineStrings('guard', {
  states: {
    off: 'off',
    watching: 'watching',
    waiting: 'waiting before the next restart',
    restarting: 'restarting',
    given_up: 'given up',
    snoozed: 'snoozed',
  },
  short: {
    off: 'Off',
    watching: 'Watching',
    waiting: 'Waiting',
    restarting: 'Restarting',
    given_up: 'Given up',
    snoozed: 'Snoozed',
  },
  next: 'next try {time}',
  until: 'until {time}',
  of: 'Guardian: {state}',
})

type State = GuardPayload['state']

/** The most urgent state first: the order of the list. */
const LOOKS: Readonly<Record<State, { readonly tone: Tone; readonly glyph: GlyphName }>> = {
  given_up: { tone: 'bad', glyph: 'alert' },
  waiting: { tone: 'warn', glyph: 'clock' },
  restarting: { tone: 'info', glyph: 'restart' },
  snoozed: { tone: 'quiet', glyph: 'dark' },
  watching: { tone: 'ok', glyph: 'shield' },
  off: { tone: 'quiet', glyph: 'pause' },
}
const ORDER = Object.keys(LOOKS)

/** For comparing apps; those that the guardian does not know come last. */
export function guardOrder(entry: AppEntry): number {
  const state = furtherOf(entry, 'guard')?.state
  return state === undefined ? ORDER.length : ORDER.indexOf(state)
}

export function GuardBadge({ state }: { readonly state: State }) {
  return <Badge tone={LOOKS[state].tone}>{text.states[state]}</Badge>
}

/** When the guardian acts next; `undefined` if it does not plan to. */
export function nextOf(entry: AppEntry): string | undefined {
  const guard = furtherOf(entry, 'guard')
  if (guard?.state === 'snoozed' && guard.snoozed_until !== null)
    return text.until({ time: timeOf(guard.snoozed_until) })
  const next = guard?.next_restart_at ?? guard?.retry_at ?? null
  return next === null ? undefined : text.next({ time: timeOf(next) })
}

const timeOf = (time: string) => formatTime(Date.parse(time))

function inWords(state: State, entry: AppEntry): string {
  return [text.states[state], nextOf(entry)].filter((part) => part !== undefined).join(', ')
}

/** A glyph whose text is for screen readers and pointers; nothing if the guardian does not watch the app. */
export function GuardMark({ entry }: AppProps) {
  const state = furtherOf(entry, 'guard')?.state
  if (state === undefined || state === 'off') return null
  const said = text.of({ state: inWords(state, entry) })
  return (
    <span class={`guard ${LOOKS[state].tone}`} title={said}>
      <Glyph name={LOOKS[state].glyph} size={16} />
      <span class="hidden">{said}</span>
    </span>
  )
}

/** The same in words, where there is room. */
export function GuardCell({ entry }: AppProps) {
  const state = furtherOf(entry, 'guard')?.state
  if (state === undefined) return null
  const { tone, glyph } = LOOKS[state]
  const next = nextOf(entry)
  return (
    <>
      <span class={`guard ${tone}`} title={inWords(state, entry)}>
        <Glyph name={glyph} size={16} /> {text.short[state]}
      </span>
      {next !== undefined && <small title={next}>{next}</small>}
    </>
  )
}
