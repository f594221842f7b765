/** What is done with several apps: one after the other. */
import { bulk, type Door, nameOf, refusal, restartAll, stopBulk } from '../../commands.ts'
import type { AppEntry } from '../../live/entries.ts'
import { confirm } from '../../parts/confirm.tsx'
import { Action } from '../../parts/small.tsx'
import { S } from '../../strings.ts'
import type { Item } from './order.ts'
import { clearSelected, selected } from './selection.ts'

export function BulkBar({ door, items }: { readonly door: Door; readonly items: readonly Item[] }) {
  const running = bulk.value
  if (running !== undefined) return <Progress />
  const chosen = selected.value
  if (chosen.size === 0) return null
  const all = door.store.hubs.value.flatMap(({ apps }) => [...apps.value.values()])
  // In the order in which they are listed, those that a filter hides last.
  const shown = items.flatMap((item) => (item.kind === 'app' ? [item.entry] : []))
  const entries = [...new Set([...shown, ...all])].filter(({ topic }) => chosen.has(topic))
  const isAllShown = shown.every(({ topic }) => chosen.has(topic))
  return (
    <section class="bulk" aria-label={S.bulk.title}>
      <strong>{S.bulk.selected(entries.length)}</strong>
      <Action
        label={S.bulk.restart}
        glyph="restart"
        tone="primary"
        refused={refusalOfAny(entries, door)}
        act={() => void restart(entries)}
      />
      {!isAllShown && (
        <button
          type="button"
          onClick={() => {
            selected.value = new Set([...chosen, ...shown.map(({ topic }) => topic)])
          }}
        >
          {S.bulk.all(shown.length)}
        </button>
      )}
      <button type="button" onClick={clearSelected}>
        {S.bulk.clear}
      </button>
    </section>
  )
}

function refusalOfAny(entries: readonly AppEntry[], door: Door): string | undefined {
  for (const { hub, id } of entries) {
    const refused = refusal(door, { hub, app: id }, 'restart')
    if (refused !== undefined) return refused
  }
  return undefined
}

async function restart(entries: readonly AppEntry[]): Promise<void> {
  const [first] = entries
  if (entries.length === 1 && first !== undefined) {
    clearSelected()
    return await restartAll(entries)
  }
  const question = { title: S.bulk.question(entries.length), text: S.bulk.text, action: S.bulk.restart }
  if ((await confirm(question)) === undefined) return
  clearSelected()
  await restartAll(entries)
}

function Progress() {
  if (bulk.value === undefined) return null
  const { all, done, state } = bulk.value
  const isUnderWay = state === 'running' || state === 'stopping'
  const current = all[done]
  const name = current === undefined ? '' : nameOf(current)
  return (
    <section class="bulk" aria-label={S.bulk.title} aria-live="polite">
      <progress max={all.length} value={done} aria-label={S.bulk.progress(done, all.length)} />
      <strong>{S.bulk.progress(done, all.length)}</strong>
      <span class={state === 'failed' ? 'bad-text' : ''}>{S.bulk.states[state](name)}</span>
      {isUnderWay ? (
        <button type="button" disabled={state === 'stopping'} onClick={stopBulk}>
          {S.cancel}
        </button>
      ) : (
        <button
          type="button"
          onClick={() => {
            bulk.value = undefined
          }}
        >
          {S.bulk.close}
        </button>
      )}
    </section>
  )
}
