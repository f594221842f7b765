/** Opens the data of an emulated hub, in a data folder or a temporary one. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from './data-folder.ts'
import { storedKeys } from './keys.ts'
import { packagesOf, type Sources } from './packages.ts'
import { SqliteState } from './state.ts'

/** @throws HubDataError if the folder cannot be used, or another hub uses it */
export async function openHubData(
  options: Sources & {
    /** The data folder, created if it does not exist; default: a temporary one, removed at the end. */
    readonly folder?: string | undefined
    /** Id of the hub; default: its former one, or a new one. */
    readonly hubId?: string | undefined
  } = {},
) {
  await using opened = new AsyncDisposableStack()
  const folder = options.folder ?? (await temporaryFolder(opened))
  const database = openDatabase(folder, { alone: true })
  opened.defer(() => database.close())
  const state = new SqliteState(database, options.hubId)
  const packages = packagesOf(database.folder, options)
  await packages.sweep(new Set(state.apps().map((app) => app.folder)))
  const resources = opened.move()
  return {
    /** Absolute path. */
    folder: database.folder,
    state,
    packages,
    keys: storedKeys(database),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

export type HubData = Awaited<ReturnType<typeof openHubData>>

async function temporaryFolder(opened: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hub2mqtt-hub-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  return folder
}
