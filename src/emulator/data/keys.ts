/** The hub's stored API keys, as hashes. Other processes can also create, list and revoke keys. */
import { createHash, randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { checkScopes, EmulatorOptionError, normaliseScope, writtenScope } from '../scopes.ts'
import { type Database, HubDataError, holdsHub, openDatabase } from './data-folder.ts'

const KEY_BYTES = 32
/** Length of a key's id. Users revoke a key by its id, which reveals nothing about the key. */
const ID_BYTES = 4
const MAX_NAME = 100

const Scopes = v.pipe(
  v.string(),
  v.transform((text) => text.split(' ')),
)
const KeyRow = v.object({ id: v.string(), name: v.string(), scopes: Scopes, at: v.number() })

/** Manages the stored keys. Each lookup sees the changes made by other processes. */
export function storedKeys({ sql }: Database) {
  const find = sql.prepare('SELECT scopes FROM apiKey WHERE hash = ?')
  return {
    /** Returns the scopes of a key; `undefined` for an unknown key. */
    scopesOf(key: string): readonly string[] | undefined {
      const row = find.get(hashOf(key))
      return row && v.parse(Scopes, row['scopes'])
    },

    /** Creates a key and returns it. The key cannot be shown again, because only its hash is stored. */
    create(scopes: readonly string[], name = '') {
      checkScopes('--scope', scopes)
      if (name.length > MAX_NAME) throw new EmulatorOptionError(`--name: at most ${MAX_NAME} characters`)
      const key = randomBytes(KEY_BYTES).toString('base64url')
      const id = randomBytes(ID_BYTES).toString('hex')
      const stored = [...new Set(scopes.map(normaliseScope))].join(' ')
      const insert = 'INSERT INTO apiKey (id, hash, name, scopes, at) VALUES (?, ?, ?, ?, ?)'
      sql.prepare(insert).run(id, hashOf(key), name, stored, Date.now())
      return { id, key }
    },

    /** Describes each key in one line, oldest first. */
    list: () =>
      sql
        .prepare('SELECT id, name, scopes, at FROM apiKey ORDER BY rowid')
        .all()
        .map((row) => {
          const { id, at, scopes, name } = v.parse(KeyRow, row)
          // Spell scopes as in the API documentation. This spelling is also valid as input.
          const written = scopes.map(writtenScope).join(',')
          return [id, new Date(at).toISOString(), written, name].join('  ').trimEnd()
        }),

    revoke(id: string): void {
      const { changes } = sql.prepare('DELETE FROM apiKey WHERE id = ?').run(id)
      if (Number(changes) === 0) throw new HubDataError('no key has this id; see hub2mqtt emulate keys list')
    },
  }
}

/** Hashes a key. One fast hash is enough, because a key of 256 random bits cannot be guessed at any speed. */
const hashOf = (key: string): Buffer => createHash('sha256').update(key).digest()

/** Opens the keys for `hub2mqtt emulate keys`. `make` creates a missing folder. @throws HubDataError without a hub */
export function keysOf(folder: string, { make = false } = {}) {
  if (!make && !holdsHub(folder)) throw new HubDataError(`${folder}: contains no hub`)
  const database = openDatabase(folder, { alone: false })
  return { ...storedKeys(database), [Symbol.dispose]: () => database.close() }
}
