import { signal, untracked } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { actionName, bulk, bulkRefusal, isInProgress, MANY, resumeBulk, startBulk, stopBulk } from '../../actions.ts'
import { pageRefusal } from '../../commands.ts'
import { Action, IconButton, set } from '../../parts/controls.tsx'
import { openMenu } from '../../parts/overlays.tsx'
import { usePage } from '../../session.ts'
import { defineStrings, listed } from '../../terms.ts'
import type { AppList, ListProps } from './order.ts'

const text = defineStrings('selection', {
  title: 'Selected apps',
  selected: '{count} selected',
  all: 'Select all {count}',
  allShown: 'Select all shown',
  more: 'More for the selected apps',
  clear: 'Clear',
  close: 'Close',
  stop: 'Stop',
  goOn: 'Continue',
  progress: '{done} of {all}',
  running: '{action}: {name}…',
  states: {
    stopping: 'Stops after {name}',
    stopped: 'Stopped by you',
    failed: 'Stopped: {name} failed',
    lost: 'Stopped: no connection',
    done: 'All done',
  },
  done: '{count} done',
  failed: '{count} failed',
  skipped: { one: '{count} skipped: no longer possible', other: '{count} skipped: no longer possible' },
  failure: '{name}: {why}',
  left: 'Left: {names}',
})

const NOTHING: ReadonlySet<string> = new Set()
export const selected = signal(NOTHING)

const shownIn = (list: AppList) => list.items.value.flatMap((item) => (item.kind === 'app' ? [item.entry] : []))

export function SelectAll({ list }: ListProps) {
  const topics = new Set(shownIn(list).map(({ topic }) => topic))
  const chosen = selected.value
  const isAll = topics.isSubsetOf(chosen)
  return (
    <input
      type="checkbox"
      aria-label={text.allShown}
      checked={isAll}
      indeterminate={!isAll && !topics.isDisjointFrom(chosen)}
      onChange={() => set(selected, isAll ? chosen.difference(topics) : chosen.union(topics))}
    />
  )
}

/** The actions that have their own button. All other actions are in a menu. */
const BUTTONS: readonly string[] = ['restart', 'install']

export function BulkBar({ list }: ListProps) {
  const page = usePage()
  // Render when the totals change, because the possible actions depend on the same data.
  void list.totals.value
  const chosen = selected.value
  if (chosen.size === 0 || (bulk.value?.state ?? 'done') !== 'done') return null
  const all = page.store.hubs.value.flatMap(({ apps }) => [...apps.value.values()])
  // Sort the selected apps in the order of the list. Apps that a filter hides are last.
  const shown = shownIn(list)
  const entries = [...new Set([...shown, ...all])].filter(({ topic }) => chosen.has(topic))
  const topics = new Set(shown.map(({ topic }) => topic))
  const start = async (action: (typeof MANY)[number]) => {
    if (await startBulk(page, action, entries)) selected.value = NOTHING
  }
  const actions = MANY.map((action) => ({
    key: action.key,
    label: actionName(action),
    glyph: action.glyph,
    refused: untracked(() => bulkRefusal(page, action, entries)),
    act: () => void start(action),
  }))
  const { buttons = [], others = [] } = Object.groupBy(actions, ({ key }) =>
    BUTTONS.includes(key) ? 'buttons' : 'others',
  )
  return (
    <section class="bulk" aria-label={text.title}>
      <strong>{text.selected({ count: entries.length })}</strong>
      {buttons.map((action) => (
        <Action {...action} key={action.key} />
      ))}
      <IconButton label={text.more} glyph="more" popup="menu" act={(opener) => openMenu(opener, text.more, others)} />
      {!topics.isSubsetOf(chosen) && (
        <Action label={text.all({ count: shown.length })} act={() => set(selected, chosen.union(topics))} />
      )}
      <Action label={text.clear} act={() => set(selected, NOTHING)} />
    </section>
  )
}

const MAX_NAMED = 5

/** The progress of an action on several apps. It is shown above all views, so that users can always stop the action. */
export function BulkProgress() {
  const { channel } = usePage()
  const panel = useRef<HTMLElement>(null)
  const now = bulk.value
  // The button that started the action may no longer exist, so focus the panel.
  useEffect(() => panel.current?.focus(), [now?.all])
  if (now === undefined) return null
  const { action, all, results, state } = now
  const name = all[results.length]?.name ?? ''
  const last = all[results.length - 1]?.name ?? ''
  const message = {
    ...text.states,
    running: text.running({ action: actionName(action), name }),
    stopping: text.states.stopping({ name }),
    failed: text.states.failed({ name: last }),
  }[state]
  // While apps are selected, the bar with their actions takes this place when the user scrolls.
  const isPassed = state === 'done' && selected.value.size > 0
  const classes = isPassed ? 'bulk progress passed' : 'bulk progress'
  return (
    <section ref={panel} class={classes} tabIndex={-1} aria-label={actionName(action)} aria-live="polite">
      <progress max={all.length} value={results.length} aria-label={actionName(action)} />
      <strong>{text.progress({ done: results.length, all: all.length })}</strong>
      <span class={state === 'failed' ? 'bad-text' : ''}>{message}</span>
      {isInProgress() ? (
        <button
          type="button"
          disabled={state === 'stopping' && channel.liveness.value === 'live'}
          onClick={() => stopBulk()}
        >
          {text.stop}
        </button>
      ) : (
        <Ended {...now} />
      )}
    </section>
  )
}

function Ended({ all, results, state }: NonNullable<typeof bulk.value>) {
  const page = usePage()
  const count = (wanted: string) => results.filter(({ as }) => as === wanted).length
  const failures = results.flatMap((result, i) =>
    result.as === 'failed' ? [text.failure({ name: all[i]?.name ?? '', why: result.why })] : [],
  )
  const remaining = all.slice(results.length).map(({ name }) => name)
  const counts = [
    text.done({ count: count('done') }),
    failures.length > 0 && text.failed({ count: failures.length }),
    count('skipped') > 0 && text.skipped({ count: count('skipped') }),
  ]
  // Disable the button while commands are refused, because the next app would immediately count as failed.
  const refused = pageRefusal(page)
  return (
    <>
      {remaining.length > 0 && <Action label={text.goOn} refused={refused} act={resumeBulk} />}
      <Action
        label={state === 'failed' && remaining.length > 0 ? text.stop : text.close}
        act={() => set(bulk, undefined)}
      />
      <ul>
        <li>{counts.filter((part) => part !== false).join(', ')}</li>
        {failures.slice(-MAX_NAMED).map((failure) => (
          <li key={failure} class="bad-text">
            {failure}
          </li>
        ))}
        {remaining.length > 0 && <li>{text.left({ names: listed(remaining, MAX_NAMED) })}</li>}
      </ul>
    </>
  )
}
