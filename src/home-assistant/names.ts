/** The names that people see. */
import { tidy } from '../base/text.ts'

const MAX_NAME = 100

/** `summer-house` → `Summer house hub`. */
export function hubName(configured: string): string {
  const words = humanise(configured)
  return /\bhub$/i.test(words) ? words : `${words} hub`
}

/** `Philips Hue (Summer house)`, if other hubs may have the same app. */
export function appName(app: string, hub: string): string {
  const suffix = ` (${humanise(hub)})`
  return `${tidy(app, MAX_NAME - suffix.length)}${suffix}`
}

/** `night_mode`, `nightMode` → `Night mode`. */
export function humanise(key: string): string {
  const words = key
    .replace(/([a-z0-9])([A-Z])/g, (_, end: string, start: string) => `${end} ${start.toLowerCase()}`)
    .replace(/[_-]+/g, ' ')
    .trim()
  return words === '' ? key : words.charAt(0).toUpperCase() + words.slice(1)
}
