/** The data folder of an emulated hub, and the SQLite database in it: who may open it, and what is refused. */
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { syncFolder } from './sync.ts'

/** The data folder cannot be used; the message is for the person who named it. */
export class HubDataError extends Error {
  override readonly name = 'HubDataError'
}

/** Where the code of installed apps is kept, below the data folder. */
export const APPS_FOLDER = 'apps'
const DATABASE = 'hub.db'
const LOCK = 'hub.lock'
/** What may lie in a folder that no hub has used: what an interrupted first start leaves, and what a new disk has. */
const OWN_NAMES = [DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`, LOCK, 'lost+found']

/** `h2mq`: tells our database from those of other programs. */
const APPLICATION_ID = 0x68326d71
/** Counts up with each change of the tables. */
const SCHEMA_VERSION = 1
/** How long a write waits for another process, which holds the database for some milliseconds at most. */
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
    id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, text TEXT NOT NULL, at INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE apiKey (
    id TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, name TEXT NOT NULL, scopes TEXT NOT NULL, at INTEGER NOT NULL
  ) STRICT;
`

export interface Database {
  /** Absolute path of the data folder. */
  readonly folder: string
  readonly sql: DatabaseSync
  /** Several writes as one: all of them are kept or none. */
  transaction<T>(task: () => T): T
  close(): void
}

/** Whether a hub has its data there. */
export function holdsHub(folder: string): boolean {
  return existsSync(join(folder, DATABASE))
}

/**
 * Opens the database of a data folder, and makes both where there is nothing yet. `alone`: as the one hub that may use
 * the folder; without it, beside a hub that runs.
 * @throws HubDataError where the folder holds something else or what cannot be read, or another hub uses it
 */
export function openDatabase(path: string, { alone }: { readonly alone: boolean }): Database {
  const folder = resolve(path)
  makeFolder(folder)
  const lock = alone ? lockFolder(folder) : undefined
  try {
    const sql = openFile(folder)
    return { folder, sql, transaction: (task) => transaction(sql, task), close: () => closeAll(sql, lock) }
  } catch (error) {
    lock?.close()
    throw error
  }
}

function closeAll(sql: DatabaseSync, lock: DatabaseSync | undefined): void {
  if (sql.isOpen) sql.close()
  if (lock?.isOpen) lock.close()
}

function transaction<T>(sql: DatabaseSync, task: () => T): T {
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

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const foreign = holdsHub(folder) ? undefined : readdirSync(folder).find((name) => !OWN_NAMES.includes(name))
    // Its apps folder is swept and its mode changed: nothing that may happen to a folder of something else.
    if (foreign !== undefined) throw new HubDataError(`${folder}: is not empty and holds no hub`)
    chmodSync(folder, 0o700)
    syncFolder(dirname(folder))
  } catch (cause) {
    if (cause instanceof HubDataError) throw cause
    throw new HubDataError(`${folder}: cannot be used as data folder (${codeOf(cause)})`, { cause })
  }
}

/**
 * The lock is one of the operating system that SQLite holds on a file of its own, as Node has none to offer. It ends
 * with the process, however that ends. It is not on the database, as keys are made and revoked while the hub runs.
 */
function lockFolder(folder: string): DatabaseSync {
  const path = join(folder, LOCK)
  createPrivate(path)
  const lock = new DatabaseSync(path, { timeout: 0 })
  try {
    // Nothing is ever written: a journal on disk would be one more file.
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE;')
    return lock
  } catch (cause) {
    lock.close()
    if (isBusy(cause)) throw new HubDataError(`${folder}: another hub uses this folder`, { cause })
    throw new HubDataError(`${path}: cannot be locked (${messageOf(cause)})`, { cause })
  }
}

function openFile(folder: string): DatabaseSync {
  const path = join(folder, DATABASE)
  let sql: DatabaseSync | undefined
  try {
    createPrivate(path)
    sql = new DatabaseSync(path, { timeout: BUSY_MS })
    prepare(sql, path)
    syncFolder(folder)
    return sql
  } catch (cause) {
    sql?.close()
    if (cause instanceof HubDataError) throw cause
    if (isBusy(cause)) throw new HubDataError(`${path}: another program holds it`, { cause })
    throw new HubDataError(`${path}: cannot be read as a hub's data (${messageOf(cause)}); it was left as it is`, {
      cause,
    })
  }
}

/** Everything is checked before the first write, so that a file that is not ours stays as it is. */
function prepare(sql: DatabaseSync, path: string): void {
  const empty = pragma(sql, 'schema_version') === 0 && pragma(sql, 'user_version') === 0
  const version = pragma(sql, 'user_version')
  if (!empty && pragma(sql, 'application_id') !== APPLICATION_ID) {
    throw new HubDataError(`${path}: is a database of another program`)
  }
  if (typeof version !== 'number' || version > SCHEMA_VERSION) {
    throw new HubDataError(
      `${path}: was written by a newer hub2mqtt (format ${version}; this one reads up to ${SCHEMA_VERSION})`,
    )
  }
  const health = pragma(sql, 'quick_check')
  if (health !== 'ok') throw new HubDataError(`${path}: is damaged (${String(health).trim()}); it was left as it is`)
  sql.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
  if (!empty) return
  transaction(sql, () => {
    // Another process may have been faster.
    if (pragma(sql, 'user_version') !== 0) return
    sql.exec(`${TABLES} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION};`)
  })
}

function pragma(sql: DatabaseSync, name: string): unknown {
  return Object.values(sql.prepare(`PRAGMA ${name}`).get() ?? {})[0]
}

/**
 * SQLite gives its other files the mode of the database. What is there already must not be opened: on POSIX systems, to
 * close a file ends every lock that this process has on it, SQLite's included.
 */
function createPrivate(path: string): void {
  if (existsSync(path)) chmodSync(path, 0o600)
  else closeSync(openSync(path, 'a', 0o600))
}

const SQLITE_BUSY = 5

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : messageOf(error)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
