import { signal } from '@preact/signals'
import { openMenu, toast } from './parts/overlays.tsx'
import { store, stored } from './preferences.ts'
import { defineStrings, language, type Texts } from './terms.ts'

const text = defineStrings('languages', {
  choice: 'Language: {name}',
  title: 'Language',
  ofBrowser: 'as the browser ({name})',
  failed: 'The texts of this language could not be loaded.',
})

interface Language {
  /** The name of the language in that language, such as `Deutsch`. */
  readonly name: string
  readonly load: () => Promise<{ readonly default: Texts }>
}

const ENGLISH: Language = { name: 'English', load: () => Promise.resolve({ default: {} }) }
/** To add a language, add a file with its texts and a row to this table. */
const LANGUAGES: ReadonlyMap<string, Language> = new Map([
  ['en', ENGLISH],
  ['nl', { name: 'Nederlands', load: () => import('./languages/nl.json', { with: { type: 'json' } }) }],
  ['de', { name: 'Deutsch', load: () => import('./languages/de.json', { with: { type: 'json' } }) }],
])

/** The choice that selects the first of the browser's languages that the page supports. */
const BROWSER = 'browser'
const CHOICES: readonly string[] = [BROWSER, ...LANGUAGES.keys()]
const storedLanguage = stored('localStorage', 'language')
const choice = signal(CHOICES.find((one) => one === storedLanguage) ?? BROWSER)

function codeOf(one: string): string {
  const wanted = one === BROWSER ? navigator.languages.map((tag) => tag.split('-')[0] ?? '') : [one]
  return wanted.find((code) => LANGUAGES.has(code)) ?? 'en'
}

const languageOf = (one: string) => LANGUAGES.get(codeOf(one)) ?? ENGLISH

function choiceName(one: string): string {
  const { name } = languageOf(one)
  return one === BROWSER ? text.ofBrowser({ name }) : name
}

export const choiceLabel = () => text.choice({ name: choiceName(choice.value) })

/** Loads and shows the chosen language. If the texts cannot be loaded, the page keeps its current language. */
export async function showLanguage(): Promise<boolean> {
  const code = codeOf(choice.peek())
  const loaded = await languageOf(code)
    .load()
    .catch(() => undefined)
  const texts = loaded?.default
  // Check the choice again: the user may have chosen a different language while the texts were loading.
  if (texts !== undefined && code === codeOf(choice.peek())) {
    language.value = { code, texts }
    document.documentElement.lang = code
  }
  return texts !== undefined
}

async function choose(next: string): Promise<void> {
  choice.value = next
  store('localStorage', 'language', next)
  if (!(await showLanguage())) toast(false, text.failed)
}

export function openChoices(opener: HTMLElement): void {
  const items = CHOICES.map((one) => ({
    label: choiceName(one),
    glyph: 'check' as const,
    checked: one === choice.value,
    act: () => void choose(one),
  }))
  openMenu(opener, text.title, items)
}
