/** Finds texts that the page does not take from its translation. */
import type { BrowserContext, Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { LOG_LEVELS } from '../../../src/contract/log-levels.ts'
import { DEFAULT_APPS } from '../../../src/emulator/population.ts'
import { english } from '../../support/page-texts.ts'
import { profile } from './browser.ts'

/** Serves the English texts in brackets instead of the Dutch texts. */
export async function marked(): Promise<BrowserContext> {
  const mark = (text: string) => `⟦${text}⟧`
  const texts = english.map(([key, text]) => {
    if (typeof text === 'string') return [key, mark(text)]
    return [key, { one: mark(text.one ?? text.other), other: mark(text.other) }]
  })
  const body = `export default ${JSON.stringify(Object.fromEntries(texts))}`
  const context = await profile({ locale: 'nl' })
  onTestFinished(() => context.close())
  await context.route('**/assets/nl-*.js', (route) => route.fulfill({ contentType: 'text/javascript', body }))
  return context
}

/** Collects all text that is visible or read aloud, except code, times, and text that is marked as English. */
const SHOWN = `(() => {
  const found = [document.title]
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT)
  for (let node = walk.nextNode(); node !== null; node = walk.nextNode()) {
    const element = node instanceof Element ? node : node.parentElement
    const isData = element.closest('code, pre, kbd, time, bdi, textarea, script, .app-icon, body [lang=en]') !== null
    if (isData || !(element.closest('select') ?? element).checkVisibility()) continue
    if (node instanceof Text) found.push(node.data)
    else for (const name of ['title', 'placeholder', 'alt', 'aria-label', 'aria-valuetext', 'aria-description']) {
      found.push(node.getAttribute(name) ?? '')
    }
  }
  return found
})()`

export const STUCK = 'Error: the meter is stuck'
/** Texts that need no translation: names, addresses, key names, log levels, permissions and the hub's own messages. */
const DATA = [
  ...DEFAULT_APPS.flatMap(({ id, name, author, crashed }) =>
    [id, name, author, crashed].filter((one) => one !== undefined),
  ),
  ...['hub2mqtt', 'MQTT', 'http://192.168.1.20', 'English', 'Nederlands', 'Deutsch', 'true', 'false', 'Enter', 'Esc'],
  ...['attic', 'barn', 'cabin', 'garage', 'home', '127.0.0.1', 'homeassistant', 'stable', '1.0.0-beta.3'],
  ...['state', 'guardian', 'call', 'fleet', 'evidence', 'shard-1', 'shard-2'],
  ...['hub.app', 'hub.speech', 'hub.system.readonly'],
  ...LOG_LEVELS,
  STUCK,
  'The hub failed: 500, The hub answers 500.',
].toSorted((one, other) => other.length - one.length)
/** Matches numbers with their units in each language. */
const FIGURES = /[\d.,−+ \u00a0]+(kB|MB|GB|%|°C|ms|sec|uur|uren|minuten|minuut|seconden|dagen)(?!\p{L})/gu

/** Fails if any text is neither in brackets nor in `DATA`. */
export async function expectTranslated(page: Page): Promise<void> {
  const shown = await page.evaluate<string[]>(SHOWN)
  expect(shown.filter((text) => text.includes('⟦')).length).toBeGreaterThan(0)
  const left = shown.filter((text) => {
    let outside = text
    while (/⟦[^⟦⟧]*⟧/.test(outside)) outside = outside.replace(/⟦[^⟦⟧]*⟧/g, ' ')
    for (const one of DATA) outside = outside.replaceAll(one, ' ')
    return /\p{L}/u.test(outside.replace(FIGURES, ' '))
  })
  expect(left).toEqual([])
}
