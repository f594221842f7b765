/** Frequent sentences of hub2mqtt, in the language of the page. All others are shown as they are, in English. */
import { ERROR_CODES, isErrorCode } from '../../../contract/errors.ts'
import { defineStrings } from './strings.ts'

const text = defineStrings('messages', {
  denied: 'commands.deny names {key}.',
  readOnly: 'commands.read_only is set.',
  off: 'It is off until commands.allow names {key}.',
  guardianOff: 'The guardian is off until guard.watch names an app.',
  deniedSame: 'commands.deny names a command that does the same.',
  lacks: 'The API key lacks {scope}.',
  /** Of the error codes. */
  errors: {
    invalid_payload: 'The payload is not what the command takes.',
    unknown_command: 'There is no such command.',
    unknown_hub: 'No hub of that name is configured.',
    unknown_app: 'The hub has no such app.',
    unknown_setting: 'The app has no such setting.',
    not_allowed: 'The configuration does not allow the command.',
    retained: 'The message was retained; it was cleared and not executed.',
    expired: 'The command came too late, waited too long, or its connection was lost.',
    busy: 'Too many commands wait for this app already.',
    unauthorized: 'The hub does not accept the API key.',
    forbidden: 'The API key lacks a permission.',
    unsupported: 'This hub has no such operation.',
    hub_unreachable: 'The hub is offline or did not answer.',
    outcome_unknown: 'The command was sent, but no answer says whether it was done. It may have been.',
  },
})

/** What is before and after the value of a sentence, if it has one. */
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
  const code = Object.keys(ERROR_CODES).find((one) => isErrorCode(one) && ERROR_CODES[one] === message)
  const errors: Readonly<Record<string, string>> = text.errors
  return (code === undefined ? undefined : errors[code]) ?? message
}
