/** The data that the page shows. Each app has its own signals, so that a change renders only one row. */
import { batch, computed, signal } from '@preact/signals'
import type { Json } from '../../../../base/json.ts'
import type { LogLevel } from '../../../../contract/log-levels.ts'
import type { Payload, PublicationName } from '../../../../contract/publications.ts'
import { createTopics, type OwnTopic, type Topics } from '../../../../contract/topics.ts'
import type { App } from '../../../../hub/app.ts'
import type { FleetStatus, LiveFrame, Refusals, Sample } from '../../../server/api/protocol.ts'
import { collator, terms, textFor } from '../terms.ts'
import { ActivityReader, type Entry, failedUpdates } from './activity.ts'
import { readPayload } from './payload.ts'

export type Outcome = {
  readonly ok: boolean
  readonly text: string
  /** The error code of a failed command; `null` if the failure has no code. */
  readonly code?: string | null
}

/** A retained topic of an app, except its state and its settings. */
type OtherTopic = { readonly name: PublicationName; readonly payload: string }

export type AppEntry = Readonly<ReturnType<typeof newApp>>
export type HubEntry = Readonly<ReturnType<typeof newHub>>

export const KEPT_USAGE_MS = 15 * 60_000

function newApp(hub: string, topic: string, first: App) {
  const app = signal(first)
  const samples: Sample[] = []
  return {
    hub,
    id: first.id,
    target: { hub, app: first.id },
    /** The topic of the app's state, which identifies the app. */
    topic,
    app,
    name: computed(() => app.value.name?.trim() || first.id),
    /** The usage of the last 15 minutes, oldest first. Samples are added in place, always before `app` changes. */
    samples,
    settings: signal<ReadonlyMap<string, Json>>(new Map()),
    /** The other retained topics of the app, by topic. */
    topics: signal<ReadonlyMap<string, OtherTopic>>(new Map()),
    /** The command that is waiting for its answer. */
    running: signal<string | undefined>(undefined),
    outcome: signal<Outcome | undefined>(undefined),
    /** The state of the icon, so that it is requested only once. */
    icon: signal<'requested' | 'shown' | 'none'>('requested'),
  }
}

function newHub(name: string) {
  return {
    name,
    state: signal<Payload<'hubState'> | undefined>(undefined),
    /** When the state last changed, in epoch milliseconds. */
    since: signal<number | undefined>(undefined),
    info: signal<Payload<'hubInfo'> | undefined>(undefined),
    health: signal<Payload<'hubHealth'> | undefined>(undefined),
    /** Only the store changes this map. When apps are added or removed, the store replaces the whole map. */
    apps: signal(new Map<string, AppEntry>()),
  }
}

/** Adds a sample, and drops the samples that are too old to be shown. */
function addSample(samples: Sample[], sample: Sample): void {
  samples.push(sample)
  const oldest = sample[0] - KEPT_USAGE_MS
  const outdated = samples.findIndex(([at]) => at >= oldest)
  samples.splice(0, outdated)
}

type OtherTopicName = 'guard' | 'history' | 'crash' | 'appLinks' | 'appUpdate'

/** The parsed payloads, so that lists of many apps parse each payload only once. */
const readOnce = new WeakMap<OtherTopic, { readonly [N in OtherTopicName]?: Payload<N> | undefined }>()

/** Returns a parsed payload of an app; `undefined` if there is none, or if it does not match the schema. */
export function readTopic<N extends OtherTopicName>({ topics }: AppEntry, name: N): Payload<N> | undefined {
  for (const one of topics.value.values()) {
    if (one.name !== name) continue
    const payloads = readOnce.get(one) ?? { [name]: readPayload(name, one.payload) }
    readOnce.set(one, payloads)
    return payloads[name]
  }
  return undefined
}

type Snapshot = Extract<LiveFrame, { type: 'snapshot' }>
type Changes = Extract<LiveFrame, { type: 'changes' }>

