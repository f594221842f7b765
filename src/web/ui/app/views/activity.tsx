/** The live tail: events and answers as they come. */
import { useSignal } from '@preact/signals'
import type { Door } from '../commands.ts'
import { type Entry, isFailure } from '../live/happenings.ts'
import type { Store } from '../live/store.ts'
import { Glyph } from '../parts/glyph.tsx'
import { S } from '../strings.ts'
import { detailOf, HappeningRow, labelOf } from './happening.tsx'

const KINDS = ['all', 'events', 'commands', 'failures'] as const
type Kind = (typeof KINDS)[number]

const PASSES: Readonly<Record<Kind, (entry: Entry) => boolean>> = {
  all: () => true,
  events: ({ kind }) => kind === 'event',
  commands: ({ kind }) => kind === 'answer',
  failures: isFailure,
}

/** More are no help at one glance, and cost. */
const MOST_SHOWN = 200

export function Activity({ door: { store } }: { readonly door: Door }) {
  const kind = useSignal<Kind>('all')
  const text = useSignal('')
  /** What was there when it was paused. */
  const paused = useSignal<readonly Entry[] | undefined>(undefined)
  const all = paused.value ?? store.recent.value
  const wanted = text.value.trim().toLowerCase()
  const shown = all
    .filter((entry) => PASSES[kind.value](entry) && (wanted === '' || textOf(entry, store).includes(wanted)))
    .slice(-MOST_SHOWN)
    .toReversed()
  const missed = paused.value === undefined ? 0 : newerThan(store.recent.value, paused.value)
  return (
    <div class="view">
      <h1>{S.activity.title}</h1>
      <div class="toolbar">
        <label class="search">
          <Glyph name="search" size={16} />
          <span class="hidden">{S.activity.search}</span>
          <input
            type="search"
            placeholder={S.activity.search}
            value={text.value}
            onInput={({ currentTarget }) => {
              text.value = currentTarget.value
            }}
          />
        </label>
        <fieldset class="chips">
          <legend class="hidden">{S.activity.kind}</legend>
          {KINDS.map((one) => (
            <button
              key={one}
              type="button"
              class="chip"
              aria-pressed={kind.value === one}
              onClick={() => {
                kind.value = one
              }}
            >
              {S.activity.kinds[one]}
            </button>
          ))}
        </fieldset>
        <button
          type="button"
          aria-pressed={paused.value !== undefined}
          onClick={() => {
            paused.value = paused.value === undefined ? store.recent.value : undefined
          }}
        >
          <Glyph name={paused.value === undefined ? 'pause' : 'play'} size={16} />
          {paused.value === undefined ? S.activity.pause : S.activity.resume(missed)}
        </button>
      </div>
      {shown.length === 0 ? (
        <p class="empty">{all.length === 0 ? S.activity.nothingYet : S.activity.nothingFound}</p>
      ) : (
        <div class="card flush">
          <table class="happenings" aria-label={S.activity.title}>
            <thead class="hidden">
              <tr>
                {S.activity.columns.map((column) => (
                  <th key={column}>{column}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((entry) => (
                <HappeningRow key={entry.number} entry={entry} store={store} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  )
}

function textOf(entry: Entry, store: Store): string {
  const app = entry.hub !== null && entry.app !== null ? store.app(entry.hub, entry.app) : undefined
  const { facts, said } = detailOf(entry)
  const name = app?.app.peek().name ?? ''
  return `${entry.hub ?? ''} ${entry.app ?? ''} ${name} ${labelOf(entry)} ${facts} ${said}`.toLowerCase()
}

function newerThan(all: readonly Entry[], paused: readonly Entry[]): number {
  const last = paused.at(-1)?.number ?? 0
  return all.filter(({ number }) => number > last).length
}
