/** Light, dark, or as the system is. */
import { effect, signal } from '@preact/signals'

export const THEMES = ['auto', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const KEY = 'hub2mqtt.theme'

export const theme = signal<Theme>(stored())

effect(() => {
  document.documentElement.dataset['theme'] = theme.value
  try {
    if (theme.peek() === 'auto') localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, theme.value)
  } catch {
    // A browser may keep nothing.
  }
})

function stored(): Theme {
  try {
    return THEMES.find((one) => one === localStorage.getItem(KEY)) ?? 'auto'
  } catch {
    return 'auto'
  }
}

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'auto'
}
