/** The data folder of an emulated hub: what may be one, who may use it, and who may read it. */
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ExpectedError } from '../../base/errors.ts'

/** The data folder cannot be used; the message is for the person who named it. */
export class HubDataError extends ExpectedError {
  override readonly name = 'HubDataError'
}

/** Where the code of installed apps is kept, below the data folder. */
export const APPS_FOLDER = 'apps'
export const DATABASE = 'hub.db'
const LOCK = 'hub.lock'
const FILES = [DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`, LOCK]
/** What may lie in a folder that no hub has used: what an interrupted first start leaves, and what a new disk has. */
const OWN_NAMES = [...FILES, 'lost+found']

/** Whether a hub has its data there. */
export function holdsHub(folder: string): boolean {
  return existsSync(join(folder, DATABASE))
}

/** Makes a data folder, or checks that it is one, and leaves that as it is. @throws HubDataError */
export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const foreign = holdsHub(folder) ? undefined : readdirSync(folder).find((name) => !OWN_NAMES.includes(name))
    // Its apps folder is swept and its mode changed: nothing that may happen to a folder of something else.
    if (foreign !== undefined) throw new HubDataError(`${folder}: is not empty and holds no hub`)
    for (const name of FILES) {
      const path = join(folder, name)
      // What a link leads to belongs to something else, and a pipe would be waited for.
      if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === false) {
        throw new HubDataError(`${path}: is not a plain file; it was left as it is`)
      }
    }
    const apps = join(folder, APPS_FOLDER)
    // What is not in use is removed from it at each start, which must not happen to what a link leads to.
    if (lstatSync(apps, { throwIfNoEntry: false })?.isDirectory() === false) {
      throw new HubDataError(`${apps}: is not a folder; it was left as it is`)
    }
    syncFolderNow(dirname(folder))
  } catch (cause) {
    if (cause instanceof HubDataError) throw cause
    throw new HubDataError(`${folder}: cannot be used as data folder (${codeOf(cause)})`, { cause })
  }
}

export function makePrivate(folder: string): void {
  if ((statSync(folder).mode & 0o077) === 0 || process.platform === 'win32') return
  try {
    chmodSync(folder, 0o700)
  } catch (cause) {
    throw new HubDataError(`${folder}: is open to others and cannot be closed; name a folder inside it`, { cause })
  }
}

/**
 * The lock is one of the operating system that SQLite holds on a file of its own, as Node has none to offer. It ends
 * with the process, however that ends. It is not on the database, as keys are made and revoked while the hub runs.
 */
export function lockFolder(folder: string): DatabaseSync {
  const path = join(folder, LOCK)
  let lock: DatabaseSync | undefined
  try {
    createPrivate(path)
    lock = new DatabaseSync(path, { timeout: 0 })
    // Nothing is ever written: a journal on disk would be one more file.
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE;')
    chmodSync(path, 0o600)
    return lock
  } catch (cause) {
    lock?.close()
    if (isBusy(cause)) throw new HubDataError(`${folder}: another hub uses this folder`, { cause })
    throw new HubDataError(`${path}: cannot be locked (${messageOf(cause)})`, { cause })
  }
}

/** Does not open an existing file: on POSIX systems, closing it would end every lock of this process on it, SQLite's included. */
export function createPrivate(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

const SQLITE_BUSY = 5

export function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : messageOf(error)
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Makes the names in a folder survive a power failure. Windows opens no folders, and keeps them by itself. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return
  await using folder = await open(path, 'r')
  await folder.sync()
}

/** For the start, while no request waits. */
export function syncFolderNow(path: string): void {
  if (process.platform === 'win32') return
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
