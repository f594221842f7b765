/** The last events and answers, as the lists show them. */

import type { EventType } from '../../../../contract/events.ts'
import { PUBLICATIONS } from '../../../../contract/publications.ts'
import { Template } from '../../../../contract/templates.ts'
import type { FeedEvent } from '../../../server/api/protocol.ts'
import { type Answer, type BridgeEvent, parseJson, readAnswer, readEvent } from './payload.ts'

export type Entry = {
  /** Counts up; the key in lists. */
  readonly number: number
  /** Epoch milliseconds. */
  readonly at: number
  /** `null`: of the bridge itself. */
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

  /** The list with these added; the same list if none of them is shown. */
  add(before: readonly Entry[], happenings: readonly FeedEvent[]): readonly Entry[] {
    const read = happenings.flatMap((one) => this.#read(one) ?? [])
    return read.length === 0 ? before : withoutRepeats([...before, ...read]).slice(-MOST)
  }

  #read({ at, topic, payload }: FeedEvent): Entry | undefined {
    const hub = this.#hubEvent.match(topic)?.['hub']
    if (hub !== undefined) {
      // The same event is on its app's topic too.
      const event = readEvent(parseJson(payload))
      return event && { ...this.#head(event.at), hub, app: event.app, kind: 'event', event }
    }
    if (!this.#isResult(topic)) return undefined
    const answer = readAnswer(parseJson(payload))
    if (answer === undefined) return undefined
    // The data can be large, and can be settings.
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

/** How far apart the event and the answer of one failure can be. */
const SAME_MS = 10_000

/** An answer says more than the event of the same failure. */
function withoutRepeats(entries: readonly Entry[]): readonly Entry[] {
  const failed = entries.filter((entry) => entry.kind === 'answer' && !entry.answer.ok)
  const isTold = ({ hub, app, at }: Entry, command: string) =>
    failed.some((entry) => {
      const isSame = entry.hub === hub && entry.app === app && Math.abs(entry.at - at) < SAME_MS
      return isSame && entry.kind === 'answer' && entry.answer.command === command
    })
  return entries.filter((entry) => {
    if (entry.kind === 'answer' || entry.event.event_type !== 'command_failed') return true
    return !isTold(entry, entry.event.command)
  })
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

/** The whole texts of an app's crashes, newest first: those among these entries. */
export function crashTexts(entries: readonly Entry[], hub: string, app: string): string[] {
  return entries
    .flatMap((entry) => {
      const isOne = entry.kind === 'event' && entry.hub === hub && entry.app === app
      return isOne && entry.event.event_type === 'crashed' ? (entry.event.message ?? []) : []
    })
    .toReversed()
}
