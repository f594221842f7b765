/** Remembers apps for a day after a hub stops listing them: a list can be wrong, and an app can be reinstalled. */
import type { GoneApp } from '../contract/guard.ts'
import type { SavedState } from './restart-state.ts'
import type { WatchedApp } from './watched-app.ts'

const HOUR_MS = 3_600_000
const MEMORY_MS = 24 * HOUR_MS
/** Maximum number of remembered apps per hub. If there are more, the apps that disappeared last are kept. */
const MAX_APPS = 50
/** Limits on the data on the broker: history entries per app, and the total number of characters. */
const MAX_ENTRIES = 5
const MAX_LENGTH = 64 * 1024

interface Gone {
  /** The app as last seen, or its state as saved by an earlier run. */
  readonly state: WatchedApp | SavedState
  /** When the app disappeared, in `elapsed` milliseconds. This time may be before the start of this run. */
  readonly since: number
}

/** @param shows whether the configuration shows an app; hidden apps are not remembered */
export function newGoneApps(shows: (app: string) => boolean) {
  const apps = new Map<string, Gone>()
  return { has: (app: string) => apps.has(app), clear: () => apps.clear(), add, take, payload }

  function add(now: number, app: string, state: WatchedApp | SavedState, hours = 0): void {
    if (isNothing(savedStateOf(state))) return
    apps.delete(app)
    apps.set(app, { state, since: now - hours * HOUR_MS })
    forget(now)
  }

  /** Removes and returns the stored state of an app; `undefined` if there is no state. */
  function take(now: number, app: string): WatchedApp | SavedState | undefined {
    forget(now)
    const state = apps.get(app)?.state
    apps.delete(app)
    return state
  }

  /** Returns all apps with as much history as fits. If no history fits, returns only the newest apps that fit. */
  function payload(now: number): readonly GoneApp[] {
    forget(now)
    const all = [...apps].reverse().map(([app, { state, since }]): GoneApp => {
      const { guard, history, memory } = savedStateOf(state)
      return { app, gone_hours: Math.floor((now - since) / HOUR_MS), guard, history, memory }
    })
    const withEntries = (max: number) => all.map((one) => ({ ...one, history: one.history.slice(0, max) }))
    for (let max = MAX_ENTRIES; max > 0; max -= 1) {
      const entries = withEntries(max)
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
      if (i < surplus || now - since >= MEMORY_MS || !shows(app)) apps.delete(app)
    }
  }
}

function savedStateOf(state: WatchedApp | SavedState): SavedState {
  if (!('facts' in state)) return state
  const { state: guard = null, history = [], memory = null } = state.facts ?? {}
  return { guard, history, memory }
}

function isNothing({ guard, history, memory }: SavedState): boolean {
  return memory === null && history.length === 0 && !guard?.restarts && (guard?.snoozed_until ?? null) === null
}
