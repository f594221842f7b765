import { afterEach, expect, test } from 'vitest'
import { ERROR_CODES } from '../../../src/contract/errors.ts'
import { type CommandPolicy, refusalsOf } from '../../../src/contract/permissions.ts'
import { inLanguage, language } from '../../../src/web/ui/app/terms.ts'
import { english } from '../../support/page-texts.ts'

afterEach(() => {
  language.value = { code: 'en', texts: {} }
})

const policy: CommandPolicy = { allow: [], deny: [], read_only: false, guarded: true }
const permits = (answer: 'yes' | 'forbidden' | 'unsupported') => ({ permits: () => answer })
/** Every reason why a command is not possible for a hub, and the explanation of each error code. */
const refusals = new Set(
  [
    refusalsOf(permits('yes'), { ...policy, guarded: false }),
    refusalsOf(permits('yes'), { ...policy, read_only: true }),
    refusalsOf(permits('yes'), { ...policy, deny: ['install'] }),
    refusalsOf(permits('yes'), { ...policy, deny: ['get', 'enable', 'enabled'] }),
    refusalsOf(permits('forbidden'), policy),
    refusalsOf(permits('unsupported'), policy),
    ERROR_CODES,
  ].flatMap((reasons) => Object.values(reasons)),
)

test('the reason why a command is not possible is shown in the language of the page, and unchanged in English', () => {
  expect(refusals.size).toBeGreaterThan(6)
  for (const refusal of refusals) expect(inLanguage(refusal)).toBe(refusal)
  const marked = english.flatMap(([key, text]) => (typeof text === 'string' ? [[key, `⟦${text}⟧`] as const] : []))
  language.value = { code: 'nl', texts: Object.fromEntries(marked) }
  for (const refusal of refusals) expect(inLanguage(refusal)).toBe(`⟦${refusal}⟧`)
})

test('an unknown sentence is shown unchanged', () => {
  language.value = { code: 'nl', texts: { 'messages.readOnly': 'commands.read_only is ingesteld.' } }
  expect(inLanguage('commands.read_only is set.')).toBe('commands.read_only is ingesteld.')
  expect(inLanguage('The hub cannot be reached: EHOSTUNREACH.')).toBe('The hub cannot be reached: EHOSTUNREACH.')
})
