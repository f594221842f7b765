import { parseArgs } from 'node:util'
import { UsageError } from '../base/errors.ts'
import { didYouMean } from '../base/nearest.ts'
import type { Command, Flag } from './command.ts'
import { type CommandName, commands } from './commands.ts'
import { commandHelp, programHelp } from './help.ts'

type CommandLine =
  | ({ readonly command: CommandName } & Pick<Command, 'lasts'> & ReturnType<Command['read']>)
  | { readonly command: 'help'; readonly text: string }
  | { readonly command: 'version' }

const DEFAULT: CommandName = 'run'

const names = Object.keys(commands)
const firstNames = names.filter((name) => !name.includes(' '))
const isCommand = (name: string): name is CommandName => Object.hasOwn(commands, name)

/** Quotes a string for an error message. Hides long strings and those with `=`, because they may contain a key. */
const shown = (text: string): string => (text.length <= 40 && !text.includes('=') ? ` ${JSON.stringify(text)}` : '')

function explain(error: unknown, name: CommandName): string {
  const { code, message } = error instanceof Error && 'code' in error ? error : { code: '', message: String(error) }
  const hint = `see hub2mqtt ${name} --help`
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const option = /'(-[^']*)'/.exec(message)?.[1] ?? ''
    if (Number(option) < 0) return `unknown option${shown(option)}; put -- before a negative number`
    const known = Object.keys(commands[name].flags).map((flag) => `--${flag}`)
    return `unknown option${shown(option)}${didYouMean(option, known) || `; ${hint}`}`
  }
  if (code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL') {
    const word = /'(.*?)'/s.exec(message)?.[1] ?? ''
    const meant = didYouMean(`${name} ${word}`, longerNames(name), `${name} `)
    return `unexpected argument${shown(word)}${meant || `; the command comes first, ${hint}`}`
  }
  const option = /'(--[a-z-]+)' argument is ambiguous/.exec(message)?.[1]
  if (option !== undefined)
    return `the value of ${option} is ambiguous because it begins with a dash: write ${option}=…; ${hint}`
  return `${message.split(/\.?\n/)[0]}; ${hint}`
}

/** Returns `name` with the next word of each longer command name. Example: `emulate` → `emulate keys`. */
function longerNames(name: string): string[] {
  const count = name.split(' ').length + 1
  const longer = names.filter((other) => other.startsWith(`${name} `))
  return [...new Set(longer.map((other) => other.split(' ').slice(0, count).join(' ')))]
}

function argumentsOf(name: CommandName, args: readonly string[]) {
  const { flags, positionals } = commands[name]
  const typeOf = ({ value }: Flag) => (value === undefined ? 'boolean' : 'string')
  const options = Object.entries(flags).map(([flag, row]) => [flag, { type: typeOf(row), multiple: true }] as const)
  const allowPositionals = Object.keys(positionals).length > 0
  try {
    return parseArgs({ args: [...args], options: Object.fromEntries(options), allowPositionals })
  } catch (error) {
    throw new UsageError(explain(error, name), { cause: error })
  }
}

function textsIn(name: CommandName, args: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const { flags, positionals } = commands[name]
  const places = Object.entries(positionals)
  const { values, positionals: words } = argumentsOf(name, args)
  const texts = new Map(Object.entries(values).map(([flag, all]) => [flag, [all ?? []].flat().map(String)]))
  for (const [flag, all] of texts) {
    if (all.length > 1 && !flags[flag]?.multiple) throw new UsageError(`--${flag} is given twice; expected once`)
    if (all.includes('')) throw new UsageError(`--${flag} needs a value after it`)
  }
  const [missing, { optional } = {}] = places[words.length] ?? []
  if (missing !== undefined && !optional) throw new UsageError(`${missing} is missing; see hub2mqtt ${name} --help`)
  // Do not quote the argument in the message, because it may be part of a payload.
  const hint = 'payload' in positionals ? 'put a payload in quotes' : `see hub2mqtt ${name} --help`
  if (words.length > places.length) throw new UsageError(`too many arguments; ${hint}`)
  for (const [at, word] of words.entries()) texts.set(places[at]?.[0] ?? '', [word])
  return texts
}

/** Parses the arguments of the program. @throws UsageError with one line for the user */
export function parseCommandLine(argv: readonly string[]): CommandLine {
  const [first] = argv
  const named = first !== undefined && !first.startsWith('-')
  // Help takes precedence over errors on the same command line. After `--`, there are only arguments.
  const options = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv
  const wantsHelp = options.includes('--help') || options.includes('-h')
  const found = named ? commandIn(argv) : { name: DEFAULT, next: [] }
  const words = named ? found.name.split(' ').length : 0
  if (!isCommand(found.name)) {
    if (wantsHelp) return { command: 'help', text: programHelp(DEFAULT) }
    const { name, next } = found
    throw new UsageError(`${name}: expected one of ${next.join(', ')} to follow${didYouMean(argv[words] ?? '', next)}`)
  }
  const { name } = found
  const args = argv.slice(words)
  if (wantsHelp) return { command: 'help', text: named ? commandHelp(name) : programHelp(DEFAULT) }
  if (!named && args.includes('--version')) {
    if (args.length > 1) throw new UsageError('--version takes no other arguments')
    return { command: 'version' }
  }
  const { lasts, read } = commands[name]
  return { command: name, lasts, ...read(textsIn(name, args)) }
}

/** Finds the named command. `next`: the words that may follow if only the beginning of a name was given. */
function commandIn(argv: readonly string[]): { readonly name: string; readonly next: readonly string[] } {
  for (let count = argv.length; count > 0; count--) {
    const name = argv.slice(0, count).join(' ')
    const next = isCommand(name) ? [] : longerNames(name).map((other) => other.slice(name.length + 1))
    if (isCommand(name) || next.length > 0) return { name, next }
  }
  const [first = ''] = argv
  throw new UsageError(
    `unknown command${shown(first)}${didYouMean(first, firstNames) || `; the commands are ${firstNames.join(', ')}`}`,
  )
}
