/**
 * One row for each topic that the bridge publishes, except answers. All publishing and the documents derive from it.
 */
import type * as v from 'valibot'
import type { Json } from '../base/json.ts'
import type { App, Apps, Change } from '../hub/app.ts'
import type { Release } from '../hub/releases.ts'
import { type HubStatus, reasonOf } from '../hub/status.ts'
import type { Protocol } from '../mqtt/types.ts'
import { CRASH, type Crash, HUB_HEALTH, type HubHealth } from './crash.ts'
import type { GoneApp, GuardMemory, GuardPayload, HistoryEntry } from './guard.ts'
import type { LogLevel } from './log-levels.ts'
import * as schemas from './schemas.ts'
import type { TemplateParameter } from './templates.ts'
import { updateOf } from './update-state.ts'

/** The owner of a retained topic, with the parameters of the topic's template. */
export type Owner =
  | { readonly kind: 'bridge' }
  | { readonly kind: 'hub'; readonly hub: string }
  | { readonly kind: 'app'; readonly hub: string; readonly app: string }
  | { readonly kind: 'setting'; readonly hub: string; readonly app: string; readonly name: string }
export type OwnerKind = Owner['kind']
export type OwnerOf<K extends OwnerKind> = Extract<Owner, { readonly kind: K }>

/** The facts about each kind of owner, from which its rows are rendered. */
export interface Facts {
  readonly bridge: {
    readonly version: string
    /** The time of the bridge's start, in ISO 8601. */
    readonly startedAt: string
    /** The protocol of the connection; `null` before the first connection. */
    readonly protocol: Protocol | null
    readonly hubs: Readonly<Record<string, { readonly url_host: string; readonly api: HubStatus['api'] }>>
    readonly logLevel: LogLevel
    /** The latest health report; `undefined` before the first report. */
    readonly health: schemas.HealthReport | undefined
    /** Discovery prefixes that the bridge uses or has used; `null` if there are none, `undefined` if not known yet. */
    readonly prefixes: readonly string[] | null | undefined
    /** The state of the fleet; `undefined` if this member does not publish it. */
    readonly fleet: schemas.FleetPayload | undefined
  }
  readonly hub: {
    readonly status: HubStatus
    /** Names of the commands that the configuration, the API key and the hub permit. */
    readonly commands: readonly string[]
    /** Sums over all apps. */
    readonly counts: Omit<schemas.HubSummary, 'needs_attention'>
    /** Whether the list of apps has been read. */
    readonly complete: boolean
    /** Apps that need attention; `undefined` while the guardian is off. */
    readonly needsAttention?: readonly string[] | undefined
    /** Removed apps in the guardian's memory; `null` while the guardian is off, `undefined` if not known yet. */
    readonly goneApps?: readonly GoneApp[] | null | undefined
    /** The hub's health; `null` if the API key does not permit it, `undefined` before the first read. */
    readonly health?: HubHealth | null | undefined
    readonly owner?: { readonly member: string; readonly epoch: number } | undefined
  }
  readonly app: {
    readonly app: App
    readonly installing: boolean
    /** When an update without a version was found, in UTC, for example `2026-11-23 13:05`. */
    readonly foundAt?: string | undefined
    /** The guardian's facts; `null` while the guardian is off, `undefined` until the facts are available. */
    readonly guard?: GuardFacts | null | undefined
    /** The evidence of the latest crash; `null` if there is none, `undefined` to keep the broker's message. */
    readonly crash?: Crash | null | undefined
    /** Devices and flows of the app; `null` if the API key does not permit them, `undefined` before the first read. */
    readonly links?: schemas.AppLinks | null | undefined
    /** The app's release in the public store; `undefined` if there is none. */
    readonly release?: Release | undefined
  }
  readonly setting: { readonly value: Json }
}

export interface GuardFacts {
  readonly state: GuardPayload
  readonly history: readonly HistoryEntry[]
  /** Other data of the guardian; `null` if there is nothing to store. */
  readonly memory: GuardMemory | null
}

interface Row<S> {
  readonly topic: string
  readonly schema: S
  /** Whether the payload is plain text instead of JSON. */
  readonly text?: true
  /** The payload's name in the AsyncAPI document, for rows that share a payload; default: the row's name. */
  readonly message?: string
  readonly doc: string
}

