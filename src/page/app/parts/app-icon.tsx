/** The hub's picture of an app, or its initial on a colour that follows from its id. */
import { signal } from '@preact/signals'
import { iconUrl } from '../api.ts'
import type { AppEntry } from '../live/entries.ts'

/** Apps without a picture: asked once. */
const without = signal<ReadonlySet<string>>(new Set())

export function AppIcon({ entry, name, size = 32 }: { entry: AppEntry; name: string; size?: number }) {
  const { hub, id, topic } = entry
  const missing = without.value.has(topic)
  const hue = [...id].reduce((sum, char) => (sum * 31 + (char.codePointAt(0) ?? 0)) % 360, 7)
  return (
    <span class="app-icon" aria-hidden="true" style={{ width: `${size}px`, height: `${size}px`, '--hue': `${hue}` }}>
      {missing ? (
        <span class="initial">{[...name][0]?.toUpperCase() ?? '?'}</span>
      ) : (
        <img
          src={iconUrl(hub, id)}
          alt=""
          width={size}
          height={size}
          loading="lazy"
          decoding="async"
          onError={() => {
            without.value = new Set([...without.value, topic])
          }}
        />
      )}
    </span>
  )
}
