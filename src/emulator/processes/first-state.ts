/** What an app begins with. */
import type { StoredApp } from '../data/state.ts'
import type { State } from './world.ts'

type Given = Pick<StoredApp, 'id' | 'folder' | 'version' | 'channel' | 'origin'> & Partial<StoredApp>

/** An app that has just been installed, and never crashed. */
export function newApp(given: Given): StoredApp {
  return {
    enabled: true,
    autoupdate: true,
    crashed: false,
    crashedMessage: null,
    crashedCount: 0,
    exitCode: null,
    exitSignal: null,
    ...given,
  }
}

/** The first values of an app's settings, where it has none from an earlier time. Returns the names of those added. */
export function addSettings(state: State, id: string, settings: Readonly<Record<string, unknown>> = {}): string[] {
  const kept = state.settings(id)
  const added = Object.keys(settings).filter((name) => !kept.has(name))
  for (const name of added) state.setSetting(id, name, settings[name])
  return added
}
