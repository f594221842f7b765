/** What configuration allows: which commands, and which apps. */
import type { Hub } from '../hub/hub.ts'
import { type Act, COMMANDS, type Command } from './commands.ts'

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

/**
 * Whether a command may be used: refusals first, then what is off by default unless it is allowed by name. Who denies a
 * command denies what it does to all others. Without an input, whether there is any with which it may be used.
 */
export function mayUse({ allow, deny, read_only }: CommandPolicy, command: Command, input?: unknown): boolean {
  if (names(deny, command)) return false
  if (command.target === 'bridge') return true
  if (read_only && command.write) return false
  if (command.allowed === false && !names(allow, command)) return false
  const { acts = [], does = () => acts } = command
  const denied = deniedActs(deny)
  const isFree = (act: Act) => !denied.has(act)
  return does(input).every(isFree) && (acts.length === 0 || acts.some(isFree))
}

function names(selectors: readonly string[], command: Command): boolean {
  return selectors.some((one) => one === '*' || one === command.name || one === commandKey(command))
}

function deniedActs(deny: readonly string[]): ReadonlySet<Act> {
  if (deny.length === 0) return NO_ACTS
  const denied = COMMANDS.filter((command) => names(deny, command))
  return new Set(denied.flatMap((command) => (command.target === 'bridge' ? [] : (command.acts ?? []))))
}

const NO_ACTS: ReadonlySet<Act> = new Set()

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
