/** The daemon's health, as one document without secrets. */
import { type Clock, sleep } from '../base/clock.ts'
import { Throttle } from '../base/throttle.ts'
import type { HealthReport, Role } from '../contract/schemas.ts'
import type { Hub } from '../hub/hub.ts'
import type { Pulse } from '../hub/pulse.ts'
import { reasonOf } from '../hub/status.ts'
import type { LinkStatus } from '../mqtt/types.ts'

export type HubHealth = HealthReport['hubs'][string]

export interface HealthFacts {
  readonly version: string
  /** When the daemon started, as an ISO 8601 timestamp. */
  readonly startedAt: string
  readonly mqtt: LinkStatus
  /** Whether the bridge recently dropped events or answers, because the queue was full or they waited too long. */
  readonly losing: boolean
  readonly contested: boolean
  /** Whether this bridge leaves devices in Home Assistant to another bridge. */
  readonly yields: boolean
  readonly role: Role
  /** Whether this bridge may have no hubs, because other members of the fleet serve them. */
  readonly mayBeIdle: boolean
  /** Whether this bridge may send requests to hubs; in a fleet with leases, only while its lease is valid. */
  readonly mayAct: boolean
  readonly hubs: Readonly<Record<string, HubHealth>>
  /** Number of published settings that may differ from the hubs' settings, because reading failed. */
  readonly failedSettings: number
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

const OTHERS = 'another hub2mqtt uses the same base topic'
const DEVICES =
  'another hub2mqtt publishes the same devices to Home Assistant: this one leaves them to it (see the log)'

export function healthReport(facts: HealthFacts): HealthReport {
  const { version, startedAt, mqtt, losing, contested, yields, role, mayBeIdle, mayAct, hubs, failedSettings } = facts
  const all = Object.values(hubs)
  const connected = mqtt.state === 'connected'
  const serves = all.some(({ online, read }) => online && read) || (mayBeIdle && all.length === 0)
  return {
    live: all.every(({ task }) => task === 'alive'),
    ready: connected && mayAct && serves,
    problems: [
      ...brokerProblems(mqtt, losing),
      ...(contested ? [role === 'standby' ? `${OTHERS} and started first: this one stands by` : OTHERS] : []),
      ...(yields ? [DEVICES] : []),
      ...(mayAct ? [] : ['this member of the fleet has no lease, so it serves no hubs: check whether it reaches NATS']),
      ...(all.length === 0 && !mayBeIdle ? ['no hub is configured'] : []),
      ...Object.entries(hubs).flatMap(([name, hub]) => hubProblems(name, hub)),
      ...(failedSettings > 0
        ? [`settings whose published values differ from those of the hubs (see the log): ${failedSettings}`]
        : []),
    ],
    version,
    started_at: startedAt,
    mqtt: { state: mqtt.state, protocol: mqtt.protocol, reason: mqtt.reason ?? null, probe: mqtt.probe },
    hubs,
  }
}

function brokerProblems({ state, reason, probe, deniedFilters, deniedTopics }: LinkStatus, losing: boolean): string[] {
  if (state !== 'connected') return [`the MQTT broker is not connected${reason === undefined ? '' : `: ${reason}`}`]
  const problems = deniedFilters.map((filter) => `the MQTT broker refuses the subscription to ${filter}`)
  if (deniedTopics > 0) problems.push(`retained topics that are not published (see the log): ${deniedTopics}`)
  if (losing) problems.push('events or answers were lost in the last ten minutes because they could not be sent')
  if (probe === 'denied') problems.push('published messages cannot be read back: the ACL of the MQTT broker is wrong')
  return problems
}

function hubProblems(name: string, { online, reason, read, task }: HubHealth): string[] {
  const problems: string[] = []
  if (task === 'stuck') problems.push(`hub ${name}: its task is stuck`)
  if (!online) problems.push(`hub ${name} is offline: ${reason ?? 'unknown'}`)
  else if (!read) problems.push(`hub ${name}: its apps cannot be read: ${reason ?? 'not yet'}`)
  return problems
}

/** Milliseconds between two health reports if nothing changes. */
const INTERVAL_MS = 15_000

/** How long a loss is considered recent, which is long enough for users to notice the loss. */
const RECENT_MS = 10 * 60_000

/** Returns a function that returns whether a count has grown in the last ten minutes. It must be called regularly. */
export function recentGrowth(clock: Clock): (count: number) => boolean {
  let last = 0
  let grewAt = Number.NEGATIVE_INFINITY
  return (count) => {
    if (count > last) grewAt = clock.elapsed()
    last = count
    return clock.elapsed() - grewAt < RECENT_MS
  }
}

interface Parts extends Pick<HealthFacts, 'version' | 'startedAt' | 'mayBeIdle'> {
  readonly link: { status(): LinkStatus }
  readonly mayAct: () => boolean
  readonly bridge: {
    readonly contested: boolean
    readonly role: Role
    readonly failedSettings: number
    readonly upkeep: Pick<HealthFacts, 'yields'>
  }
  readonly hubs: ReadonlyMap<string, { readonly hub: Hub; readonly pulse: Pulse }>
  readonly clock: Clock
}

export function bridgeHealth(parts: Parts) {
  const { link, bridge, hubs, clock, mayAct, ...fixed } = parts
  const hasGrown = recentGrowth(clock)
  const throttle = new Throttle(clock, publish)
  const { promise: ready, resolve: becomeReady } = Promise.withResolvers<void>()
  const listeners: ((report: HealthReport) => void)[] = []

  function report(): HealthReport {
    const { contested, role, failedSettings, upkeep } = bridge
    const { yields } = upkeep
    const mqtt = link.status()
    const losing = hasGrown(mqtt.dropped)
    const ofHubs = Object.fromEntries([...hubs].map(([name, { hub, pulse }]) => [name, healthOf(hub, pulse)]))
    const facts = { mqtt, losing, contested, yields, role, mayAct: mayAct(), failedSettings, hubs: ofHubs }
    return healthReport({ ...fixed, ...facts })
  }

  const changed = (): void => throttle.request()

  async function watch(signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(clock, INTERVAL_MS, signal)
      if (signal.aborted) break
      changed()
    }
    throttle.stop()
  }

  function publish(): void {
    const found = report()
    for (const listener of listeners) listener(found)
    if (found.ready) becomeReady()
  }

  return {
    ready,
    /** Whether this bridge serves its subscribers, that is, whether it is connected and is the active bridge. */
    get isOnline(): boolean {
      return link.status().state === 'connected' && bridge.role === 'active'
    },
    report,
    subscribe: (listener: (report: HealthReport) => void) => void listeners.push(listener),
    changed,
    watch,
  }
}