/** A retained row, rendered from its owner's facts. */
export interface RetainedRow<K extends OwnerKind, S extends v.GenericSchema = v.GenericSchema> extends Row<S> {
  readonly retained: true
  readonly of: K
  /** The part of the configuration that enables this row; default: always enabled. */
  readonly when?: 'discovery' | 'settings.publish' | 'guard' | 'fleet'
  /** Returns the payload, `null` to clear the topic, or `undefined` to keep the broker's message for the time being. */
  readonly render: (facts: Facts[K]) => v.InferOutput<S> | null | undefined
  /** Whether the payload contains an app's usage figures, which change most often. No other row of an app has them. */
  readonly hasUsage?: true
  /** The facts that determine the payload, compared by identity; default: the rendered payload itself is compared. */
  readonly dependsOn?: (facts: Facts[K]) => readonly unknown[]
}

/** A retained row that is published by the connection (also as its will), by discovery, or by a rollout. */
export interface ExternalRow<S> extends Row<S> {
  readonly retained: true
  readonly of: 'bridge' | 'device'
  readonly by: 'connection' | 'discovery' | 'rollout'
}

export interface Sent<S> extends Row<S> {
  readonly retained: false
  readonly of: 'bridge' | 'hub' | 'app'
}

const retainedRow =
  <K extends OwnerKind>(of: K) =>
  <const T extends string, S extends v.GenericSchema>(
    row: Omit<RetainedRow<K, S>, 'of' | 'retained'> & { readonly topic: T },
  ) =>
    ({ of, retained: true, ...row }) as const
const externalRow = <const T extends string, S, const O extends ExternalRow<S>['of']>(
  row: Omit<ExternalRow<S>, 'retained'> & { readonly topic: T; readonly of: O },
) => ({ retained: true, ...row }) as const
const sent = <const T extends string, S, const O extends Sent<S>['of']>(
  row: Omit<Sent<S>, 'retained'> & { readonly topic: T; readonly of: O },
) => ({ retained: false, ...row }) as const

const bridge = retainedRow('bridge')
const hub = retainedRow('hub')
const app = retainedRow('app')
const setting = retainedRow('setting')

const AVAILABILITY = { schema: schemas.AVAILABILITY, text: true, message: 'availability' } as const
const DISCOVERY = { schema: schemas.DISCOVERY, message: 'discovery', of: 'device', by: 'discovery' } as const

