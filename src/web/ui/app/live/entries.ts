/** The page's data on hubs and apps. Each app has its own signals, so that a change renders only one row. */
import { computed, signal } from '@preact/signals'
import type { Json } from '../../../../base/json.ts'
import type { Payload, PublicationName } from '../../../../contract/publications.ts'
import type { App } from '../../../../hub/app.ts'
import type { Sample } from '../../../server/api/protocol.ts'
import { readPayload } from './payload.ts'

/** The result of a command. */
export interface Outcome {
  readonly ok: boolean
  readonly text: string
}

/** The content of another topic of an app. */
export interface OtherTopic {
  /** The name of the topic's row. */
  readonly name: PublicationName
  readonly payload: string
}

export type AppEntry = Readonly<ReturnType<typeof newApp>>
export type HubEntry = Readonly<ReturnType<typeof newHub>>

export const KEPT_USAGE_MS = 15 * 60_000

export function newApp(hub: string, topic: string, first: App) {
  const app = signal(first)
  const samples: Sample[] = []
  return {
    hub,
    id: first.id,
    /** The target of the app's commands. */
    target: { hub, app: first.id },
    /** The app's topic, which is unique. */
    topic,
    app,
    /** The app's name, or its id if it has no name. */
    name: computed(() => app.value.name?.trim() || first.id),
    /** Usage of the last 15 minutes, oldest first. Samples are added in place, always before `app` changes. */
    samples,
    /** Published settings. */
    settings: signal<ReadonlyMap<string, Json>>(new Map()),
    /** The contents of the app's other retained topics, by topic. */
    topics: signal<ReadonlyMap<string, OtherTopic>>(new Map()),
    /** The command that is waiting for its answer. */
    running: signal<string | undefined>(undefined),
    outcome: signal<Outcome | undefined>(undefined),
  }
}

export function newHub(name: string) {
  return {
    name,
    state: signal<Payload<'hubState'> | undefined>(undefined),
    /** When the state last changed, in epoch milliseconds. */
    since: signal<number | undefined>(undefined),
    info: signal<Payload<'hubInfo'> | undefined>(undefined),
    health: signal<Payload<'hubHealth'> | undefined>(undefined),
    /** Only the store changes this map, and replaces the whole map when apps were added or removed. */
    apps: signal(new Map<string, AppEntry>()),
  }
}

/** Adds a sample of the usage, and drops samples that are no longer shown. */
export function addSample(samples: Sample[], sample: Sample): void {
  samples.push(sample)
  const oldest = sample[0] - KEPT_USAGE_MS
  const outdated = samples.findIndex(([at]) => at >= oldest)
  samples.splice(0, outdated)
}

type OtherTopicName = 'guard' | 'history' | 'crash' | 'appLinks' | 'appUpdate'

/** The parsed contents, so that lists of many apps parse each only once. */
const readOnce = new WeakMap<OtherTopic, { readonly [N in OtherTopicName]?: Payload<N> | undefined }>()

/** The payload of another topic of the app; `undefined` if it is missing or does not match its schema. */
export function readTopic<N extends OtherTopicName>({ topics }: AppEntry, name: N): Payload<N> | undefined {
  for (const one of topics.value.values()) {
    if (one.name !== name) continue
    const known = readOnce.get(one) ?? { [name]: readPayload(name, one.payload) }
    readOnce.set(one, known)
    return known[name]
  }
  return undefined
}
