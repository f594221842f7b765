/** The API keys that a hub keeps: made, listed and revoked by other processes too, and stored as hashes. */
import { createHash, randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { normaliseScope } from '../scopes.ts'
import type { Database } from './database.ts'

export interface StoredKey {
  /** For people, to revoke it by; it says nothing of the key itself. */
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[]
  /** Epoch milliseconds. */
  readonly at: number
}

const KEY_BYTES = 32
const ID_BYTES = 4

const KeyRow = v.object({ id: v.string(), name: v.string(), scopes: v.string(), at: v.number() })
const HashRow = v.object({ hash: v.instance(Uint8Array), scopes: v.string() })
const VersionRow = v.object({ data_version: v.number() })

/** The keys of an open data folder. A change that another process makes is seen at the next question. */
export class StoredKeys {
  readonly #database: Database
  /** Scopes by the hash of their key. */
  #known: ReadonlyMap<string, readonly string[]> = new Map()
  /** Of the database, as this connection saw it last; undefined where it has to be read anew. */
  #version: number | undefined

  constructor(database: Database) {
    this.#database = database
  }

  /** `undefined` for a key that the hub does not know. */
  scopesOf(key: string): readonly string[] | undefined {
    return this.#current().get(hashOf(key).toString('hex'))
  }

  /** Makes a key and returns it: it is not kept, so this is the only time that it can be seen. */
  create(scopes: readonly string[], { name = '', now = Date.now() } = {}): StoredKey & { readonly key: string } {
    const key = randomBytes(KEY_BYTES).toString('base64url')
    const id = randomBytes(ID_BYTES).toString('hex')
    const kept = [...new Set(scopes.map(normaliseScope))]
    const insert = 'INSERT INTO apiKey (id, hash, name, scopes, at) VALUES (?, ?, ?, ?, ?)'
    this.#database.sql.prepare(insert).run(id, hashOf(key), name, kept.join(' '), now)
    this.#version = undefined
    return { id, name, scopes: kept, at: now, key }
  }

  /** Oldest first. */
  list(): StoredKey[] {
    const rows = this.#database.sql.prepare('SELECT id, name, scopes, at FROM apiKey ORDER BY rowid').all()
    return rows.map((row) => v.parse(KeyRow, row)).map((row) => ({ ...row, scopes: row.scopes.split(' ') }))
  }

  /** Whether there was such a key. */
  revoke(id: string): boolean {
    const { changes } = this.#database.sql.prepare('DELETE FROM apiKey WHERE id = ?').run(id)
    this.#version = undefined
    return Number(changes) > 0
  }

  /** The version changes with each write of another connection, and costs some microseconds to ask for. */
  #current(): ReadonlyMap<string, readonly string[]> {
    const row = this.#database.sql.prepare('PRAGMA data_version').get()
    const { data_version: version } = v.parse(VersionRow, row)
    if (version === this.#version) return this.#known
    const rows = this.#database.sql.prepare('SELECT hash, scopes FROM apiKey').all()
    this.#known = new Map(
      rows
        .map((found) => v.parse(HashRow, found))
        .map(({ hash, scopes }) => [Buffer.from(hash).toString('hex'), scopes.split(' ')]),
    )
    this.#version = version
    return this.#known
  }
}

/** One fast hash is enough: a key of 256 random bits cannot be guessed, however fast guesses are tried. */
function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}