export const PUBLICATIONS = {
  bridgeState: externalRow({
    ...AVAILABILITY,
    topic: '{base}/bridge/state',
    of: 'bridge',
    by: 'connection',
    doc: '`online` while the bridge is connected; the will is `offline`. In a fleet, one member publishes it for all members.',
  }),
  fleet: bridge({
    topic: '{base}/fleet',
    when: 'fleet',
    schema: schemas.FLEET,
    doc: 'The members of the fleet, and how many hubs each member serves.',
    render: ({ fleet }) => fleet,
  }),
  bridgeInfo: bridge({
    topic: '{base}/bridge/info',
    schema: schemas.BRIDGE_INFO,
    doc: 'The versions of this interface and of the bridge, and the hubs whose topics the bridge may clear after a restart.',
    render: ({ version, startedAt, hubs, protocol }) =>
      protocol === null
        ? undefined
        : {
            contract: schemas.CONTRACT_VERSION,
            version,
            started_at: startedAt,
            hubs,
            mqtt: { protocol },
            extensions: ['guardian', 'call', 'fleet', 'evidence'],
          },
    dependsOn: ({ version, startedAt, hubs, protocol }) => [version, startedAt, hubs, protocol],
  }),
  bridgeHealth: bridge({
    topic: '{base}/bridge/health',
    schema: schemas.HEALTH,
    doc: 'The health report, with a list of problems.',
    render: ({ health }) => health,
  }),
  bridgeLogLevel: bridge({
    topic: '{base}/bridge/log-level',
    when: 'discovery',
    schema: schemas.LOG_LEVEL,
    text: true,
    message: 'logLevel',
    doc: 'The log level; for Home Assistant.',
    render: ({ logLevel }) => logLevel,
  }),
  bridgeDiscovery: bridge({
    topic: '{base}/bridge/discovery',
    schema: schemas.DISCOVERY_MEMORY,
    doc: 'The prefixes of the discovery messages; for the bridge itself.',
    render: ({ prefixes }) => prefixes && { prefixes: [...prefixes] },
    dependsOn: ({ prefixes }) => [prefixes],
  }),
  bridgeProbe: sent({
    topic: '{base}/bridge/probe',
    of: 'bridge',
    schema: schemas.PROBE,
    text: true,
    doc: 'The bridge sends this to itself when it connects and after a suspension, to check whether it may publish and read.',
  }),
  bridgePresence: sent({
    topic: '{base}/bridge/presence',
    of: 'bridge',
    schema: schemas.PRESENCE,
    doc: 'Bridges and fleets announce themselves here when they connect, and then every minute.',
  }),
  rollout: externalRow({
    topic: '{base}/rollout/{transaction}',
    of: 'bridge',
    by: 'rollout',
    schema: schemas.ROLLOUT,
    doc: 'The progress of a rollout, from which the bridge can resume it. The 20 that ended last are kept.',
  }),
  hubState: hub({
    ...AVAILABILITY,
    topic: '{base}/{hub}/state',
    doc: '`online` while the hub answers and accepts the key, else `offline`.',
    render: ({ status }) => (isUnknown(status) ? undefined : status.online ? 'online' : 'offline'),
  }),
  hubInfo: hub({
    topic: '{base}/{hub}/info',
    schema: schemas.HUB_INFO,
    doc: 'The hub, the permissions of the key, and the reason why the hub is offline.',
    render({ status, commands, counts, owner }) {
      if (isUnknown(status)) return undefined
      const { id, firmware, api, realtime, scopes } = status
      const reason = reasonOf(status)
      return {
        id,
        firmware,
        api,
        realtime,
        permissions: [...(scopes ?? [])],
        commands: [...commands],
        apps: counts.apps,
        ...(owner !== undefined && { owner: owner.member, epoch: owner.epoch }),
        ...(reason !== null && { reason }),
      }
    },
  }),
  hubSummary: hub({
    topic: '{base}/{hub}/summary',
    when: 'discovery',
    schema: schemas.HUB_SUMMARY,
    doc: 'Totals of all apps; for Home Assistant.',
    render: ({ counts, complete, needsAttention }) =>
      complete
        ? { ...counts, ...(needsAttention !== undefined && { needs_attention: [...needsAttention] }) }
        : undefined,
  }),
  hubHealth: hub({
    topic: '{base}/{hub}/health',
    schema: HUB_HEALTH,
    doc: 'The health of the hub, if the key has `homey.system.readonly`. Published at startup, then each minute if a figure has changed by a tenth, otherwise every 15 minutes.',
    render: ({ health }) => health,
  }),
  hubGuardMemory: hub({
    topic: '{base}/{hub}/guard-memory',
    when: 'guard',
    schema: schemas.GONE_APPS,
    doc: "The guardian's data on apps removed in the last day; for the bridge itself.",
    render: ({ goneApps }) => (goneApps?.length === 0 ? null : goneApps),
  }),
  app: app({
    topic: '{base}/{hub}/app/{app}',
    schema: schemas.APP,
    doc: 'The app. Every key is always present; unknown values are `null`. Cleared when the app is removed.',
    hasUsage: true,
    render: ({ app }) => app,
  }),
  setting: setting({
    topic: '{base}/{hub}/app/{app}/setting/{name}',
    when: 'settings.publish',
    schema: schemas.ANYTHING,
    doc: 'The JSON value of a setting that `settings.publish` lists.',
    render: ({ value }) => value,
  }),
  appUpdate: app({
    topic: '{base}/{hub}/app/{app}/update',
    when: 'discovery',
    schema: schemas.APP_UPDATE,
    doc: "The app's version and the newest version; for Home Assistant.",
    render: updateOf,
    dependsOn: ({ app, installing, foundAt, release }) => {
      const { name, version, latest_version, update_available, state, origin } = app
      return [name, origin, version, latest_version, update_available, foundAt, release, installing && state]
    },
  }),
  appLinks: app({
    topic: '{base}/{hub}/app/{app}/links',
    schema: schemas.APP_LINKS,
    doc: 'The devices and flows that use the app, if the key has `homey.device.readonly` or `homey.flow.readonly`; read every five minutes.',
    render: ({ links }) => links,
  }),
  guard: app({
    topic: '{base}/{hub}/app/{app}/guard',
    when: 'guard',
    schema: schemas.GUARD,
    doc: "The guardian's state for the app.",
    render: ({ guard }) => ofGuard(guard, 'state'),
  }),
  history: app({
    topic: '{base}/{hub}/app/{app}/history',
    when: 'guard',
    schema: schemas.HISTORY,
    doc: "The app's history, newest first.",
    render: ({ guard }) => ofGuard(guard, 'history'),
  }),
  guardMemory: app({
    topic: '{base}/{hub}/app/{app}/guard-memory',
    when: 'guard',
    schema: schemas.GUARD_MEMORY,
    doc: "The guardian's other data on the app; for the bridge itself.",
    render: ({ guard }) => ofGuard(guard, 'memory'),
  }),
  crash: app({
    topic: '{base}/{hub}/app/{app}/crash',
    schema: CRASH,
    doc: "The details of the app's latest crash; at most 16 KiB.",
    render: ({ crash }) => crash,
    dependsOn: ({ crash }) => [crash],
  }),
  hubEvent: sent({
    schema: schemas.EVENT_OF_HUB,
    topic: '{base}/{hub}/event',
    of: 'hub',
    doc: 'Events of the hub and of all its apps.',
  }),
  appEvent: sent({
    schema: schemas.EVENT,
    topic: '{base}/{hub}/app/{app}/event',
    of: 'app',
    doc: 'Events of the app.',
  }),
  discoveryDevice: externalRow({
    ...DISCOVERY,
    topic: '{prefix}/device/{object_id}/config',
    doc: 'A device with its entities, if `discovery.format` is `device`; for Home Assistant.',
  }),
  discoveryComponent: externalRow({
    ...DISCOVERY,
    topic: '{prefix}/{platform}/hub2mqtt/{unique_id}/config',
    doc: 'One entity, if `discovery.format` is `component`; for Home Assistant.',
  }),
} as const

