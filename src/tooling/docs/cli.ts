/** The tables of the command line, and of what conformance expects of hubs. */
import { exitCodes } from '../../cli/command.ts'
import { commands } from '../../cli/commands.ts'
import { EXPECTATIONS } from '../../cli/conformance/expectations.ts'
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

export function expectationsSection(): string {
  return markdownTable(
    ['Id', 'Mark', 'What is expected', 'Of which hubs'],
    EXPECTATIONS.map(({ id, mark, says, only }) => [code(id), mark, says, only?.map(code).join(', ') ?? 'all']),
  )
}
