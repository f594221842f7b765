/** The table of the command line. */
import { exitCodes } from '../../cli/command.ts'
import { commands } from '../../cli/commands.ts'
import { commandUsage, flagText, flagUsage } from '../../cli/help.ts'
import { code, markdownTable } from './markdown.ts'

export function cliSection(): string {
  const rows = Object.entries(commands).map(([name, row]) => {
    const options = Object.entries(row.flags).map(([flag, one]) => `${code(flagUsage(flag, one))}: ${flagText(one)}`)
    return [code(commandUsage(name, row)), row.summary, options.join('<br>')]
  })
  const exits = Object.values(exitCodes).map(({ code: number, doc }) => `${code(String(number))} ${doc}`)
  return [markdownTable(['Command', 'What it does', 'Options'], rows), `Exit codes: ${exits.join('; ')}.`].join('\n\n')
}
