/** The hub's stored API keys, as hashes. Other processes can also create, list and revoke keys. */
import { createHash, randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { checkScopes, EmulatorOptionError, normaliseScope, writtenScope } from '../scopes.ts'
import { type Database, HubDataError, holdsHub, openDatabase } from './data-folder.ts'

const KEY_BYTES = 32
/** Users revoke a key by its id, which reveals nothing about the key. */
const ID_BYTES = 4

const KeyRow = v.object({ id: v.string(), name: v.string(), scopes: v.string(), at: v.number() })
const HashRow = v.object({ hash: v.instance(Uint8Array), scopes: v.string() })
const VersionRow = v.object({ data_version: v.number() })

/** The keys of an open data folder. Each lookup sees the changes of other processes. */
export function storedKeys({ sql }: Database) {
  /** Hash of a key → its scopes. */
  let known: ReadonlyMap<string, readonly string[]> = new Map()
  /** Version of the database when it was last read; `undefined` if it must be read again. */
  let lastVersion: number | undefined

  /** `undefined` for a key that the hub does not know. */
  function scopesOf(key: string): readonly string[] | undefined {
    return current().get(hashOf(key).toString('hex'))
  }

  /** Creates a key and returns it. The key cannot be shown again, because only its hash is stored. */
  function create(scopes: readonly string[], { name = '', now = Date.now() } = {}) {
    const key = randomBytes(KEY_BYTES).toString('base64url')
    const id = randomBytes(ID_BYTES).toString('hex')
    const kept = [...new Set(scopes.map(normaliseScope))]
    const insert = 'INSERT INTO apiKey (id, hash, name, scopes, at) VALUES (?, ?, ?, ?, ?)'
    sql.prepare(insert).run(id, hashOf(key), name, kept.join(' '), now)
    lastVersion = undefined
    return { id, name, scopes: kept, at: now, key }
  }

  /** Oldest first. */
  function list() {
    const rows = sql.prepare('SELECT id, name, scopes, at FROM apiKey ORDER BY rowid').all()
    return rows.map((row) => v.parse(KeyRow, row)).map((row) => ({ ...row, scopes: row.scopes.split(' ') }))
  }

  /** Returns whether the key existed. */
  function revoke(id: string): boolean {
    const { changes } = sql.prepare('DELETE FROM apiKey WHERE id = ?').run(id)
    lastVersion = undefined
    return Number(changes) > 0
  }

  /** SQLite changes the version with each write of another connection; reading it takes a few microseconds. */
  function current(): ReadonlyMap<string, readonly string[]> {
    const row = sql.prepare('PRAGMA data_version').get()
    const { data_version: version } = v.parse(VersionRow, row)
    if (version === lastVersion) return known
    const rows = sql.prepare('SELECT hash, scopes FROM apiKey').all()
    known = new Map(
      rows
        .map((found) => v.parse(HashRow, found))
        .map(({ hash, scopes }) => [Buffer.from(hash).toString('hex'), scopes.split(' ')]),
    )
    lastVersion = version
    return known
  }

  return { scopesOf, create, list, revoke }
}

/** One fast hash is enough: a key of 256 random bits cannot be guessed at any speed. */
const hashOf = (key: string): Buffer => createHash('sha256').update(key).digest()

const MAX_NAME = 100

/**
 * `hub2mqtt emulate keys`: manages the keys of a data folder, even while a hub uses it. All errors are for the user.
 * `make` creates the folder, for keys before the hub's first start. @throws HubDataError if the folder has no hub
 */
export function keysOf(folder: string, { make = false } = {}) {
  if (!make && !holdsHub(folder)) throw new HubDataError(`${folder}: contains no hub`)
  const database = openDatabase(folder, { alone: false })
  const keys = storedKeys(database)
  return {
    create(scopes: readonly string[], name: string) {
      checkScopes('--scope', scopes)
      if (name.length > MAX_NAME) throw new EmulatorOptionError(`--name: at most ${MAX_NAME} characters`)
      return keys.create(scopes, { name })
    },
    /** One line per key. */
    list: () =>
      keys.list().map(({ id, at, scopes, name }) => {
        // Use the spelling of the reference, which is also valid as input.
        const written = scopes.map(writtenScope).join(',')
        return [id, new Date(at).toISOString(), written, name].join('  ').trimEnd()
      }),
    revoke(id: string): void {
      if (!keys.revoke(id)) throw new HubDataError('no key has this id; see hub2mqtt emulate keys list')
    },
    [Symbol.dispose]: () => database.close(),
  }
}
