/** Which entries of the activity belong together, and on which day they are listed. */
import { findCommand } from '../../../../contract/commands.ts'
import { type EventType, GUARD_EVENT_TYPES } from '../../../../contract/events.ts'
import { type Entry, isFailure } from './activity.ts'

type EventEntry = Extract<Entry, { kind: 'event' }>
type AnswerEntry = Extract<Entry, { kind: 'answer' }>

const isEvent = (entry: Entry | undefined): entry is EventEntry => entry?.kind === 'event'
const isOfGuardian = (entry: Entry | undefined) => isEvent(entry) && GUARDIAN.has(entry.event.event_type)
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
/** The time of an answer is that of its publication, a moment after its command ended. */
const PUBLISHED_MS = 100

const isNear = (one: Entry | undefined, other: Entry, ms: number) =>
  one !== undefined && Math.abs(other.at - one.at) < ms

/** Events that start a happening, unless a command has caused them, and the commands that can. */
const BEGINNINGS: { readonly [Type in EventType]?: readonly string[] } = {
  crashed: [],
  installed: ['install'],
  updated: ['install', 'update'],
  removed: ['uninstall'],
}

/**
 * Groups the entries of one app within seconds, in the order in which they came; a crash, a new version and a client's
 * command start a new group. A command takes in the events that came while it ran.
 */
export function happenings(entries: readonly Entry[]): Happening[] {
  const found: [Entry, ...Entry[]][] = []
  const open = new Map<string, [Entry, ...Entry[]]>()
  for (const [i, entry] of entries.entries()) {
    const isSame = ({ hub, app }: Entry) => hub === entry.hub && app === entry.app
    const key = JSON.stringify([entry.hub, entry.app])
    const before = open.get(key)
    const isNext = before !== undefined && isNear(before.at(-1), entry, TOGETHER_MS)
    // The guardian reports its action after the answer to its command.
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
  const isBeginning = (entry: Entry) => isEvent(entry) && BEGINNINGS[entry.event.event_type] !== undefined
  const isAnswer = (entry: Entry) => !isEvent(entry)
  return all.find(isFailure) ?? all.find(isOfGuardian) ?? all.find(isBeginning) ?? all.find(isAnswer) ?? all[0]
}

function follows(entry: EventEntry, before: readonly Entry[]): boolean {
  const { event } = entry
  const isAfter = (ok: boolean, commands: readonly string[]) =>
    before.some((one) => !isEvent(one) && one.answer.ok === ok && commands.includes(one.answer.command))
  if (event.event_type === 'command_failed') return isAfter(false, [event.command])
  const causes = BEGINNINGS[event.event_type]
  return causes === undefined || isAfter(true, causes)
}

/** Whether a command ran while all of these came, and can have caused the first of them. */
function caused({ at, answer }: AnswerEntry, before: readonly [Entry, ...Entry[]]): boolean {
  const [first] = before
  const isWrite = findCommand('app', answer.command, false)?.write === true
  const causes = isEvent(first) ? (BEGINNINGS[first.event.event_type] ?? [answer.command]) : []
  const isDuring = first.at >= at - answer.duration_ms - PUBLISHED_MS
  return isWrite && isDuring && causes.includes(answer.command) && before.every(isEvent)
}

/** A line of the list: one happening, the same one again and again, or the updates of several apps in one go. */
export interface Row extends Happening {
  /** When the latest of its happenings was. */
  readonly at: number
  /** How many happenings it has. */
  readonly count: number
  /** The ids of its apps. */
  readonly apps: ReadonlySet<string>
}

/** Maximum time between two happenings that are the same; an update can take minutes. */
const REPEATED_MS = 3_600_000
const ONE_GO_MS = 600_000

/** The lines of the list, newest first. What repeats is counted by day. */
export function rowsOf(entries: readonly Entry[]): Row[] {
  const found: { readonly is: string; readonly all: [Happening, ...Happening[]] }[] = []
  const open = new Map<string, (typeof found)[number]>()
  for (const one of happenings(entries)) {
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
      const begun = { is, all: [one] satisfies [Happening] }
      found.push(begun)
      open.set(place, begun)
    }
    // What the app does after its update is new.
    if (isOfUpdates) open.delete(own)
  }
  return found
    .map(({ all }) => rowOf(all))
    .toReversed()
    .toSorted((one, other) => other.at - one.at)
}

function rowOf(all: readonly [Happening, ...Happening[]]): Row {
  const { lead } = all.at(-1) ?? all[0]
  const entries = all.flatMap((one) => one.entries)
  return { lead, entries, at: lead.at, count: all.length, apps: new Set(entries.flatMap(({ app }) => app ?? [])) }
}

const UPDATES: ReadonlySet<string> = new Set(['updated', 'updated_by_guard', 'install', 'update-all'])

function isUpdate(entry: Entry): boolean {
  return UPDATES.has(isEvent(entry) ? entry.event.event_type : entry.answer.command) && !isFailure(entry)
}

/** What an entry says, without when it was and what differs each time. */
function contentOf(entry: Entry): string {
  if (!isEvent(entry)) return JSON.stringify([entry.answer.command, entry.answer.ok, entry.answer.error?.message])
  const { event } = entry
  const changed = event.event_type === 'changed' ? event.changed : []
  return JSON.stringify({ ...event, changed, at: '', count: 0, transaction: '' })
}

/** The beginning of the day in which a time is, in the viewer's time zone. */
export const dayOf = (at: number): number => new Date(at).setHours(0, 0, 0, 0)

/** The beginnings of the day after and the day before. */
export const dayAfter = (day: number): number => new Date(day).setHours(24, 0, 0, 0)
export const dayBefore = (day: number): number => dayOf(day - 1)
