/** From what a hub says to what changed: the pure heart, which neither keeps nor publishes anything. */
import { type App, type AppPatch, patchApp } from './app.ts'

/** One message of the hub's realtime channel, decoded. */
export type AppEvent =
  | { readonly type: 'create' | 'update'; readonly id: string; readonly patch: AppPatch }
  | { readonly type: 'delete'; readonly id: string }

/** A whole list as read over REST, and what the realtime channel said while it was being read. */
export interface Snapshot {
  readonly type: 'snapshot'
  /** `undefined` for an app that is there but cannot be read: what is known of it stays. */
  readonly records: ReadonlyMap<string, AppPatch | undefined>
  readonly meanwhile: readonly AppEvent[]
}

export type Apps = ReadonlyMap<string, App>

/** One app before and after; `undefined` on a side where it is not there. Never equal on both sides. */
export interface Change {
  readonly id: string
  readonly before: App | undefined
  readonly after: App | undefined
}

/**
 * What an event or a fresh list changes in `apps`; empty if nothing, so that a reconnect costs no message. An update of
 * an app that is not known changes nothing: it may be late news of one that is gone.
 */
export function reduce(apps: Apps, input: AppEvent | Snapshot): Change[] {
  return input.type === 'snapshot' ? reduceSnapshot(apps, input) : reduceEvent(apps, input)
}

function reduceEvent(apps: Apps, event: AppEvent): Change[] {
  const before = apps.get(event.id)
  if (before === undefined && event.type === 'update') return []
  const after = event.type === 'delete' ? undefined : patchApp(before, event.id, event.patch)
  return before === after ? [] : [{ id: event.id, before, after }]
}

/**
 * A list may be older than an event that overtook it, so events received during the read are laid over the list
 * before the comparison: otherwise a subscriber would see the app jump back and forth.
 */
function reduceSnapshot(apps: Apps, { records, meanwhile }: Snapshot): Change[] {
  const wanted = new Map<string, App>()
  for (const [id, patch] of records) {
    const known = apps.get(id)
    if (patch !== undefined) wanted.set(id, sameOr(known, patchApp(undefined, id, patch)))
    else if (known !== undefined) wanted.set(id, known)
  }
  for (const event of meanwhile) {
    const { id } = event
    if (event.type === 'delete') wanted.delete(id)
    else if (event.type === 'create' || wanted.has(id)) {
      wanted.set(id, sameOr(apps.get(id), patchApp(wanted.get(id), id, event.patch)))
    }
  }
  const changes: Change[] = []
  for (const [id, before] of apps) if (!wanted.has(id)) changes.push({ id, before, after: undefined })
  for (const [id, after] of wanted) {
    const before = apps.get(id)
    if (before !== after) changes.push({ id, before, after })
  }
  return changes
}

/** Keeps the reference of an app that is equal to what is known. */
function sameOr(known: App | undefined, read: App): App {
  return known === undefined ? read : patchApp(known, read.id, read)
}
