/** The latest events and answers, as the lists show them. */
import type * as v from 'valibot'
import type { EventType } from '../../../../contract/events.ts'
import { PUBLICATIONS } from '../../../../contract/publications.ts'
import { EVENT_OF_HUB } from '../../../../contract/schemas.ts'
import { Template } from '../../../../contract/templates.ts'
import type { FeedEvent } from '../../../server/api/protocol.ts'
import { ANSWER, type Answer, parseJson, read } from './payload.ts'

type BridgeEvent = v.InferOutput<typeof EVENT_OF_HUB>

export type Entry = {
  /** Increases with each entry; the key in lists. */
  readonly number: number
  /** Epoch milliseconds. */
  readonly at: number
  /** `null`: the bridge itself. */
  readonly hub: string | null
  readonly app: string | null
} & (
  | { readonly kind: 'event'; readonly event: BridgeEvent }
  | {
      readonly kind: 'answer'
      readonly answer: Omit<Answer, 'data'> & { readonly error?: { readonly message: string } }
    }
)

const MAX_ENTRIES = 500

/** Reads events and answers below a base topic. */
export class ActivityReader {
  readonly #hubEvent: Template
  readonly #base: string
  #count = 0

  constructor(base: string) {
    this.#base = `${base}/`
    this.#hubEvent = new Template(PUBLICATIONS.hubEvent.topic, base)
  }

  /** Adds events to the list; returns the same list if none is added. */
  add(before: readonly Entry[], events: readonly FeedEvent[]): readonly Entry[] {
    const added = events.flatMap((one) => this.#read(one) ?? [])
    return added.length === 0 ? before : [...before, ...added].slice(-MAX_ENTRIES)
  }

  #read({ at, topic, payload }: FeedEvent): Entry | undefined {
    const hub = this.#hubEvent.match(topic)?.['hub']
    if (hub !== undefined) {
      // The topic of the app has the same event.
      const event = read(EVENT_OF_HUB, parseJson(payload))
      return event && { ...this.#head(event.at), hub, app: event.app, kind: 'event', event }
    }
    if (!this.#isResult(topic)) return undefined
    const answer = read(ANSWER, parseJson(payload))
    if (answer === undefined) return undefined
    // Drop the data, which may be large or contain settings.
    const { data: _, ...entry } = answer
    return { ...this.#head(at), hub: entry.hub, app: entry.app, kind: 'answer', answer: entry }
  }

  #head(at: string): { number: number; at: number } {
    this.#count += 1
    return { number: this.#count, at: Date.parse(at) }
  }

  #isResult(topic: string): boolean {
    if (!topic.startsWith(this.#base)) return false
    const levels = topic.slice(this.#base.length).split('/')
    return levels[levels[1] === 'app' ? 3 : 1] === 'result'
  }
}

const FAILURES = new Set<EventType>(['crashed', 'command_failed', 'gave_up', 'update_failed', 'bad_update'])

/** Whether the entry is a failure, which lists mark. */
export function isFailure(entry: Entry): boolean {
  return entry.kind === 'answer' ? !entry.answer.ok : FAILURES.has(entry.event.event_type)
}

/** Apps, as `hub/id`, whose update failed and whose version has not changed since. */
export function failedUpdates(entries: readonly Entry[]): ReadonlySet<string> {
  const failed = new Set<string>()
  for (const entry of entries) {
    if (entry.kind === 'answer') continue
    const app = `${entry.hub}/${entry.app}`
    if (entry.event.event_type === 'update_failed') failed.add(app)
    else if (entry.event.event_type === 'updated' || entry.event.event_type === 'removed') failed.delete(app)
  }
  return failed
}

/** The full texts of an app's crashes among these entries, newest first. */
export function crashTexts(entries: readonly Entry[], hub: string, app: string): string[] {
  return entries
    .flatMap((entry) => {
      const isOne = entry.kind === 'event' && entry.hub === hub && entry.app === app
      return isOne && entry.event.event_type === 'crashed' ? (entry.event.message ?? []) : []
    })
    .toReversed()
}
