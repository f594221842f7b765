/** The data folder of an emulated hub and its SQLite database: checks, lock, permissions and tables. */
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
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite'
import { ExpectedError } from '../../base/errors.ts'
import { systemCode } from '../../base/failures.ts'
import { messageOf } from '../hub-error.ts'

/** Thrown if the data folder cannot be used; the message is for the user. */
export class HubDataError extends ExpectedError {
  override readonly name = 'HubDataError'
}

/** The folder with the code of installed apps, below the data folder. */
export const APPS_FOLDER = 'apps'
const DATABASE = 'hub.db'
const LOCK = 'hub.lock'
const FILES = [DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`, LOCK]
/** Names of files that a new data folder may contain: those of an interrupted first start, and of a new disk. */
const OWN_NAMES = [...FILES, 'lost+found']

export const holdsHub = (folder: string): boolean => existsSync(join(folder, DATABASE))

/** Creates a folder and its parents. Avoids `mkdirSync` with `recursive`, which never returns below `/proc`. */
export function makeFolders(folder: string, mode = 0o777): void {
  if (existsSync(folder)) return
  const parent = dirname(folder)
  if (parent !== folder) makeFolders(parent, mode)
  try {
    mkdirSync(folder, { mode })
  } catch (error) {
    // Ignore the error if the folder now exists, because another process may have created it.
    if (!existsSync(folder)) throw error
  }
}

/** Creates a data folder, or checks an existing one without changing it. @throws HubDataError */
function makeFolder(folder: string): void {
  try {
    makeFolders(folder, 0o700)
    const foreign = holdsHub(folder) ? undefined : readdirSync(folder).find((name) => !OWN_NAMES.includes(name))
    // Reject the folder of another program, because the hub deletes unused code and changes the folder's mode.
    if (foreign !== undefined) throw new HubDataError(`${folder}: is not empty and contains no hub`)
    for (const name of FILES) {
      const path = join(folder, name)
      // The target of a link may belong to another program, and opening a pipe would block.
      if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === false) {
        throw new HubDataError(`${path}: is not a plain file; it was not changed`)
      }
    }
    const apps = join(folder, APPS_FOLDER)
    // Reject a link, because each start of the hub removes unused code from this folder.
    if (lstatSync(apps, { throwIfNoEntry: false })?.isDirectory() === false) {
      throw new HubDataError(`${apps}: is not a folder; it was not changed`)
    }
    syncFolder(dirname(folder))
  } catch (cause) {
    if (cause instanceof HubDataError) throw cause
    const why = systemCode(cause) || messageOf(cause)
    throw new HubDataError(`${folder}: cannot be used as the data folder (${why})`, { cause })
  }
}

function makePrivate(folder: string): void {
  if ((statSync(folder).mode & 0o077) === 0 || process.platform === 'win32') return
  try {
    chmodSync(folder, 0o700)
  } catch (cause) {
    throw new HubDataError(`${folder}: other users can read it, and its mode cannot be set; use a subfolder`, { cause })
  }
}

/**
 * Locks a data folder with SQLite and a separate file, because Node has no file locks. The operating system releases
 * the lock when the process exits. The database itself is not locked, because keys can change while the hub is running.
 */
function lockFolder(folder: string): DatabaseSync {
  const path = join(folder, LOCK)
  const problem = (cause: unknown) =>
    isBusy(cause) ? `${folder}: another hub uses this folder` : `${path}: cannot be locked (${messageOf(cause)})`
  return useFile(path, { timeout: 0 }, problem, (lock) => {
    // Avoid a journal file on disk, because nothing is ever written to this database.
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE;')
    chmodSync(path, 0o600)
  })
}

const SQLITE_BUSY = 5

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
}

/** Writes a folder's entries to disk, so that they survive a power failure. Windows does not need or allow this. */
export function syncFolder(path: string): void {
  if (process.platform === 'win32') return
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Identifies databases of hub2mqtt. The bytes are the characters `h2mq`. */
const APPLICATION_ID = 0x68326d71
/** The version of the schema. Increase it with each change to the schema. */
const SCHEMA_VERSION = 1
/** How long a write waits for another process, which locks the database for a few milliseconds at most. */
const BUSY_MS = 2000

const TABLES = `
  CREATE TABLE hub (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
  CREATE TABLE app (
    id TEXT PRIMARY KEY,
    folder TEXT NOT NULL,
    version TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    autoupdate INTEGER NOT NULL,
    channel TEXT NOT NULL,
    origin TEXT NOT NULL,
    crashed INTEGER NOT NULL,
    crashedMessage TEXT,
    crashedCount INTEGER NOT NULL,
    exitCode INTEGER,
    exitSignal TEXT
  ) STRICT;
  CREATE TABLE setting (
    owner TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (owner, name)
  ) STRICT;
  CREATE TABLE notification (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    text TEXT NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE apiKey (
    id TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, name TEXT NOT NULL, scopes TEXT NOT NULL, at INTEGER NOT NULL
  ) STRICT;
`

export type Database = ReturnType<typeof openDatabase>

/** Opens or creates the database of a folder. `alone`: refuses a folder that another hub uses. @throws HubDataError */
export function openDatabase(path: string, { alone }: { readonly alone: boolean }) {
  const folder = resolve(path)
  makeFolder(folder)
  inspect(join(folder, DATABASE))
  using opened = new DisposableStack()
  if (alone) opened.use(lockFolder(folder))
  makePrivate(folder)
  const sql = opened.use(openFile(folder))
  const resources = opened.move()
  /** `folder`: absolute path of the data folder. */
  return { folder, sql, close: () => resources.dispose() }
}

/** Runs a transaction. SQLite cannot nest transactions, so an inner call joins the outer transaction. */
export function transaction<T>(sql: DatabaseSync, task: () => T): T {
  if (sql.isTransaction) return task()
  sql.exec('BEGIN IMMEDIATE')
  try {
    const result = task()
    sql.exec('COMMIT')
    return result
  } catch (error) {
    if (sql.isTransaction) sql.exec('ROLLBACK')
    throw error
  }
}

/** Checks an existing database before anything is written, so that another program's file is not changed. */
function inspect(path: string): void {
  if (!existsSync(path)) return
  // A writable connection merges the WAL on close; a read-only connection leaves an empty WAL if there was none.
  useFile(path, { readOnly: existsSync(`${path}-wal`) }, unreadable(path), (sql) => check(sql, path)).close()
}

function openFile(folder: string): DatabaseSync {
  const path = join(folder, DATABASE)
  return useFile(path, {}, unreadable(path), (sql) => {
    // SQLite creates its other files with the mode of the database.
    chmodSync(path, 0o600)
    prepare(sql)
    syncFolder(folder)
  })
}

function useFile(
  path: string,
  options: DatabaseSyncOptions,
  problem: (cause: unknown) => string,
  use: (sql: DatabaseSync) => void,
) {
  let sql: DatabaseSync | undefined
  try {
    sql = new DatabaseSync(path, { timeout: BUSY_MS, ...options })
    use(sql)
    return sql
  } catch (cause) {
    sql?.close()
    if (cause instanceof HubDataError) throw cause
    throw new HubDataError(problem(cause), { cause })
  }
}

const unreadable = (path: string) => (cause: unknown) =>
  isBusy(cause)
    ? `${path}: locked by another program`
    : `${path}: cannot be read as the data of a hub (${messageOf(cause)}); it was not changed`

const isEmpty = (sql: DatabaseSync): boolean => pragma(sql, 'schema_version') === 0 && pragma(sql, 'user_version') === 0

function check(sql: DatabaseSync, path: string): void {
  const version = pragma(sql, 'user_version')
  if (!isEmpty(sql) && pragma(sql, 'application_id') !== APPLICATION_ID) {
    throw new HubDataError(`${path}: is the database of another program`)
  }
  if (typeof version !== 'number' || version > SCHEMA_VERSION) {
    throw new HubDataError(
      `${path}: was written by a newer hub2mqtt (format ${version}; this one reads up to ${SCHEMA_VERSION})`,
    )
  }
  const health = pragma(sql, 'quick_check')
  if (health !== 'ok') throw new HubDataError(`${path}: is damaged (${String(health).trim()}); it was not changed`)
}

function prepare(sql: DatabaseSync): void {
  const isNew = isEmpty(sql)
  sql.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
  if (!isNew) return
  transaction(sql, () => {
    // Check again within the transaction, because another process may have created the tables first.
    if (pragma(sql, 'user_version') !== 0) return
    sql.exec(`${TABLES} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION};`)
  })
}

const pragma = (sql: DatabaseSync, name: string): unknown => Object.values(sql.prepare(`PRAGMA ${name}`).get() ?? {})[0]
