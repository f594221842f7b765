/** Logs the events of a hub's apps, and the permissions that its API key lacks, as readable text. */
import type { Logger } from 'pino'
import { COMMANDS } from '../contract/commands.ts'
import type { AppEventPayload } from '../contract/events.ts'
import { type CommandPolicy, mayUse } from '../contract/permissions.ts'
import type { App } from '../hub/app.ts'
import type { Hub } from '../hub/hub.ts'
import { OPERATIONS } from '../hub/operations.ts'
import type { HubState, NotableChange } from './hub-state.ts'

/** Maximum length of an app's name, so that a line with its time and fields fits in a terminal. */
const MAX_NAME = 30
const MAX_MESSAGE = 60

export function logActivity(hub: Hub, state: HubState, policy: () => CommandPolicy, log: Logger): void {
  let logged = ''
  state.subscribe((changes) => {
    for (const change of changes) for (const line of activityOf(change)) log.info({ app: change.id }, line)
  })
  hub.subscribe(({ online }) => {
    const lines = online ? lackingRights(hub, policy()) : []
    // Do not repeat the same lines when the hub is online again.
    if (!online || lines.join() === logged) return
    logged = lines.join()
    for (const line of lines) log.info(line)
  })
}

/** Returns the lines for a change. Starts and stops are omitted. */
export function activityOf({ before, after, events }: NotableChange): string[] {
  const name = nameOf(after ?? before)
  const lines = events.flatMap((event) => LINES[event.event_type]?.(name, event) ?? [])
  if (before !== undefined && before.update_available !== true && after?.update_available === true) {
    lines.push(
      `${name}: ${after.latest_version === null ? 'an update' : `version ${short(after.latest_version)}`} is available`,
    )
  }
  return lines
}

const LINES: { readonly [T in AppEventPayload['event_type']]?: (name: string, event: AppEventPayload) => string } = {
  installed: (name) => `${name} was added`,
  removed: (name) => `${name} was removed`,
  updated: (name, { from, to }) => `${name} was updated from ${short(from ?? '')} to ${short(to ?? '')}`,
  crashed: (name, { message }) => `${name} crashed${message ? `: ${short(message, MAX_MESSAGE)}` : ''}`,
  recovered: (name) => `${name} has recovered`,
}

const nameOf = (app: App | undefined) => short(app?.name?.trim() || (app?.id ?? 'An app'))

function short(text: string, length = MAX_NAME): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim()
  return line.length <= length ? line : `${line.slice(0, length - 1)}…`
}

/** Returns one line per missing scope, such as `no enable, disable: the API key lacks hub.app`. */
export function lackingRights(hub: Pick<Hub, 'permits'>, policy: CommandPolicy): string[] {
  const lacking = new Map<string, string[]>()
  for (const command of COMMANDS) {
    if (command.target === 'bridge' || !mayUse(policy, command)) continue
    if (command.operation === null || hub.permits(command.operation) !== 'forbidden') continue
    const { scope = '' } = OPERATIONS[command.operation]
    lacking.set(scope, [...(lacking.get(scope) ?? []), command.name])
  }
  return [...lacking].map(([scope, names]) => `no ${[...new Set(names)].join(', ')}: the API key lacks ${scope}`)
}

/** Operations that need optional scopes, and the data that each operation adds. */
const HELPFUL = [
  ['getInfo', 'the health of the hub'],
  ['getUpdates', "updates of the hub's firmware"],
  ['getDevices', 'the devices of each app'],
  ['getFlows', 'the flows of each app'],
  ['getLogs', 'CPU and memory of each app from before the bridge started'],
] as const

export function helpfulRights({ permits }: Pick<Hub, 'permits'>): string[] {
  const lacking = HELPFUL.filter(([name]) => permits(name) === 'forbidden')
  return lacking.map(([name, brings]) => `${OPERATIONS[name].scope} would add ${brings}`)
}
