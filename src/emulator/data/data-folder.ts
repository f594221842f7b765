/** The data folder of an emulated hub: which folders are valid, the lock, and file permissions. */
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
import { systemCode } from '../../base/failures.ts'

/** The data folder cannot be used; the message is for the user. */
export class HubDataError extends ExpectedError {
  override readonly name = 'HubDataError'
}

/** The folder with the code of installed apps, below the data folder. */
export const APPS_FOLDER = 'apps'
export const DATABASE = 'hub.db'
const LOCK = 'hub.lock'
const FILES = [DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`, LOCK]
/** Names allowed in a folder that no hub has used: leftovers of an interrupted first start, and those of a new disk. */
const OWN_NAMES = [...FILES, 'lost+found']

/** Whether a folder holds the data of a hub. */
export const holdsHub = (folder: string): boolean => existsSync(join(folder, DATABASE))

/** Creates a data folder, or checks an existing one without changing it. @throws HubDataError */
export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const foreign = holdsHub(folder) ? undefined : readdirSync(folder).find((name) => !OWN_NAMES.includes(name))
    // The hub sweeps the apps folder and changes the mode, which must not happen to a folder of another program.
    if (foreign !== undefined) throw new HubDataError(`${folder}: is not empty and holds no hub`)
    for (const name of FILES) {
      const path = join(folder, name)
      // The target of a link belongs to something else, and opening a pipe would block.
      if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === false) {
        throw new HubDataError(`${path}: is not a plain file; it was left as it is`)
      }
    }
    const apps = join(folder, APPS_FOLDER)
    // Each start removes unused code from this folder, which must not happen to the target of a link.
    if (lstatSync(apps, { throwIfNoEntry: false })?.isDirectory() === false) {
      throw new HubDataError(`${apps}: is not a folder; it was left as it is`)
    }
    syncFolderNow(dirname(folder))
  } catch (cause) {
    if (cause instanceof HubDataError) throw cause
    throw new HubDataError(`${folder}: cannot be used as data folder (${systemCode(cause) || messageOf(cause)})`, {
      cause,
    })
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
 * SQLite holds an operating system lock on a separate file, because Node offers no locks. The lock ends with the
 * process, however that ends. It is not on the database, because keys are created and revoked while the hub runs.
 */
export function lockFolder(folder: string): DatabaseSync {
  const path = join(folder, LOCK)
  let lock: DatabaseSync | undefined
  try {
    createPrivate(path)
    lock = new DatabaseSync(path, { timeout: 0 })
    // Nothing is ever written, so avoid a journal file on disk.
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE;')
    chmodSync(path, 0o600)
    return lock
  } catch (cause) {
    lock?.close()
    if (isBusy(cause)) throw new HubDataError(`${folder}: another hub uses this folder`, { cause })
    throw new HubDataError(`${path}: cannot be locked (${messageOf(cause)})`, { cause })
  }
}

/** Opens no existing file: on POSIX systems, closing it would release this process's locks on it, SQLite's included. */
export function createPrivate(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

const SQLITE_BUSY = 5

export function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Makes the names in a folder survive a power failure. Windows cannot open folders, and does this by itself. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return
  await using folder = await open(path, 'r')
  await folder.sync()
}

/** The synchronous form, for the start, when no request waits. */
export function syncFolderNow(path: string): void {
  if (process.platform === 'win32') return
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
