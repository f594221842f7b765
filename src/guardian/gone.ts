/** Remembers apps for a day after a hub stops listing them, as a list can be wrong, and an app can be reinstalled. */
import type { GoneApp } from '../contract/guard.ts'
import type { SavedState } from './restart-state.ts'
import type { WatchedApp } from './watched-app.ts'

const HOUR_MS = 3_600_000
const KEPT_MS = 24 * HOUR_MS
/** Maximum per hub; the newest apps are kept. */
const MAX_APPS = 50
/** Limits on the broker: history entries per app, and characters for all apps. */
const MAX_ENTRIES = 5
const MAX_LENGTH = 64 * 1024

interface Gone {
  /** The app as last seen, or its state as saved by an earlier run. */
  readonly known: WatchedApp | SavedState
  /** In `elapsed` milliseconds; may be before this run. */
  readonly since: number
}

/** @param shows whether the configuration shows an app; hidden apps are not remembered */
export function newGoneApps(shows: (app: string) => boolean) {
  const apps = new Map<string, Gone>()
  return { has: (app: string) => apps.has(app), clear: () => apps.clear(), add, take, payload }

  function add(now: number, app: string, known: WatchedApp | SavedState, hours = 0): void {
    if (isNothing(leftOf(known))) return
    apps.delete(app)
    apps.set(app, { known, since: now - hours * HOUR_MS })
    forget(now)
  }

  /** Returns and forgets the state of an app; `undefined` if none is remembered. */
  function take(now: number, app: string): WatchedApp | SavedState | undefined {
    forget(now)
    const known = apps.get(app)?.known
    apps.delete(app)
    return known
  }

  /** Returns all apps with as much history as fits or, if no history fits, the newest apps without history. */
  function payload(now: number): readonly GoneApp[] {
    forget(now)
    const all = [...apps].reverse().map(([app, { known, since }]): GoneApp => {
      const { guard, history, memory } = leftOf(known)
      return { app, gone_hours: Math.floor((now - since) / HOUR_MS), guard, history, memory }
    })
    const withEntries = (most: number) => all.map((one) => ({ ...one, history: one.history.slice(0, most) }))
    for (let most = MAX_ENTRIES; most > 0; most -= 1) {
      const entries = withEntries(most)
      if (JSON.stringify(entries).length <= MAX_LENGTH) return entries
    }
    let room = MAX_LENGTH - 2
    return withEntries(0).filter((entry) => {
      room -= JSON.stringify(entry).length + 1
      return room >= 0
    })
  }

  function forget(now: number): void {
    const surplus = apps.size - MAX_APPS
    for (const [i, [app, { since }]] of [...apps].entries()) {
      if (i < surplus || now - since >= KEPT_MS || !shows(app)) apps.delete(app)
    }
  }
}

function leftOf(known: WatchedApp | SavedState): SavedState {
  if (!('facts' in known)) return known
  const { state: guard = null, history = [], memory = null } = known.facts ?? {}
  return { guard, history, memory }
}

function isNothing({ guard, history, memory }: SavedState): boolean {
  return memory === null && history.length === 0 && !guard?.restarts && (guard?.snoozed_until ?? null) === null
}
