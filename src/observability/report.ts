/** What the daemon says of its own health: one document for HTTP, MQTT and the command line. Never a secret. */
import type { HealthReport, Role } from '../contract/schemas.ts'
import type { Hub } from '../hub/hub.ts'
import type { Pulse } from '../hub/pulse.ts'
import { reasonOf } from '../hub/status.ts'
import type { LinkStatus } from '../mqtt/types.ts'

export type HubHealth = HealthReport['hubs'][string]

export interface HealthFacts {
  readonly version: string
  /** ISO 8601. */
  readonly startedAt: string
  readonly mqtt: LinkStatus
  /** Whether events or answers were lost lately, as too many waited for the broker or for too long. */
  readonly losing: boolean
  /** Whether another bridge uses the same base topic. */
  readonly contested: boolean
  /** Whether this bridge publishes and executes, or another one. */
  readonly role: Role
  /** Whether it may well have no hub: another member of the fleet has them. */
  readonly mayBeIdle: boolean
  readonly hubs: ReadonlyMap<string, HubHealth>
  /** How many settings are not published as their hubs have them. */
  readonly failedSettings: number
}

/** The health of each hub, by its name. */
export function hubHealth(
  hubs: ReadonlyMap<string, { readonly hub: Hub; readonly pulse: Pulse }>,
): ReadonlyMap<string, HubHealth> {
  return new Map([...hubs].map(([name, { hub, pulse }]) => [name, healthOf(hub, pulse)]))
}

function healthOf(hub: Hub, pulse: Pulse): HubHealth {
  const { online, realtime } = hub.status
  return {
    online,
    reason: reasonOf(hub.status),
    realtime,
    read: hub.apps.complete,
    task: pulse.stuck ? 'stuck' : 'alive',
  }
}

export function healthReport(facts: HealthFacts): HealthReport {
  const { version, startedAt, mqtt, losing, contested, role, mayBeIdle, hubs, failedSettings } = facts
  const all = [...hubs.values()]
  const connected = mqtt.state === 'connected'
  return {
    live: all.every(({ task }) => task === 'alive'),
    ready: connected && (all.some(({ online, read }) => online && read) || (mayBeIdle && all.length === 0)),
    problems: [
      ...brokerProblems(mqtt, losing),
      ...othersProblems(contested, role),
      ...(all.length === 0 && !mayBeIdle ? ['no hub is configured'] : []),
      ...[...hubs].flatMap(([name, hub]) => hubProblems(name, hub)),
      ...(failedSettings > 0
        ? [`settings that are not published as their hubs have them, as the log says: ${failedSettings}`]
        : []),
    ],
    version,
    started_at: startedAt,
    mqtt: { state: mqtt.state, protocol: mqtt.protocol, reason: mqtt.reason ?? null, probe: mqtt.probe },
    hubs: Object.fromEntries(hubs),
  }
}

function brokerProblems({ state, reason, probe, deniedFilters, deniedTopics }: LinkStatus, losing: boolean): string[] {
  if (state !== 'connected') return [`the MQTT broker is not connected${reason === undefined ? '' : `: ${reason}`}`]
  const problems = deniedFilters.map((filter) => `the MQTT broker refuses the subscription to ${filter}`)
  if (deniedTopics > 0) problems.push(`retained topics that are not published, as the log says: ${deniedTopics}`)
  if (losing) problems.push('events or answers were lost in the last ten minutes, as they could not be sent')
  if (probe === 'denied') problems.push('what is published cannot be read back: the ACL of the MQTT broker is wrong')
  return problems
}

function othersProblems(contested: boolean, role: Role): string[] {
  if (!contested) return []
  const problem = 'another hub2mqtt uses the same base topic'
  return [role === 'standby' ? `${problem} and started first: this one stands by` : problem]
}

function hubProblems(name: string, { online, reason, read, task }: HubHealth): string[] {
  const problems: string[] = []
  if (task === 'stuck') problems.push(`hub ${name}: its task is stuck`)
  if (!online) problems.push(`hub ${name} is offline: ${reason ?? 'unknown'}`)
  else if (!read) problems.push(`hub ${name}: its apps cannot be read: ${reason ?? 'not yet'}`)
  return problems
}
