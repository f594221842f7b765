/**
 * The texts of the page. Each part defines its English texts as plain data beside its code; a translation is a table
 * with the same keys. `{name}` is a placeholder, and `{count}` selects the plural form.
 */
import { computed, signal } from '@preact/signals'

type Value = string | number
/** The forms of a text by the categories of `Intl.PluralRules`; `other` is the default. */
type Plural = { readonly [Category in Intl.LDMLPluralRule]?: string } & { readonly other: string }
export type Text = string | Plural
interface Strings {
  readonly [key: string]: Text | Strings
}

type NamesIn<T extends string> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never
type Fill<Name extends string> = (values: { readonly [N in Name]: N extends 'count' ? number : Value }) => string
/** The texts of a language by their full names, such as `apps.filters.all`. */
export type Texts = Readonly<Record<string, Text>>
/** A text, a function if it has placeholders, or a group of texts. */
type Filled<T> = T extends string
  ? [NamesIn<T>] extends [never]
    ? string
    : Fill<NamesIn<T>>
  : T extends { readonly other: infer Other extends string }
    ? Fill<NamesIn<Other> | 'count'>
    : { readonly [Key in keyof T]: Filled<T[Key]> }

/** The current language. Missing texts are shown in English. */
export const language = signal<{ readonly code: string; readonly texts: Texts }>({ code: 'en', texts: {} })
const plurals = computed(() => new Intl.PluralRules(language.value.code))

/** The locale for numbers and times: the browser's variant of the language, such as `en-GB`, or the language itself. */
export const locale = computed(() => {
  const { code } = language.value
  const isOf = (tag: string) => tag === code || (tag.startsWith(`${code}-`) && /^[a-z\d-]+$/i.test(tag))
  return navigator.languages.find(isOf) ?? code
})

/** @param part the part of the page, which is the first level of the keys */
export function defineStrings<const T extends Strings>(part: string, english: T): Filled<T>
export function defineStrings(part: string, english: Strings): unknown {
  const texts = {}
  for (const [key, text] of Object.entries(english)) {
    const path = `${part}.${key}`
    Object.defineProperty(texts, key, {
      enumerable: true,
      ...(isText(text) ? reader(path, text) : { value: defineStrings(path, text) }),
    })
  }
  return texts
}

function reader(path: string, english: Text): PropertyDescriptor {
  const now = () => language.value.texts[path] ?? english
  const isPlain = typeof english === 'string' && !english.includes('{')
  return isPlain ? { get: now } : { value: (values: Readonly<Record<string, Value>>) => fill(now(), values) }
}

function fill(text: Text, values: Readonly<Record<string, Value>>): string {
  const form = typeof text === 'string' ? text : (text[plurals.value.select(Number(values['count']))] ?? text.other)
  return form.replace(/\{(\w+)\}/g, (_, name: string) => shown(values[name] ?? ''))
}

const shown = (value: Value) => (typeof value === 'number' ? value.toLocaleString(locale.value) : value)

const isText = (text: Text | Strings): text is Text => typeof text === 'string' || typeof text['other'] === 'string'

/** The text for a code of the interface; a code without a text is shown unchanged. */
export function textFor(texts: Readonly<Record<string, string>>, code: string): string {
  return (Object.hasOwn(texts, code) ? texts[code] : undefined) ?? code
}
