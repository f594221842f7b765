/** The page's data on hubs and apps. Each app has its own signals, so that a change renders one row. */
import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals'
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
export interface Further {
  /** The name of the topic's row. */
  readonly name: PublicationName
  readonly payload: string
}

export interface AppEntry {
  readonly hub: string
  readonly id: string
  /** Its topic, which is unique. */
  readonly topic: string
  readonly app: Signal<App>
  /** Its name, or its id if it has none. */
  readonly name: ReadonlySignal<string>
  /** Usage of the last 15 minutes, oldest first. Grows in place, always before `app` changes. */
  readonly samples: Sample[]
  /** Published settings. */
  readonly settings: Signal<ReadonlyMap<string, Json>>
  /** The contents of the app's other retained topics, by topic. */
  readonly further: Signal<ReadonlyMap<string, Further>>
  /** The sent command that has no answer yet. */
  readonly running: Signal<string | undefined>
  readonly outcome: Signal<Outcome | undefined>
}

export interface HubEntry {
  readonly name: string
  readonly state: Signal<Payload<'hubState'> | undefined>
  /** When its state last changed, in epoch milliseconds. */
  readonly since: Signal<number | undefined>
  readonly info: Signal<Payload<'hubInfo'> | undefined>
  readonly health: Signal<Payload<'hubHealth'> | undefined>
  /** Replaced as a whole when an app is added or removed. */
  readonly apps: Signal<ReadonlyMap<string, AppEntry>>
}

export const KEPT_USAGE_MS = 15 * 60_000

export function newApp(hub: string, topic: string, first: App): AppEntry {
  const app = signal(first)
  return {
    hub,
    id: first.id,
    topic,
    app,
    name: computed(() => app.value.name?.trim() || first.id),
    samples: [],
    settings: signal(new Map()),
    further: signal(new Map()),
    running: signal(undefined),
    outcome: signal(undefined),
  }
}

export function newHub(name: string): HubEntry {
  return {
    name,
    state: signal(undefined),
    since: signal(undefined),
    info: signal(undefined),
    health: signal(undefined),
    apps: signal(new Map()),
  }
}

/** Adds a sample of the usage, and drops samples that are no longer shown. */
export function addSample(samples: Sample[], sample: Sample): void {
  samples.push(sample)
  const oldest = sample[0] - KEPT_USAGE_MS
  let outdated = 0
  while ((samples[outdated]?.[0] ?? oldest) < oldest) outdated += 1
  if (outdated > 0) samples.splice(0, outdated)
}

type FurtherName = 'guard' | 'history' | 'crash' | 'appLinks' | 'appUpdate'

/** What has been read of each content, so that lists of many apps read it once. */
const readOnce = new WeakMap<Further, { readonly [N in FurtherName]?: Payload<N> | undefined }>()

/** The payload of another topic of the app; `undefined` if there is none, or if its schema refuses it. */
export function furtherOf<N extends FurtherName>({ further }: AppEntry, name: N): Payload<N> | undefined {
  for (const one of further.value.values()) {
    if (one.name !== name) continue
    const known = readOnce.get(one) ?? { [name]: readPayload(name, one.payload) }
    readOnce.set(one, known)
    return known[name]
  }
  return undefined
}
