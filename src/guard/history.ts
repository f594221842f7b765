/** What has happened to an app, newest first, and what follows from it. */
import type { HistoryEntry, Reason } from '../contract/guard.ts'

export type History = readonly HistoryEntry[]

/** With one entry more, and no more than are kept. */
export function withEntry(history: History, entry: HistoryEntry, kept: number): History {
  return [entry, ...history].slice(0, kept)
}

/** Without an entry that did not come true. */
export function without(history: History, entry: HistoryEntry): History {
  return history.filter((one) => one !== entry)
}

/** Times of the guardian's restarts since the app last ran for `calmMs` or had a new version, oldest first. */
export function restartsSinceCalm(history: History, calmMs: number): number[] {
  const times: number[] = []
  let later: number | undefined
  for (const { what, at, by } of history) {
    const time = Date.parse(at)
    if (what === 'update') break
    if (what === 'restart' && by === 'guard') {
      if (later !== undefined && later - time >= calmMs) break
      times.unshift(time)
    }
    if (what === 'crash' || what === 'restart') later = time
  }
  return times
}

/** Why the newest entry of a kind was made, if nothing newer makes it void. */
export function lasting(history: History, what: HistoryEntry['what'], version: string | null): Reason | undefined {
  for (const entry of history) {
    if (entry.what === what) return entry.version === version ? (entry.reason ?? 'unknown') : undefined
    if (entry.what === 'update') return undefined
  }
  return undefined
}
