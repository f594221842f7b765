/** What things are called where people see them. */

const MAX_SLUG = 64

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
