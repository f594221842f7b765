import { iconUrl } from '../api.ts'
import type { AppEntry } from '../live/store.ts'

export const PATHS = {
  apps: 'M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z',
  activity: 'M3 12h4l3-8 4 16 3-8h4',
  bridge: 'M3 18h18M5 18v-5a7 7 0 0 1 14 0v5M9 18v-4M15 18v-4',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l4.5 4.5',
  restart: 'M20 11a8 8 0 1 0-2.3 6.3M20 4v7h-7',
  update: 'M12 3v12M7 10l5 5 5-5M5 20h14',
  more: 'M12 5a.7.7 0 1 0 .01 0zM12 11.3a.7.7 0 1 0 .01 0zM12 17.6a.7.7 0 1 0 .01 0z',
  power: 'M12 3v9M6.3 7a8 8 0 1 0 11.4 0',
  broom: 'M13 3l-2 8M7 12h9l1.5 8H5.5zM9 20l.5-4M14 20l-.5-4',
  trash: 'M4 7h16M9 7V4h6v3M6.5 7l1 13h9l1-13M10 11v6M14 11v6',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  auto: 'M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18',
  light:
    'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2M12 20v2M4.9 4.900l1.4 1.400M17.7 17.700l1.4 1.400M2 12h2M20 12h2M4.9 19.100l1.4-1.400M17.7 6.300l1.4-1.4',
  dark: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z',
  language: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3.500 5 3.500 13 0 18M12 3c-3.500 5-3.500 13 0 18',
  logout: 'M14 4h5v16h-5M4 12h10M10 8l4 4-4 4',
  close: 'M6 6l12 12M18 6L6 18',
  back: 'M15 5l-7 7 7 7',
  check: 'M5 13l4 4L19 7',
  alert: 'M12 4l9.5 16h-19zM12 10v4.5M12 17v.01',
  eye: 'M2 12s3.5-7 10-7 10 7 10 7-3.5 7-10 7-10-7-10-7zM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6z',
  edit: 'M4 20h4L19.500 8.500l-4-4L4 16zM13 7l4 4',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 5l12 7-12 7z',
  shield: 'M12 3l7.5 3v5.5c0 5-3.5 8-7.5 9.5-4-1.5-7.5-4.5-7.5-9.5V6z',
  clock: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3.5 2',
  hub: 'M4 11l8-7 8 7M6 9.5V20h12V9.5M12 15v.01',
} as const

export type GlyphName = keyof typeof PATHS

/** A small symbol. It is hidden from screen readers, because the text or label beside it has the same meaning. */
export function Glyph({ name, size = 18 }: { readonly name: GlyphName; readonly size?: number }) {
  return (
    <svg class="glyph" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}

/** Shows the icon from the hub, or the initial of the app on a colour derived from the app's id. */
export function AppIcon({ entry, name, size = 32 }: { entry: AppEntry; name: string; size?: number }) {
  const { hub, id, icon: state } = entry
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
