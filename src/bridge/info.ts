/** The info payloads of the contract: what the bridge and each hub tell of themselves. Never a secret. */

import { COMMANDS, type Command } from '../contract/commands.ts'
import type { Hub } from '../hub/hub.ts'
import type { Protocol } from '../mqtt/types.ts'

/** Version of the MQTT contract; a change that could break an automation needs a new one. */
export const CONTRACT_VERSION = 1

/** Codes of a hub's failure in the words of the info topic: the commands' `hub_` prefix would say nothing here. */
const REASONS: Readonly<Record<string, string>> = {
  no_answer: 'unreachable',
  nonsense: 'failed',
  unsupported: 'failed',
}

/** Why a hub is not (wholly) usable, in the words of the contract. */
export function reasonOf(hub: Hub): string | null {
  const { reason } = hub.status
  return reason === null ? null : (REASONS[reason] ?? reason)
}

export interface BridgeInfo {
  readonly version: string
  /** ISO 8601. */
  readonly startedAt: string
  readonly protocol: Protocol | null
  readonly hubs: ReadonlyMap<string, { readonly url: string; readonly hub: Hub }>
}

export function renderBridgeInfo({ version, startedAt, protocol, hubs }: BridgeInfo): string {
  const entries = [...hubs].map(([name, { url, hub }]) => [name, { url_host: new URL(url).host, api: hub.status.api }])
  return JSON.stringify({
    contract: CONTRACT_VERSION,
    version,
    started_at: startedAt,
    hubs: Object.fromEntries(entries),
    mqtt: { protocol },
  })
}

export function renderHubInfo(hub: Hub, allows: (command: Command) => boolean): string {
  const { id, firmware, api, realtime, scopes } = hub.status
  const reason = reasonOf(hub)
  return JSON.stringify({
    id,
    firmware,
    api,
    realtime,
    permissions: scopes ?? [],
    commands: availableCommands(hub, allows),
    apps: hub.apps.all.size,
    ...(reason !== null && { reason }),
  })
}

/** Names of the commands that configuration, key and hub permit. */
function availableCommands(hub: Hub, allows: (command: Command) => boolean): string[] {
  const names = COMMANDS.filter(
    (command) => command.target !== 'bridge' && allows(command) && hub.permits(command.operation) === 'yes',
  ).map(({ name }) => name)
  return [...new Set(names)]
}
