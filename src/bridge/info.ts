/** The info payloads of the contract: what the bridge and each hub tell of themselves. Never a secret. */

import { COMMANDS, type Command } from '../contract/commands.ts'
import { CONTRACT_VERSION } from '../contract/version.ts'
import type { Hub } from '../hub/hub.ts'
import { reasonOf } from '../hub/status.ts'
import type { Protocol } from '../mqtt/types.ts'

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
