/** Light, dark, or as the system is. */
import { effect, signal } from '@preact/signals'
import { store, stored } from './storage.ts'

const THEMES = ['auto', 'light', 'dark'] as const

const kept = stored('localStorage', 'theme')
export const theme = signal(THEMES.find((one) => one === kept) ?? 'auto')

effect(() => {
  document.documentElement.dataset['theme'] = theme.value
  store('localStorage', 'theme', theme.value)
})

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'auto'
}