export class Store {
  readonly topics: Topics
  /** All hubs. For the hubs of other members of a fleet, only the state is known. */
  readonly hubs = signal<readonly HubEntry[]>([])
  readonly own = computed(() => this.hubs.value.filter(({ name }) => this.ownerElsewhere(name) === undefined))
  readonly fleet = signal<FleetStatus | undefined>(undefined)
  /** State topic → payload, for the other members and the whole fleet. */
  readonly memberStates = signal<ReadonlyMap<string, Payload<'bridgeState'>>>(new Map())
  readonly bridgeState = signal<Payload<'bridgeState'> | undefined>(undefined)
  /** When the state of the bridge last changed, in epoch milliseconds. */
  readonly bridgeSince = signal<number | undefined>(undefined)
  readonly bridgeInfo = signal<Payload<'bridgeInfo'> | undefined>(undefined)
  readonly health = signal<Payload<'bridgeHealth'> | undefined>(undefined)
  readonly logLevel = signal<LogLevel>('info')
  readonly discovery = signal<Payload<'bridgeDiscovery'> | undefined>(undefined)
  readonly refusals = signal<Refusals>({})
  readonly recent = signal<readonly Entry[]>([])
  /** The apps, as `hub/id`, whose last update failed. Derived from events, so empty after a restart of the daemon. */
  readonly failedUpdates = computed(() => failedUpdates(this.recent.value))
  /** Whether the first snapshot has arrived. */
  readonly complete = signal(false)
  /** Counts the changes to apps, for lists that are not sorted on every change. */
  appChanges = 0
  readonly #activity: ActivityReader
  readonly #topics = new Set<string>()
  /** Hubs whose apps were added or removed, but whose `apps` signal has not been updated yet. */
  readonly #outdated = new Set<HubEntry>()

  /** @param member the name of this bridge in a fleet */
  constructor(base: string, member: string | null) {
    this.topics = createTopics(base, member ?? undefined)
    this.#activity = new ActivityReader(base)
  }

  /** Returns the other member of the fleet that serves the hub, if any. */
  ownerElsewhere(hub: string): string | undefined {
    const { member, owners = {} } = this.fleet.value ?? {}
    const owner = Object.hasOwn(owners, hub) ? owners[hub] : undefined
    return owner === member ? undefined : owner
  }

  readonly hub = (name: string): HubEntry | undefined => this.hubs.value.find((hub) => hub.name === name)
  readonly app = (hub: string, id: string): AppEntry | undefined => this.hub(hub)?.apps.value.get(id)

  /** The bridge's own hubs that are offline. The page has only the last known state of their apps. */
  readonly away = computed(() => this.own.value.filter(({ state }) => state.value === 'offline'))

  readonly isAway = (hub: string): boolean => this.away.value.some(({ name }) => name === hub)

  /** Explains why the hub cannot be used, or can be used only partly. */
  reasonOf({ name, info }: HubEntry): string | undefined {
    const reason = info.value?.reason ?? this.health.value?.hubs[name]?.reason
    return reason == null ? undefined : textFor(terms.hubReasons, reason)
  }

  snapshot({ at, state, recent, since, usage, refusals, log_level, fleet }: Snapshot): void {
    batch(() => {
      this.fleet.value = fleet
      const present = new Set(state.map(([topic]) => topic))
      for (const topic of this.#topics.difference(present)) this.#hold(topic, null, at, false)
      for (const [topic, payload] of state) this.#hold(topic, payload, at, false)
      this.#settle()
      for (const hub of this.hubs.value) {
        hub.since.value = msOf(since[this.topics.of('hubState', { hub: hub.name })])
        for (const { samples, topic } of hub.apps.value.values()) {
          samples.splice(0, samples.length, ...(usage[topic] ?? []))
        }
      }
      this.bridgeSince.value = msOf(since[this.topics.of('bridgeState', {})])
      this.recent.value = this.#activity.add([], recent)
      this.refusals.value = refusals
      this.logLevel.value = log_level
      this.complete.value = true
    })
  }

  changes({ at, state, happenings, refusals, log_level, fleet }: Changes): void {
    batch(() => {
      const before = this.bridgeState.value
      for (const [topic, payload] of state) this.#hold(topic, payload, at, true)
      if (this.bridgeState.value !== before) this.bridgeSince.value = msOf(at)
      this.recent.value = this.#activity.add(this.recent.value, happenings)
      // Make lists sort again, because the events may have changed `failedUpdates`, which lists use as a filter.
      if (happenings.length > 0) this.appChanges += 1
      if (refusals !== undefined) this.refusals.value = refusals
      if (log_level !== undefined) this.logLevel.value = log_level
      if (fleet !== undefined) this.fleet.value = fleet
      this.#settle()
    })
  }

  #hold(topic: string, payload: string | null, at: string, isChange: boolean): void {
    if (payload === null) this.#topics.delete(topic)
    else this.#topics.add(topic)
    const own = this.topics.parse(topic)
    if (own === undefined) {
      this.memberStates.value = changed(this.memberStates.value, topic, readPayload('bridgeState', payload))
      return
    }
    const { owner } = own
    if (owner.kind === 'bridge') return void this.#holdBridge(own, payload)
    const hub = this.hub(owner.hub) ?? (payload === null ? undefined : this.#addHub(owner.hub))
    if (hub === undefined) return
    const changedAt = isChange ? Date.parse(at) : undefined
    if (owner.kind === 'hub') this.#holdHub(hub, own, payload, changedAt)
    else if (own.name === 'app') this.#holdApp(hub, topic, owner.app, payload, changedAt)
    else this.#holdPart(hub, topic, own, payload)
  }

  /** Applies a change of any topic of an app except its state. */
  #holdPart(hub: HubEntry, topic: string, { name, owner }: OwnTopic, payload: string | null): void {
    if (owner.kind !== 'app' && owner.kind !== 'setting') return
    const entry = hub.apps.value.get(owner.app)
    if (entry === undefined) return
    if (owner.kind === 'setting') {
      entry.settings.value = changed(entry.settings.value, owner.name, readPayload('setting', payload))
    } else {
      const other = payload === null ? undefined : { name, payload }
      entry.topics.value = changed(entry.topics.value, topic, other)
      this.appChanges += 1
    }
  }

