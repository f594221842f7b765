/** The latest events and answers, as the lists show them. */
import type * as v from 'valibot'

import { type EventType, GUARD_EVENT_TYPES } from '../../../../contract/events.ts'
import { PUBLICATIONS } from '../../../../contract/publications.ts'
import { EVENT_OF_HUB } from '../../../../contract/schemas.ts'
import { Template } from '../../../../contract/templates.ts'
import type { FeedEvent } from '../../../server/api/protocol.ts'
import { ANSWER, type Answer, parseJson, read } from './payload.ts'

type BridgeEvent = v.InferOutput<typeof EVENT_OF_HUB>

export type Entry = {
  /** Counts up; the key in lists. */
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

const MOST = 500

/** Reads events and answers below a base topic. */
export class ActivityReader {
  readonly #hubEvent: Template
  readonly #base: string
  #count = 0

  constructor(base: string) {
    this.#base = `${base}/`
    this.#hubEvent = new Template(PUBLICATIONS.hubEvent.topic, base)
  }

  /** The list with these added; the same list if nothing is added. */
  add(before: readonly Entry[], happenings: readonly FeedEvent[]): readonly Entry[] {
    const added = happenings.flatMap((one) => this.#read(one) ?? [])
    return added.length === 0 ? before : [...before, ...added].slice(-MOST)
  }

  #read({ at, topic, payload }: FeedEvent): Entry | undefined {
    const hub = this.#hubEvent.match(topic)?.['hub']
    if (hub !== undefined) {
      // The same event is on its app's topic too.
      const event = read(EVENT_OF_HUB, parseJson(payload))
      return event && { ...this.#head(event.at), hub, app: event.app, kind: 'event', event }
    }
    if (!this.#isResult(topic)) return undefined
    const answer = read(ANSWER, parseJson(payload))
    if (answer === undefined) return undefined
    // The data may be large, and may be settings.
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

const FAILURES: ReadonlySet<EventType> = new Set([
  'crashed',
  'command_failed',
  'gave_up',
  'update_failed',
  'bad_update',
])

/** Whether it is a failure, which lists mark. */
export function isFailure(entry: Entry): boolean {
  return entry.kind === 'answer' ? !entry.answer.ok : FAILURES.has(entry.event.event_type)
}

const isOfGuardian = (entry: Entry | undefined) => entry?.kind === 'event' && GUARDIAN.has(entry.event.event_type)
const GUARDIAN: ReadonlySet<string> = new Set(GUARD_EVENT_TYPES)

/** Related entries, such as a crash and what the guardian does about it. */
export interface Happening {
  /** The most informative entry. */
  readonly lead: Entry
  /** All of them, oldest first. */
  readonly entries: readonly Entry[]
}

/** Maximum time between the entries of one happening. */
const TOGETHER_MS = 10_000

const BEGINNINGS: ReadonlySet<EventType> = new Set(['crashed', 'installed', 'updated', 'removed'])

/** Groups the entries of one app within seconds; a crash, a new version and a client's command start a new group. */
export function happenings(entries: readonly Entry[]): Happening[] {
  const found: [Entry, ...Entry[]][] = []
  const open = new Map<string, Entry[]>()
  for (const [i, entry] of entries.entries()) {
    const isSame = ({ hub, app }: Entry) => hub === entry.hub && app === entry.app
    const key = JSON.stringify([entry.hub, entry.app])
    const before = open.get(key)
    const isNext = before !== undefined && entry.at - (before.at(-1)?.at ?? 0) < TOGETHER_MS
    // The guardian reports its action after the answer to its command.
    const isGuards = () => isOfGuardian(entries.slice(i + 1).find(isSame))
    if (isNext && (entry.kind === 'answer' ? isGuards() : follows(entry.event, before))) before.push(entry)
    else {
      const begun: [Entry] = [entry]
      found.push(begun)
      open.set(key, begun)
    }
  }
  return found.map((all) => ({ lead: all.find(isFailure) ?? all.find(isOfGuardian) ?? all[0], entries: all }))
}

function follows(event: BridgeEvent, before: readonly Entry[]): boolean {
  if (event.event_type !== 'command_failed') return !BEGINNINGS.has(event.event_type)
  return before.some((entry) => entry.kind === 'answer' && !entry.answer.ok && entry.answer.command === event.command)
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
