/** The hub's picture of an app, or its initial on a colour that follows from its id. */
import { type Signal, signal } from '@preact/signals'
import { iconUrl } from '../api.ts'
import type { AppEntry } from '../live/entries.ts'

/** Topic of an app → what is known of its picture, so that it is asked for once. */
const known = new Map<string, Signal<'asked' | 'shown' | 'none'>>()

function stateOf(topic: string) {
  const state = known.get(topic) ?? signal('asked')
  known.set(topic, state)
  return state
}

export function AppIcon({ entry, name, size = 32 }: { entry: AppEntry; name: string; size?: number }) {
  const { hub, id, topic } = entry
  const state = stateOf(topic)
  const hue = [...id].reduce((sum, char) => (sum * 31 + (char.codePointAt(0) ?? 0)) % 360, 7)
  return (
    <span
      class={`app-icon ${state.value}`}
      aria-hidden="true"
      style={{ width: `${size}px`, height: `${size}px`, '--hue': `${hue}` }}
    >
      {state.value !== 'shown' && <span class="initial">{[...name][0]?.toUpperCase() ?? '?'}</span>}
      {state.value !== 'none' && (
        <img
          src={iconUrl(hub, id)}
          alt=""
          width={size}
          height={size}
          loading="lazy"
          decoding="async"
          onLoad={() => {
            state.value = 'shown'
          }}
          onError={() => {
            state.value = 'none'
          }}
        />
      )}
    </span>
  )
}
