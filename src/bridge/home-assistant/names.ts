/** What things are called where people see them. */

const MAX_NAME = 100
const MAX_SLUG = 64

/** One line of text, at most so long that Home Assistant shows it; `undefined` if nothing is left. */
export function tidy(text: string | null | undefined, max = MAX_NAME): string | undefined {
  if (text === null || text === undefined) return undefined
  const line = text
    .toWellFormed()
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
  const cut = [...line].slice(0, max).join('')
  return cut === '' ? undefined : cut
}

/** The name as part of an entity id. */
export function slug(text: string): string {
  const plain = text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
  return plain
    .replace(/[^a-z0-9]+/g, '_')
    .slice(0, MAX_SLUG)
    .replace(/^_+|_+$/g, '')
}

/** `summer-house` → `Summer house hub`. */
export function hubName(configured: string): string {
  const words = humanise(configured)
  return /\bhub$/i.test(words) ? words : `${words} hub`
}

/** `night_mode`, `nightMode` → `Night mode`. */
export function humanise(key: string): string {
  const words = key
    .replace(/([a-z0-9])([A-Z])/g, (_, end: string, start: string) => `${end} ${start.toLowerCase()}`)
    .replace(/[_-]+/g, ' ')
    .trim()
  return words === '' ? key : words.charAt(0).toUpperCase() + words.slice(1)
}