export type Publications = typeof PUBLICATIONS
export type PublicationName = keyof Publications
/** Parameters of a row's topic, without the base topic or the discovery prefix. */
export type PublicationParameters<N extends PublicationName> = {
  readonly [P in Exclude<TemplateParameter<Publications[N]['topic']>, 'base' | 'prefix'>]: string
}
export type Payload<N extends PublicationName> = v.InferOutput<Publications[N]['schema']>

/** Any row, for code that does not depend on its types. */
export type Publication =
  | { readonly [K in OwnerKind]: RetainedRow<K> }[OwnerKind]
  | ExternalRow<v.GenericSchema>
  | Sent<v.GenericSchema>

/** Returns `null` to clear the topic while the guardian is off, `undefined` until its facts are available. */
function ofGuard<K extends keyof GuardFacts>(guard: Facts['app']['guard'], key: K) {
  return guard === null || guard === undefined ? guard : guard[key]
}

/** Returns whether the hub's state is unknown, in which case the broker keeps the hub's messages. */
function isUnknown({ reason }: HubStatus): boolean {
  return reason === 'connecting'
}

/** Returns numbers instead of the map of apps, because that map changes in place. */
export function countsOf(apps: Apps): Facts['hub']['counts'] {
  let apps_crashed = 0
  let updates_available = 0
  let cpu: number | null = null
  let memory_bytes: number | null = null
  for (const { crashed, update_available, cpu_percent, memory_bytes: memory } of apps.values()) {
    if (crashed === true) apps_crashed += 1
    if (update_available === true) updates_available += 1
    if (cpu_percent !== null) cpu = (cpu ?? 0) + cpu_percent
    if (memory !== null) memory_bytes = (memory_bytes ?? 0) + memory
  }
  const cpu_percent = cpu === null ? null : Math.round(cpu * 10) / 10
  return { apps: apps.size, apps_crashed, updates_available, cpu_percent, memory_bytes }
}

export function concernsHub({ before, after }: Change): boolean {
  return before?.crashed !== after?.crashed || before?.update_available !== after?.update_available || !before || !after
}