  #holdBridge({ name }: OwnTopic, payload: string | null): void {
    if (name === 'bridgeState') this.bridgeState.value = readPayload(name, payload)
    else if (name === 'bridgeInfo') this.bridgeInfo.value = readPayload(name, payload)
    else if (name === 'bridgeHealth') this.health.value = readPayload(name, payload)
    else if (name === 'bridgeDiscovery') this.discovery.value = readPayload(name, payload)
  }

  #holdHub(hub: HubEntry, { name }: OwnTopic, payload: string | null, changedAt: number | undefined): void {
    if (name === 'hubState') {
      const state = readPayload(name, payload)
      if (changedAt !== undefined && state !== hub.state.value) hub.since.value = changedAt
      hub.state.value = state
      if (state === 'online') forgetUnreachable(hub)
    } else if (name === 'hubInfo') hub.info.value = readPayload(name, payload)
    else if (name === 'hubHealth') hub.health.value = readPayload(name, payload)
    const isKnown = hub.state.value !== undefined || hub.info.value !== undefined
    if (payload === null && !isKnown) this.hubs.value = this.hubs.value.filter((other) => other !== hub)
  }

  #holdApp(hub: HubEntry, topic: string, id: string, payload: string | null, changedAt: number | undefined): void {
    this.appChanges += 1
    const app = readPayload('app', payload)
    const apps = hub.apps.value
    const known = apps.get(id)
    if ((app === undefined) !== (known === undefined)) this.#outdated.add(hub)
    if (app === undefined) {
      apps.delete(id)
      return
    }
    const entry = known ?? newApp(hub.name, topic, app)
    apps.set(id, entry)
    if (changedAt !== undefined) addSample(entry.samples, [changedAt, app.cpu_percent, app.memory_bytes])
    entry.app.value = app
  }

  #addHub(name: string): HubEntry {
    const hub = newHub(name)
    this.hubs.value = [...this.hubs.value, hub].toSorted((one, other) => collator.compare(one.name, other.name))
    return hub
  }

  #settle(): void {
    for (const hub of this.#outdated) hub.apps.value = new Map(hub.apps.value)
    this.#outdated.clear()
  }
}

function forgetUnreachable({ apps }: HubEntry): void {
  for (const { outcome } of apps.value.values()) {
    if (outcome.value?.code === 'hub_unreachable') outcome.value = undefined
  }
}

/** Returns a changed copy of the map. `undefined` removes the key. */
function changed<T>(map: ReadonlyMap<string, T>, key: string, value: T | undefined): ReadonlyMap<string, T> {
  const after = new Map(map)
  if (value === undefined) after.delete(key)
  else after.set(key, value)
  return after
}

const msOf = (time: string | undefined) => (time === undefined ? undefined : Date.parse(time))
