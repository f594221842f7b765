/** An app in the list. It is drawn anew only when this app changes. */
import { useComputed } from '@preact/signals'
import { isCrashed } from '../../../../../guardian/classify.ts'
import type { App } from '../../../../../hub/app.ts'
import { confirmAndDo, menuOf } from '../../app-actions.ts'
import { type Door, nameOf, refusal } from '../../commands.ts'
import { formatBytes, formatPercent } from '../../format.ts'
import type { AppEntry } from '../../live/entries.ts'
import { AppIcon } from '../../parts/app-icon.tsx'
import { Glyph } from '../../parts/glyph.tsx'
import { openMenu } from '../../parts/menu.tsx'
import { Switch } from '../../parts/small.tsx'
import { type Figure, Spark } from '../../parts/spark.tsx'
import { lastState, StateBadge, troubleOf, UpdateBadge } from '../../parts/state.tsx'
import { hrefOf } from '../../route.ts'
import { S } from '../../strings.ts'
import { selected, toggleSelected } from './selection.ts'

export interface RowProps {
  readonly entry: AppEntry
  readonly door: Door
  /** Its place in the whole list, from 1. */
  readonly place: number
}

export function AppRow({ entry, door, place }: RowProps) {
  const app = entry.app.value
  const name = nameOf(entry)
  const isSelected = useComputed(() => selected.value.has(entry.topic)).value
  const { store } = door
  const isAway = useComputed(() => store.isAway(entry.hub)).value
  const trouble = useComputed(() => troubleOf(entry, store)).value
  const crashed = isCrashed(app) && !isAway
  const told = [trouble && S.events[trouble], crashed ? app.crash_message : null]
  const said = isAway ? (lastState(app) ?? '') : told.filter((text) => text != null && text !== '').join(': ')
  return (
    <tr
      class={`app${crashed ? ' crashed' : ''}${isAway ? ' away' : ''}${isSelected ? ' selected' : ''}`}
      aria-rowindex={place + 1}
    >
      <td class="c-select">
        <input
          type="checkbox"
          aria-label={S.apps.select(name)}
          checked={isSelected}
          onChange={() => toggleSelected(entry.topic)}
        />
      </td>
      <td class="c-name">
        <AppIcon entry={entry} name={name} />
        <div>
          <a href={hrefOf({ at: 'app', hub: entry.hub, app: entry.id })} title={name}>
            {name}
          </a>
          <Below entry={entry} />
        </div>
      </td>
      <td class="c-version">
        <span>{app.version ?? S.unknown}</span>
        <UpdateBadge app={app} />
      </td>
      <td class="c-state">
        <StateBadge entry={entry} store={store} />
        {said !== '' && (
          <small class={isAway ? 'message seen' : 'message'} title={said}>
            {said}
          </small>
        )}
      </td>
      <td class="c-enabled">
        <EnabledSwitch entry={entry} app={app} door={door} name={name} />
      </td>
      <Usage entry={entry} figure="cpu" text={app.cpu_percent === null ? undefined : formatPercent(app.cpu_percent)} />
      <Usage
        entry={entry}
        figure="memory"
        text={app.memory_bytes === null ? undefined : formatBytes(app.memory_bytes)}
      />
      <td class="c-actions">
        <RowActions entry={entry} door={door} name={name} />
      </td>
    </tr>
  )
}

/** The id, or what a command does or did. */
function Below({ entry }: { readonly entry: AppEntry }) {
  const running = entry.running.value
  const outcome = entry.outcome.value
  if (running !== undefined) {
    return (
      <small class="progress">
        <span class="spinner" aria-hidden="true" /> {S.outcome.running(S.commands[running.command] ?? running.command)}
      </small>
    )
  }
  if (outcome !== undefined) {
    return (
      <small class={outcome.ok ? 'ended' : 'ended bad'} title={outcome.text}>
        {outcome.text}
      </small>
    )
  }
  return <small class="id">{entry.id}</small>
}

interface PartProps {
  readonly entry: AppEntry
  readonly door: Door
  readonly name: string
}

function EnabledSwitch({ entry, app, door, name }: PartProps & { readonly app: App }) {
  const on = app.enabled === true
  const command = on ? 'disable' : 'enable'
  const refused = refusal(door, { hub: entry.hub, app: entry.id }, command)
  return (
    <Switch
      on={on}
      label={S.apps.enabledOf(name)}
      disabled={refused !== undefined || entry.running.value !== undefined}
      title={refused}
      flip={() => void confirmAndDo(entry, command)}
    />
  )
}

function Usage({ entry, figure, text }: { entry: AppEntry; figure: Figure; text: string | undefined }) {
  return (
    <td class={`c-${figure}`}>
      {text === undefined ? (
        <span class="none">{S.none}</span>
      ) : (
        <>
          <span class="figure">{text}</span>
          <Spark samples={entry.samples} figure={figure} width={64} height={22} />
        </>
      )}
    </td>
  )
}

function RowActions({ entry, door, name }: PartProps) {
  const isDisabled = entry.app.value.enabled === false
  const refused = isDisabled ? S.refused.disabled : refusal(door, { hub: entry.hub, app: entry.id }, 'restart')
  const busy = entry.running.value !== undefined
  const label = S.apps.restart(name)
  return (
    <>
      <button
        type="button"
        class="icon"
        aria-label={refused === undefined ? label : `${label} (${refused})`}
        title={refused ?? S.commands['restart']}
        aria-disabled={busy || refused !== undefined}
        onClick={() => {
          if (!busy && refused === undefined) void confirmAndDo(entry, 'restart')
        }}
      >
        <Glyph name="restart" />
      </button>
      <button
        type="button"
        class="icon"
        aria-label={S.apps.more(name)}
        aria-haspopup="menu"
        onClick={({ currentTarget }) => openMenu(currentTarget, name, menuOf(entry, door))}
      >
        <Glyph name="more" />
      </button>
    </>
  )
}
