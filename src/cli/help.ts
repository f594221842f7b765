import { columns } from '../base/text.ts'
import { type Command, exitCodes, type Flag } from './command.ts'
import { type CommandName, commands } from './commands.ts'

const section = (title: string, rows: readonly (readonly [string, string])[]): string =>
  [`${title}:`, ...columns(rows.map(([left, right]) => [`  ${left}`, right]))].join('\n')

/** Returns the usage of a flag, such as `--port N`. */
export function flagUsage(name: string, { value }: Flag): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`
}

export function flagText({ doc, default: fallback, multiple }: Flag): string {
  const notes = [fallback === undefined ? '' : `default ${fallback}`, multiple ? 'may be repeated' : '']
  const noted = notes.filter((note) => note !== '').join('; ')
  return noted === '' ? doc : `${doc} (${noted})`
}

/** Returns the usage of a command, such as `hub2mqtt call <topic> [payload]`. */
export function commandUsage(name: string, { positionals }: Pick<Command, 'positionals'>): string {
  const words = Object.entries(positionals).map(([word, { optional }]) => (optional ? `[${word}]` : `<${word}>`))
  return ['hub2mqtt', name, ...words].join(' ')
}

const exits = Object.values(exitCodes).map(({ code, doc }) => [String(code), doc] as const)
const EXIT_CODES = section('Exit codes', exits)
const COMMON: readonly (readonly [string, string])[] = [['--help', 'this text']]

export function commandHelp(name: CommandName): string {
  const row = commands[name]
  const own = Object.entries(row.flags).map(([flag, one]) => [flagUsage(flag, one), flagText(one)] as const)
  const places = Object.entries(row.positionals).map(([word, { doc }]) => [word, doc] as const)
  return [
    `${commandUsage(name, row)} [options]: ${row.summary}`,
    ...(places.length === 0 ? [] : [section('Arguments', places)]),
    section('Options', [...own, ...COMMON]),
    EXIT_CODES,
  ].join('\n\n')
}

export function programHelp(defaultCommand: CommandName): string {
  const rows = Object.entries(commands).map(
    ([name, { summary }]) => [name, name === defaultCommand ? `${summary} (default)` : summary] as const,
  )
  return [
    'hub2mqtt [command] [options]: the apps of a home hub on MQTT',
    section('Commands', rows),
    section('Options', [...COMMON, ['--version', 'print the version']]),
    'hub2mqtt <command> --help lists the options of a command.',
    EXIT_CODES,
  ].join('\n\n')
}
