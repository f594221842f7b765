/** The families that the daemon's parts tell themselves. */

import type { HealthReport, Role } from '../contract/schemas.ts'
import { CONTRACT_VERSION } from '../contract/version.ts'
import { APP_STATES } from '../hub/app.ts'
import type { Hub } from '../hub/hub.ts'
import type { Pulse } from '../hub/pulse.ts'
import type { Family, Sample } from './family.ts'

/** What the MQTT link counts itself. */
export interface LinkFigures {
  readonly state: string
  /** Retained topics and messages that wait to be sent. */
  readonly queued: number
  readonly unacknowledged: number
  readonly deniedTopics: number
  readonly publishes: number
  /** Payload bytes of the publishes. */
  readonly bytes: number
  readonly dropped: number
  readonly reconnects: number
}

export interface Parts {
  readonly version: string
  readonly link: () => LinkFigures
  /** What the bridge knows of others on its base topic. */
  readonly bridge: { readonly contested: boolean; readonly role: Role }
  /** The hubs that are open at present. */
  readonly hubs: ReadonlyMap<string, { readonly hub: Hub; readonly pulse: Pulse }>
  readonly health: () => HealthReport
  /** The fleet that the bridge is a member of, if it is. */
  readonly fleet?: FleetFigures | undefined
}

export interface FleetFigures {
  readonly member: string
  readonly isSpeaker: boolean
  readonly epoch: number
  readonly payload: { readonly count: number }
  mayAct(): boolean
}

const UNKNOWN_STATE = 'unknown'

export function partFamilies(parts: Parts): Family[] {
  const ofFleet = parts.fleet === undefined ? [] : fleetFamilies(parts.fleet, parts.hubs)
  return [...bridgeFamilies(parts), ...ofFleet, ...linkFamilies(parts.link), ...hubFamilies(parts.hubs)]
}

function fleetFamilies(fleet: FleetFigures, hubs: Parts['hubs']): Family[] {
  const ofMember = (name: string, help: string, figure: () => number): Family => ({
    name: `hub2mqtt_fleet_${name}`,
    help,
    type: 'gauge',
    read: () => [{ labels: { member: fleet.member }, value: figure() }],
  })
  return [
    {
      name: 'hub2mqtt_fleet_members',
      help: 'How many members the fleet has.',
      type: 'gauge',
      read: () => one(fleet.payload.count),
    },
    {
      name: 'hub2mqtt_fleet_epoch',
      help: 'Grows whenever the members change.',
      type: 'gauge',
      read: () => one(fleet.epoch),
    },
    ofMember('leased', 'Whether this member may act: its lease holds.', () => Number(fleet.mayAct())),
    ofMember('speaks', 'Whether this member speaks for all.', () => Number(fleet.isSpeaker)),
    ofMember('hubs', 'How many hubs this member has.', () => hubs.size),
  ]
}

function bridgeFamilies({ version, health, bridge }: Parts): Family[] {
  const build = { version, node: process.versions.node, contract: String(CONTRACT_VERSION) }
  return [
    {
      name: 'hub2mqtt_build_info',
      help: 'Always 1; the labels say what runs.',
      type: 'gauge',
      read: () => [{ labels: build, value: 1 }],
    },
    {
      name: 'hub2mqtt_ready',
      help: 'Whether the broker is connected and at least one hub has been read and answers.',
      type: 'gauge',
      read: () => one(Number(health().ready)),
    },
    {
      name: 'hub2mqtt_contested',
      help: 'Whether another bridge uses the same base topic.',
      type: 'gauge',
      read: () => one(Number(bridge.contested)),
    },
    {
      name: 'hub2mqtt_active',
      help: 'Whether this bridge publishes and executes; 0 while another one does.',
      type: 'gauge',
      read: () => one(Number(bridge.role === 'active')),
    },
    {
      name: 'hub2mqtt_problems',
      help: 'How many problems the health report names.',
      type: 'gauge',
      read: () => one(health().problems.length),
    },
  ]
}

function linkFamilies(link: () => LinkFigures): Family[] {
  const gauge = (name: string, help: string, figure: (link: LinkFigures) => number): Family => ({
    name: `hub2mqtt_mqtt_${name}`,
    help,
    type: 'gauge',
    read: () => one(figure(link())),
  })
  const counter = (name: string, help: string, figure: (link: LinkFigures) => number): Family => ({
    ...gauge(`${name}_total`, help, figure),
    type: 'counter',
  })
  return [
    gauge('connected', 'Whether the MQTT broker is connected.', ({ state }) => Number(state === 'connected')),
    gauge('queued', 'Retained topics and messages that wait to be sent.', ({ queued }) => queued),
    gauge('unacknowledged', 'Publishes under way.', ({ unacknowledged }) => unacknowledged),
    gauge('denied_topics', 'Retained topics that the broker refuses at present.', ({ deniedTopics }) => deniedTopics),
    counter('publishes', 'Publishes sent.', ({ publishes }) => publishes),
    counter('published_bytes', 'Payload bytes of the publishes sent.', ({ bytes }) => bytes),
    counter('dropped', 'Events, answers and commands lost to the limits of the queues.', ({ dropped }) => dropped),
    counter('reconnects', 'Connections to the broker lost.', ({ reconnects }) => reconnects),
  ]
}

function hubFamilies(hubs: Parts['hubs']): Family[] {
  const gauge = (name: string, help: string, figure: (hub: Hub, pulse: Pulse) => number | undefined): Family => ({
    name: `hub2mqtt_${name}`,
    help,
    type: 'gauge',
    *read() {
      for (const [name, { hub, pulse }] of hubs) {
        const value = figure(hub, pulse)
        if (value !== undefined) yield { labels: { hub: name }, value }
      }
    },
  })
  return [
    gauge('hub_up', 'Whether the hub answers with a valid key.', ({ status }) => Number(status.online)),
    gauge('hub_realtime_up', 'Whether events arrive at once; else the hub is polled.', ({ status }) =>
      Number(status.realtime === 'connected'),
    ),
    gauge('hub_last_read_timestamp_seconds', 'When the list of apps was last read well.', (_, { readAt }) =>
      readAt === undefined ? undefined : readAt / 1000,
    ),
    {
      name: 'hub2mqtt_apps',
      help: 'Apps by state.',
      type: 'gauge',
      *read() {
        for (const [name, { hub }] of hubs) {
          for (const [state, value] of byState(hub)) yield { labels: { hub: name, state }, value }
        }
      },
    },
  ]
}

function byState(hub: Hub): Map<string, number> {
  const counts = new Map<string, number>([...APP_STATES, UNKNOWN_STATE].map((state) => [state, 0]))
  for (const { state } of hub.apps.all.values()) {
    const key = state ?? UNKNOWN_STATE
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

const one = (value: number): Sample[] => [{ labels: {}, value }]
