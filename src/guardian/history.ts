/** The history of an app, newest first, and the values derived from it. */
import type { HistoryEntry, Reason } from '../contract/guard.ts'

export type History = readonly HistoryEntry[]

/** Returns the events since the last reset of the restart count, which are the events after the time `resetAfter`. */
export function sinceReset(history: History, resetAfter: string | null | undefined): History {
  const end = history.findIndex(({ at }) => at === resetAfter)
  return end === -1 ? history : history.slice(0, end)
}

/**
 * Evaluates the history since the app last ran for `calmMs` without a crash or restart. Returns the `times` of the
 * counted restarts since the latest update to a version that was new, oldest first, and all `versions` of the app.
 */
export function sinceCalm(history: History, calmMs: number): { times: number[]; versions: string[] } {
  const entries: HistoryEntry[] = []
  let later: number | undefined
  for (const entry of history) {
    const time = Date.parse(entry.at)
    const ranOn = isOwnRestart(entry) || entry.what === 'update'
    if (ranOn && later !== undefined && later - time >= calmMs) break
    entries.push(entry)
    if (entry.what === 'crash' || entry.what === 'restart') later = time
  }
  const had = (entry: HistoryEntry) => [entry.version, ...(entry.what === 'update' ? [previousOf(entry)] : [])]
  const fresh = entries.findIndex(
    (entry, i) =>
      entry.what === 'update' &&
      [previousOf(entry), ...entries.slice(i + 1).flatMap(had)].every((one) => one !== entry.version),
  )
  const isCounted = (entry: HistoryEntry) =>
    isOwnRestart(entry) && ![AFTER_STORM, RETRY].includes(entry.message ?? '') && entry.reason !== 'schedule'
  const counted = entries.slice(0, fresh === -1 ? entries.length : fresh).filter(isCounted)
  const versions = entries.flatMap(had).filter((version) => version !== null)
  return { times: counted.map(({ at }) => Date.parse(at)).reverse(), versions: [...new Set(versions)] }
}

/** The messages of restarts that do not count against the limit. */
export const AFTER_STORM = 'after a storm'
export const RETRY = 'tried again after giving up'

export const isOwnRestart = ({ what, by }: HistoryEntry) => what === 'restart' && by === 'guard'

const FROM = 'from '
/** Returns the message of an update. `previousOf` reads the previous version from this message. */
export const updatedFrom = (version: string) => FROM + version
const previousOf = ({ message }: HistoryEntry) => message?.slice(FROM.length) ?? null

/** Returns the reason of the newest entry of a kind; `undefined` if the app's version has changed since that entry. */
export function lasting(history: History, what: HistoryEntry['what'], version: string | null): Reason | undefined {
  for (const entry of history) {
    if (entry.what === what) return entry.version === version ? (entry.reason ?? 'unknown') : undefined
    if (entry.what === 'update') return undefined
  }
  return undefined
}
