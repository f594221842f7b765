/** The SQLite database in a data folder: its tables, and the checks that refuse databases of other programs. */
import { chmodSync, existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import {
  createPrivate,
  DATABASE,
  HubDataError,
  isBusy,
  lockFolder,
  makeFolder,
  makePrivate,
  messageOf,
  syncFolderNow,
} from './data-folder.ts'

/** `h2mq`: identifies our databases. */
const APPLICATION_ID = 0x68326d71
/** Increases with each change of the tables. */
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

export interface Database {
  /** Absolute path of the data folder. */
  readonly folder: string
  readonly sql: DatabaseSync
  /** Runs several writes atomically. */
  transaction<T>(task: () => T): T
  close(): void
}

/**
 * Opens the database of a folder, and creates both if needed. `alone`: as its only hub; otherwise beside a running one.
 * @throws HubDataError if the folder is unreadable, holds something else, or is used by another hub
 */
export function openDatabase(path: string, { alone }: { readonly alone: boolean }): Database {
  const folder = resolve(path)
  makeFolder(folder)
  look(join(folder, DATABASE))
  const lock = alone ? lockFolder(folder) : undefined
  try {
    makePrivate(folder)
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

/** Checks everything before changing anything, so that a foreign file stays as it is. */
function look(path: string): void {
  if (!existsSync(path)) return
  // A writable connection merges the WAL on close; a read-only one leaves an empty WAL if there was none.
  useFile(path, { readOnly: existsSync(`${path}-wal`) }, (sql) => check(sql, path)).close()
}

function openFile(folder: string): DatabaseSync {
  const path = join(folder, DATABASE)
  return useFile(path, {}, (sql) => {
    // SQLite gives its other files the mode of the database.
    chmodSync(path, 0o600)
    prepare(sql)
    syncFolderNow(folder)
  })
}

/** Opens and uses the file; on failure, closes it and throws an error for the user. */
function useFile(path: string, options: { readonly readOnly?: boolean }, use: (sql: DatabaseSync) => void) {
  let sql: DatabaseSync | undefined
  try {
    createPrivate(path)
    sql = new DatabaseSync(path, { timeout: BUSY_MS, ...options })
    use(sql)
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

const isEmpty = (sql: DatabaseSync): boolean => pragma(sql, 'schema_version') === 0 && pragma(sql, 'user_version') === 0

function check(sql: DatabaseSync, path: string): void {
  const version = pragma(sql, 'user_version')
  if (!isEmpty(sql) && pragma(sql, 'application_id') !== APPLICATION_ID) {
    throw new HubDataError(`${path}: is a database of another program`)
  }
  if (typeof version !== 'number' || version > SCHEMA_VERSION) {
    throw new HubDataError(
      `${path}: was written by a newer hub2mqtt (format ${version}; this one reads up to ${SCHEMA_VERSION})`,
    )
  }
  const health = pragma(sql, 'quick_check')
  if (health !== 'ok') throw new HubDataError(`${path}: is damaged (${String(health).trim()}); it was left as it is`)
}

function prepare(sql: DatabaseSync): void {
  const isNew = isEmpty(sql)
  sql.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
  if (!isNew) return
  transaction(sql, () => {
    // Another process may have created the tables first.
    if (pragma(sql, 'user_version') !== 0) return
    sql.exec(`${TABLES} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION};`)
  })
}

const pragma = (sql: DatabaseSync, name: string): unknown => Object.values(sql.prepare(`PRAGMA ${name}`).get() ?? {})[0]
