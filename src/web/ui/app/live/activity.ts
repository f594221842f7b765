import type * as v from 'valibot'
import { readJson } from '../../../../base/read-json.ts'
import { findCommand } from '../../../../contract/commands.ts'
import { type EventType, GUARD_EVENT_TYPES } from '../../../../contract/events.ts'
import { PUBLICATIONS } from '../../../../contract/publications.ts'
import { EVENT_OF_HUB } from '../../../../contract/schemas.ts'
import { Template } from '../../../../contract/templates.ts'
import type { FeedEvent } from '../../../server/api/protocol.ts'
import { ANSWER, type Answer } from './payload.ts'

type BridgeEvent = v.InferOutput<typeof EVENT_OF_HUB>

export type Entry = {
  /** A number that increases with each entry. It is the key of the entry in lists. */
  readonly number: number
  /** The time of the entry, in epoch milliseconds. */
  readonly at: number
  /** `null` if the entry is about the bridge itself. */
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

export class ActivityReader {
  readonly #hubEvent: Template
  #count = 0

  constructor(base: string) {
    this.#hubEvent = new Template(PUBLICATIONS.hubEvent.topic, base)
  }

  /** Adds the events that the page shows to a list. Returns the same list if there are none. */
  add(before: readonly Entry[], events: readonly FeedEvent[]): readonly Entry[] {
    const added = events.flatMap((one) => this.#read(one) ?? [])
    return added.length === 0 ? before : [...before, ...added].slice(-MAX_ENTRIES)
  }

  #read({ at, topic, payload }: FeedEvent): Entry | undefined {
    const hub = this.#hubEvent.match(topic)?.['hub']
    if (hub !== undefined) {
      // Ignore the same event on the app's own topic.
      const event = readJson(EVENT_OF_HUB, payload)
      return event && { ...this.#head(event.at), hub, app: event.app, kind: 'event', event }
    }
    // No other message of the bridge has the structure of an answer.
    const answer = readJson(ANSWER, payload)
    if (answer === undefined) return undefined
    // Do not keep the data, which may be large or contain settings.
    const { data: _, ...entry } = answer
    return { ...this.#head(at), hub: entry.hub, app: entry.app, kind: 'answer', answer: entry }
  }

  #head(at: string): { number: number; at: number } {
    this.#count += 1
    return { number: this.#count, at: Date.parse(at) }
  }
}

const FAILURES = new Set<EventType>(['crashed', 'command_failed', 'gave_up', 'update_failed', 'bad_update'])

export const isFailure = (entry: Entry): boolean =>
  entry.kind === 'answer' ? !entry.answer.ok : FAILURES.has(entry.event.event_type)

/** Returns the apps, as `hub/id`, whose last update failed and whose version has not changed since. */
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

/** Returns the messages of an app's crashes, newest first. */
export function crashTexts(entries: readonly Entry[], hub: string, app: string): string[] {
  return entries
    .flatMap((entry) => {
      const isOne = entry.kind === 'event' && entry.hub === hub && entry.app === app
      return isOne && entry.event.event_type === 'crashed' ? (entry.event.message ?? []) : []
    })
    .toReversed()
}

type EventEntry = Extract<Entry, { kind: 'event' }>
type AnswerEntry = Extract<Entry, { kind: 'answer' }>

const isEvent = (entry: Entry | undefined): entry is EventEntry => entry?.kind === 'event'
const isOfGuardian = (entry: Entry | undefined) => isEvent(entry) && GUARDIAN.has(entry.event.event_type)
const GUARDIAN: ReadonlySet<string> = new Set(GUARD_EVENT_TYPES)

/** Related entries, oldest first, such as a crash and the guardian's reaction. `lead` is the most informative entry. */
type Group = { readonly lead: Entry; readonly entries: readonly Entry[] }

/** Maximum time between two entries of a group. */
const TOGETHER_MS = 10_000
/** Maximum time between the end of a command and its published answer. */
const PUBLISHED_MS = 100

const isNear = (one: Entry | undefined, other: Entry, ms: number) =>
  one !== undefined && Math.abs(other.at - one.at) < ms

/** Event that starts a group → commands that can cause it. An event that follows such a command joins its group. */
const BEGINNINGS: { readonly [Type in EventType]?: readonly string[] } = {
  crashed: [],
  installed: ['install'],
  updated: ['install', 'update'],
  removed: ['uninstall'],
}

/**
 * Groups entries of one app that follow each other within seconds. A crash, a new version and a client's command start
 * a new group. The group of a command includes the events that arrived while the command was running.
 */
export function groupsOf(entries: readonly Entry[]): Group[] {
  const found: [Entry, ...Entry[]][] = []
  const open = new Map<string, [Entry, ...Entry[]]>()
  for (const [i, entry] of entries.entries()) {
    const isSame = ({ hub, app }: Entry) => hub === entry.hub && app === entry.app
    const key = JSON.stringify([entry.hub, entry.app])
    const before = open.get(key)
    const isNext = before !== undefined && isNear(before.at(-1), entry, TOGETHER_MS)
    // An answer directly before an event of the guardian belongs to the guardian's own command, so it starts no group.
    const isGuards = () => isOfGuardian(entries.slice(i + 1).find(isSame))
    if (isNext && (isEvent(entry) ? follows(entry, before) : isGuards() || caused(entry, before))) before.push(entry)
    else {
      const begun: [Entry] = [entry]
      found.push(begun)
      open.set(key, begun)
    }
  }
  return found.map((all) => ({ lead: leadOf(all), entries: all }))
}

function leadOf(all: readonly [Entry, ...Entry[]]): Entry {
  const isStart = (entry: Entry) => isEvent(entry) && BEGINNINGS[entry.event.event_type] !== undefined
  const isAnswer = (entry: Entry) => !isEvent(entry)
  return all.find(isFailure) ?? all.find(isOfGuardian) ?? all.find(isStart) ?? all.find(isAnswer) ?? all[0]
}

function follows(entry: EventEntry, before: readonly Entry[]): boolean {
  const { event } = entry
  const isAfter = (ok: boolean, commands: readonly string[]) =>
    before.some((one) => !isEvent(one) && one.answer.ok === ok && commands.includes(one.answer.command))
  if (event.event_type === 'command_failed') return isAfter(false, [event.command])
  const causes = BEGINNINGS[event.event_type]
  return causes === undefined || isAfter(true, causes)
}

/** Returns `true` if the command can have caused the first entry, and was running when that entry arrived. */
function caused({ at, answer }: AnswerEntry, before: readonly [Entry, ...Entry[]]): boolean {
  const [first] = before
  const isWrite = findCommand('app', answer.command, false)?.write === true
  const causes = isEvent(first) ? (BEGINNINGS[first.event.event_type] ?? [answer.command]) : []
  const isDuring = first.at >= at - answer.duration_ms - PUBLISHED_MS
  return isWrite && isDuring && causes.includes(answer.command) && before.every(isEvent)
}

/** A group, `count` equal groups, or consecutive updates of several apps. */
export type Row = Readonly<ReturnType<typeof rowOf>>

/** Maximum time between two equal groups of a row, and between two updates of a row. An update can take minutes. */
const REPEATED_MS = 3_600_000
const ONE_GO_MS = 600_000

/** Returns the rows, newest first. Equal groups of a day share a row. */
export function rowsOf(entries: readonly Entry[]): Row[] {
  const found: { readonly is: string; readonly all: [Group, ...Group[]] }[] = []
  const open = new Map<string, (typeof found)[number]>()
  for (const one of groupsOf(entries)) {
    const { hub, app, at } = one.lead
    const isOfUpdates = isUpdate(one.lead)
    const own = JSON.stringify([hub, app])
    const place = isOfUpdates ? JSON.stringify([hub]) : own
    const is = isOfUpdates ? '' : contentOf(one.lead)
    const before = open.get(place)
    const last = before?.all.at(-1)?.lead
    const isNext = isNear(last, one.lead, isOfUpdates ? ONE_GO_MS : REPEATED_MS) && dayOf(last?.at ?? 0) === dayOf(at)
    if (before?.is === is && isNext) before.all.push(one)
    else {
      const begun = { is, all: [one] satisfies [Group] }
      found.push(begun)
      open.set(place, begun)
    }
    // Another entry about an updated app must start a new row.
    if (isOfUpdates) open.delete(own)
  }
  return found
    .map(({ all }) => rowOf(all))
    .toReversed()
    .toSorted((one, other) => other.at - one.at)
}

function rowOf(all: readonly [Group, ...Group[]]) {
  const { lead } = all.at(-1) ?? all[0]
  const entries = all.flatMap((one) => one.entries)
  return { lead, entries, at: lead.at, count: all.length, apps: new Set(entries.flatMap(({ app }) => app ?? [])) }
}

const UPDATES: ReadonlySet<string> = new Set(['updated', 'updated_by_guard', 'install', 'update-all'])

function isUpdate(entry: Entry): boolean {
  return UPDATES.has(isEvent(entry) ? entry.event.event_type : entry.answer.command) && !isFailure(entry)
}

/** Returns a string for comparison, without the time and other parts that always differ. */
function contentOf(entry: Entry): string {
  if (!isEvent(entry)) return JSON.stringify([entry.answer.command, entry.answer.ok, entry.answer.error?.message])
  const { event } = entry
  const changed = event.event_type === 'changed' ? event.changed : []
  return JSON.stringify({ ...event, changed, at: '', count: 0, transaction: '' })
}

/** Returns the start of the day that contains `at`, in the user's time zone. */
export const dayOf = (at: number): number => new Date(at).setHours(0, 0, 0, 0)

export const dayBefore = (day: number): number => dayOf(day - 1)
