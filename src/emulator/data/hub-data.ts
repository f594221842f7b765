/** Opens the data of an emulated hub, in a data folder or in a temporary one. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from './database.ts'
import { StoredKeys } from './keys.ts'
import { Packages } from './packages.ts'
import { SqliteState } from './state.ts'

export interface HubData extends AsyncDisposable {
  /** Absolute path. */
  readonly folder: string
  readonly state: SqliteState
  readonly packages: Packages
  readonly keys: StoredKeys
}

/** @throws HubDataError if the folder cannot be used, or another hub uses it */
export async function openHubData(
  options: {
    /** The data folder, created if it does not exist; default: a temporary one, removed at the end. */
    readonly folder?: string | undefined
    /** The folder of the local app store. */
    readonly store?: string | undefined
    /** Folders of sample apps by their id. */
    readonly samples?: ReadonlyMap<string, string> | undefined
    /** Of the hub; default: the one it had, or a new one. */
    readonly hubId?: string | undefined
    /** Called with the problem of each version in the store that is left out, and with ignored fields of manifests. */
    readonly tell?: ((problem: string) => void) | undefined
  } = {},
): Promise<HubData> {
  await using opened = new AsyncDisposableStack()
  const folder = options.folder ?? (await temporaryFolder(opened))
  const database = openDatabase(folder, { alone: true })
  opened.defer(() => database.close())
  const state = new SqliteState(database, { hubId: options.hubId })
  const packages = new Packages({ ...options, data: database.folder })
  await packages.sweep(new Set(state.apps().map((app) => app.folder)))
  const resources = opened.move()
  return {
    folder: database.folder,
    state,
    packages,
    keys: new StoredKeys(database),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

async function temporaryFolder(opened: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hub2mqtt-hub-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  return folder
}
