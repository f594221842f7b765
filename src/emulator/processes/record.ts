/** The stored state of an app that is a process, and the wire record made of it and of its manifest. */
import type { Manifest } from '../data/manifest.ts'
import type { SqliteState, StoredApp } from '../data/state.ts'
import { type AppRecord, type Flavour, GENERATIONS, NO_USAGE, recordOf } from '../records.ts'

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

/**
 * Adds the default settings of an app, except those kept from an earlier installation. Returns the names of those
 * added.
 */
export function addSettings(
  state: SqliteState,
  id: string,
  settings: Readonly<Record<string, unknown>> = {},
): string[] {
  const kept = state.settings(id)
  const added = Object.keys(settings).filter((name) => !kept.has(name))
  for (const name of added) state.setSetting(id, name, settings[name])
  return added
}

/** The record of an app that does not run. */
export function recordFor(app: StoredApp, manifest: Manifest, flavour: Flavour, update: string | undefined): AppRecord {
  const { id, version, enabled, autoupdate, channel, origin } = app
  const { name, author, settings, permissions, color } = manifest
  const seed = { id, name, version, author, enabled, autoupdate, channel, origin, update }
  const { stands, crash, counter } = GENERATIONS[flavour]
  return {
    ...recordOf({ ...seed, settings, permissions, color, hasDrivers: false }, flavour),
    ...stands('stopped'),
    usage: NO_USAGE,
    [counter]: app.crashedCount,
    ...(app.crashed && crash(app)),
  }
}
