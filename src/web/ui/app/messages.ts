/** Translates frequent messages of hub2mqtt. All other messages are shown in English. */
import { ERROR_CODES } from '../../../contract/errors.ts'
import { defineStrings, textFor } from './strings.ts'

const text = defineStrings('messages', {
  denied: 'commands.deny names {key}.',
  readOnly: 'commands.read_only is set.',
  off: 'It is off until commands.allow names {key}.',
  guardianOff: 'The guardian is off until guard.watch names an app.',
  deniedSame: 'commands.deny names a command that does the same.',
  lacks: 'The API key lacks {scope}.',
  errors: ERROR_CODES,
})

/** The text before and after the value in each message, if the message has a value. */
const SENTENCES: readonly (readonly [before: string, after: string, write: (value: string) => string])[] = [
  ['commands.deny names ', '.', (key) => text.denied({ key })],
  ['commands.read_only is set.', '', () => text.readOnly],
  ['It is off until commands.allow names ', '.', (key) => text.off({ key })],
  ['The guardian is off until guard.watch names an app.', '', () => text.guardianOff],
  ['commands.deny names a command that does the same.', '', () => text.deniedSame],
  ['The API key lacks ', '.', (scope) => text.lacks({ scope })],
]

export function inLanguage(message: string): string {
  for (const [before, after, write] of SENTENCES) {
    const value = message.slice(before.length, message.length - after.length)
    if (message === before + value + after && !value.includes(' ')) return write(value)
  }
  const [code] = Object.entries(ERROR_CODES).find(([, said]) => said === message) ?? []
  return code === undefined ? message : textFor(text.errors, code)
}
