import type { Endpoint, Section } from '../hub/endpoints.ts'
import type { Hub } from '../hub/hub.ts'
import { type Method, OPERATIONS } from '../hub/operations.ts'
import { capabilitiesOfCall } from './calls.ts'
import type { Capability, Command, HubCommand } from './command.ts'
import { COMMANDS, findCommand } from './commands.ts'
import { ERROR_CODES } from './errors.ts'
import type { RolloutCommand } from './rollout.ts'

/** Returns a command's name in the configuration, which includes the target (`hub/install`) except for app commands. */
export function commandKey({ target, name }: Command): string {
  return target === 'app' ? name : `${target}/${name}`
}

/** All values of `commands.allow` and `commands.deny` except `*`; a bare name selects all commands with that name. */
export const COMMAND_SELECTORS: readonly string[] = [
  ...new Set(COMMANDS.flatMap((command) => [commandKey(command), command.name])),
]

interface CallRule {
  /** The section to which the rule applies; default: any section. */
  readonly section?: Section | undefined
  /** A pattern: `*` matches any characters, `?` a single character. */
  readonly item: string
  readonly methods: readonly Method[]
}

export interface CommandPolicy {
  readonly allow: readonly string[]
  readonly deny: readonly string[]
  readonly read_only: boolean
  /** The endpoints that `hub/call` may reach. Default: none. */
  readonly call?: readonly CallRule[]
  /** Whether the guardian is on. Default: `false`. */
  readonly guarded?: boolean
}

export interface Rules {
  readonly commands: Omit<CommandPolicy, 'guarded'>
  readonly guard: { readonly watch: readonly string[] }
  readonly updates: { readonly policy: string }
}

export function isGuarded({ guard, updates }: Pick<Rules, 'guard' | 'updates'>): boolean {
  return guard.watch.length > 0 || updates.policy !== 'manual'
}

/** Cached policies, keyed by the rules of a configuration. A reload replaces the configuration. */
const policies = new WeakMap<Rules, CommandPolicy>()

export function policyOf(rules: Rules): CommandPolicy {
  const known = policies.get(rules)
  if (known !== undefined) return known
  const policy = { ...rules.commands, guarded: isGuarded(rules) }
  policies.set(rules, policy)
  return policy
}

/** If `input` is omitted, returns whether at least one input is permitted. `deny` and `read_only` override `allow`. */
export function mayUse(policy: CommandPolicy, command: Command, input?: unknown): boolean {
  return refusedBy(policy, command, input) === undefined
}

/** Cached refusals that do not depend on the input, keyed by policy. A reload replaces the policy. */
const refusals = new WeakMap<CommandPolicy, Map<Command, string | undefined>>()

/** Returns a sentence that names the option which refuses a command; `undefined` if the command is permitted. */
export function refusedBy(policy: CommandPolicy, command: Command, input?: unknown): string | undefined {
  const decides =
    command.target === 'bridge' ? command.sends : (command.reaches ?? command.capabilitiesOf ?? command.worksWithout)
  if (input !== undefined && decides !== undefined) return findRefusal(policy, command, input)
  const known = refusals.get(policy) ?? new Map<Command, string | undefined>()
  refusals.set(policy, known)
  if (!known.has(command)) known.set(command, findRefusal(policy, command, undefined))
  return known.get(command)
}

function findRefusal(policy: CommandPolicy, command: Command, input: unknown): string | undefined {
  const { allow, deny, read_only, guarded = false } = policy
  const isOfBridge = command.target === 'bridge'
  const key = commandKey(command)
  if (names(deny, command)) return `commands.deny names ${key}.`
  const endpoint = isOfBridge || input === undefined ? undefined : command.reaches?.(input)
  // Without an input, it is unknown whether the call only reads.
  const isWrite = isOfBridge || command.reaches === undefined ? command.write : endpoint && endpoint.method !== 'GET'
  if (read_only && isWrite) return 'commands.read_only is set.'
  if (command.allowed === false && !names(allow, command)) return `It is off until commands.allow names ${key}.`
  if (isOfBridge) return input === undefined ? undefined : refusalOfSent(policy, command.sends?.(input))
  const isNeeded = input === undefined || command.worksWithout?.(input) !== true
  if (command.needs === 'guard' && !guarded && isNeeded) return 'The guardian is off until guard.watch names an app.'
  if (endpoint !== undefined) return unreachable(policy, endpoint)
  const { capabilities = [], capabilitiesOf = () => capabilities } = command
  const denied = deniedCapabilities(deny)
  const isFree = (one: Capability) => !denied.has(one)
  if (capabilitiesOf(input).every(isFree) && (capabilities.length === 0 || capabilities.some(isFree))) return undefined
  return 'commands.deny names a command that does the same.'
}

