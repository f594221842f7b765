/** What configuration allows: which commands, and which apps. */
import type { Hub } from '../hub/hub.ts'
import { COMMANDS, type Command } from './commands.ts'

/** How configuration names a command: an app's by its name alone, others with what they are for (`hub/install`). */
export function commandKey({ target, name }: Command): string {
  return target === 'app' ? name : `${target}/${name}`
}

/** Everything that `commands.allow` and `commands.deny` may hold besides `*`; a bare name means all commands of that name. */
export const COMMAND_SELECTORS: readonly string[] = [
  ...new Set(COMMANDS.flatMap((command) => [commandKey(command), command.name])),
]

export interface CommandPolicy {
  readonly allow: readonly string[]
  readonly deny: readonly string[]
  readonly read_only: boolean
}

/** Whether a command may be used: refusals first, then what is off by default unless it is allowed by name. */
export function mayUse({ allow, deny, read_only }: CommandPolicy, command: Command): boolean {
  const named = (selectors: readonly string[]) =>
    selectors.some((selector) => selector === '*' || selector === command.name || selector === commandKey(command))
  if (named(deny) || command.means?.some((name) => deny.includes(name))) return false
  if (command.target === 'bridge') return true
  if (read_only && command.write) return false
  return command.allowed !== false || named(allow)
}

/** Names of the commands that configuration, key and hub permit. */
export function availableCommands(hub: Pick<Hub, 'permits'>, policy: CommandPolicy): string[] {
  const names = COMMANDS.filter(
    (command) => command.target !== 'bridge' && mayUse(policy, command) && hub.permits(command.operation) === 'yes',
  ).map(({ name }) => name)
  return [...new Set(names)]
}

/** Whether an app is to be seen, by patterns in which `*` stands for any characters and `?` for one. */
export function appFilter(include: readonly string[], exclude: readonly string[]): (id: string) => boolean {
  const included = include.map(pattern)
  const excluded = exclude.map(pattern)
  return (id) => included.some((one) => one.test(id)) && !excluded.some((one) => one.test(id))
}

function pattern(glob: string): RegExp {
  const source = glob.replace(/[.*+?^${}()|[\]\\]/g, (char) => (char === '*' ? '.*' : char === '?' ? '.' : `\\${char}`))
  return new RegExp(`^${source}$`, 'su')
}
