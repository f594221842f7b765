/** The command line's part of the README. */
import { commands, exitCodes, type Flag } from '../cli/commands.ts'
import { flagText, flagUsage } from '../cli/help.ts'
import { code, markdownTable } from './markdown.ts'

export function cliSection(): string {
  const rows = Object.entries(commands).map(([name, { summary, flags }]) => {
    const options = Object.entries<Flag>(flags).map(([flag, row]) => `${code(flagUsage(flag, row))}: ${flagText(row)}`)
    return [code(`hub2mqtt ${name}`), summary, options.join('<br>')]
  })
  const exits = Object.values(exitCodes).map(({ code: number, doc }) => `${code(String(number))} ${doc}`)
  return [markdownTable(['Command', 'What it does', 'Options'], rows), `Exit codes: ${exits.join('; ')}.`].join('\n\n')
}