/** Returns the refusal of the app command that a bridge command sends, because both must be permitted. */
function refusalOfSent(policy: CommandPolicy, name = ''): string | undefined {
  const sent = findCommand('app', name, false)
  return sent && refusedBy(policy, sent, {})
}

/** Like `refusedBy`, for rollouts of one command, or of any command. */
export function rolloutRefusal(policy: CommandPolicy, command?: RolloutCommand): string | undefined {
  const row = findCommand('bridge', 'rollout', false)
  return row && refusedBy(policy, row, command && { command })
}

/** Returns why a call must not reach an endpoint. A call may do no more than the commands with the same effect. */
function unreachable({ allow, deny, call = [] }: CommandPolicy, endpoint: Endpoint): string | undefined {
  const { section, item, method, operation } = endpoint
  const isNamed = (rule: CallRule) =>
    (rule.section ?? section) === section && rule.methods.includes(method) && fits(rule.item, item)
  if (!call.some(isNamed)) return `commands.call names no ${method} of this item.`
  for (const own of HUB_COMMANDS) {
    if (own.operation !== operation || own.needs !== undefined || own.fansOut) continue
    if (names(deny, own)) return `commands.deny names ${commandKey(own)}, which is the same.`
    if (own.allowed === false && !names(allow, own)) {
      return `It is off until commands.allow names ${commandKey(own)}, which is the same.`
    }
  }
  const denied = deniedCapabilities(deny)
  return capabilitiesOfCall(endpoint).some((one) => denied.has(one))
    ? 'commands.deny names a command that does the same.'
    : undefined
}

/** Returns whether the API key and the hub permit a command; `yes` if the command has no operation. */
export function permission(hub: Pick<Hub, 'permits'>, { operation }: HubCommand): ReturnType<Hub['permits']> {
  return operation === null ? 'yes' : hub.permits(operation)
}

export function lackOf({ operation }: Pick<HubCommand, 'operation'>): string {
  return `The API key lacks ${operation === null ? 'a permission' : OPERATIONS[operation].scope}.`
}

function names(selectors: readonly string[], command: Command): boolean {
  return selectors.some((one) => one === '*' || one === command.name || one === commandKey(command))
}

function deniedCapabilities(deny: readonly string[]): ReadonlySet<Capability> {
  return new Set(HUB_COMMANDS.flatMap((command) => (names(deny, command) ? (command.capabilities ?? []) : [])))
}

/** Returns why a hub cannot run a command, regardless of the command's input; `undefined` if the hub can run it. */
function refusedOn(hub: Pick<Hub, 'permits'>, policy: CommandPolicy, command: HubCommand): string | undefined {
  const lacks = { yes: undefined, forbidden: lackOf(command), unsupported: ERROR_CODES.unsupported }
  return refusedBy(policy, command) ?? lacks[permission(hub, command)]
}

const HUB_COMMANDS = COMMANDS.filter((command) => command.target !== 'bridge')

export function availableCommands(hub: Pick<Hub, 'permits'>, policy: CommandPolicy): string[] {
  const permitted = HUB_COMMANDS.filter((command) => refusedOn(hub, policy, command) === undefined)
  return [...new Set(permitted.map(({ name }) => name))]
}

/** Returns why commands cannot run on a hub, regardless of their input, keyed by their names in the configuration. */
export function refusalsOf(hub: Pick<Hub, 'permits'>, policy: CommandPolicy): Record<string, string> {
  const refusals = HUB_COMMANDS.map((command) => [commandKey(command), refusedOn(hub, policy, command)] as const)
  return Object.fromEntries(refusals.flatMap(([key, refusal]) => (refusal === undefined ? [] : [[key, refusal]])))
}

/** Returns a function that checks whether an app is visible. In patterns, `*` matches any characters, `?` just one. */
export function appFilter(include: readonly string[], exclude: readonly string[]): (id: string) => boolean {
  return (id) => include.some((one) => fits(one, id)) && !exclude.some((one) => fits(one, id))
}

/** Matches without a regular expression, because it might backtrack. On a mismatch, extends the last `*`. */
function fits(pattern: string, text: string): boolean {
  const [wanted, given] = [[...pattern], [...text]]
  let [next, at, star, matched] = [0, 0, -1, 0]
  while (at < given.length) {
    if (wanted[next] === '*') {
      star = next++
      matched = at
    } else if (wanted[next] === '?' || wanted[next] === given[at]) {
      next += 1
      at += 1
    } else if (star >= 0) {
      next = star + 1
      at = ++matched
    } else return false
  }
  while (wanted[next] === '*') next += 1
  return next === wanted.length
}
