/** The state of an emulated hub in SQLite: its apps, their settings and its notifications. */
import { randomBytes } from 'node:crypto'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { isAbsolute, join, relative } from 'node:path'
import * as v from 'valibot'
import { systemCode } from '../../base/failures.ts'
import { type HubStore, MAX_NOTIFICATIONS, StoredNotification } from '../core/hub-store.ts'
import { HubError } from '../hub-error.ts'
import { refusedSetting } from '../sdk/limits.js'
import { type Database, HubDataError, openDatabase, transaction } from './data-folder.ts'
import { storedKeys } from './keys.ts'
import { isBelow } from './manifest.ts'
import { packagesOf, type Sources } from './packages.ts'

const Flag = v.pipe(
  v.number(),
  v.transform((value) => value !== 0),
)
const AppRow = v.object({
  id: v.string(),
  /** Folder of the current code: an absolute path, stored as a relative path if it is in the data folder. */
  folder: v.string(),
  version: v.string(),
  enabled: Flag,
  autoupdate: Flag,
  channel: v.string(),
  origin: v.string(),
  crashed: Flag,
  crashedMessage: v.nullable(v.string()),
  crashedCount: v.number(),
  exitCode: v.nullable(v.number()),
  exitSignal: v.nullable(v.string()),
})

/** The stored part of an app. The record that clients see combines this part with the manifest. */
export type StoredApp = Readonly<v.InferOutput<typeof AppRow>>

/** The fields that clear a previous crash. The number of crashes is kept. */
export const NO_CRASH = { crashed: false, crashedMessage: null, exitCode: null, exitSignal: null }

type NewApp = Pick<StoredApp, 'id' | 'folder' | 'version' | 'channel' | 'origin'> & Partial<StoredApp>

export const newApp = (given: NewApp): StoredApp => ({
  enabled: true,
  autoupdate: true,
  ...NO_CRASH,
  crashedCount: 0,
  ...given,
})

const SettingRow = v.object({ name: v.string(), value: v.string() })
const ValueRow = v.object({ value: v.string() })
const CountRow = v.object({ count: v.number() })

const COLUMNS = Object.keys(AppRow.entries)
const PUT_APP = `INSERT INTO app (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map((name) => `$${name}`).join(', ')})
  ON CONFLICT (id) DO UPDATE SET ${COLUMNS.map((name) => `${name} = $${name}`).join(', ')}`

export type SqliteState = ReturnType<typeof sqliteState>

/** Stores the hub's state durably. @throws HubError 400 if a value is not JSON, 413 if a value exceeds a limit */
function sqliteState({ folder, sql }: Database, givenId: string | undefined) {
  const all = <S extends v.GenericSchema>(schema: S, query: string, ...values: (string | number)[]) =>
    sql
      .prepare(query)
      .all(...values)
      .map((row) => v.parse(schema, row))
  const run = (statement: string, ...values: (string | number)[]) => sql.prepare(statement).run(...values)
  const noted = (name: string) => all(ValueRow, 'SELECT value FROM hub WHERE name = ?', name)[0]?.value
  const note = (name: string, value: string) =>
    run('INSERT OR REPLACE INTO hub (name, value) VALUES (?, ?)', name, value)
  const located = (app: StoredApp): StoredApp =>
    isAbsolute(app.folder) ? app : { ...app, folder: join(folder, app.folder) }

  const hubId = givenId ?? noted('id') ?? randomBytes(12).toString('hex')
  if (hubId !== noted('id')) note('id', hubId)

  const together = <T>(task: () => T): T => transaction(sql, task)

  /** Adds an app. If the id exists, replaces the app without changing the order. */
  function put(app: StoredApp): void {
    sql.prepare(PUT_APP).run({
      ...app,
      // Store a path in the data folder as a relative path, so that the data folder can be moved.
      folder: isBelow(folder, app.folder) ? relative(folder, app.folder) : app.folder,
      enabled: Number(app.enabled),
      autoupdate: Number(app.autoupdate),
      crashed: Number(app.crashed),
    })
  }

  return {
    hubId,
    put,
    transaction: together,

    /** Whether the hub is new, so that `populate` must store the first apps. */
    get isNew(): boolean {
      return noted('populated') === undefined
    },

    populate(apps: readonly StoredApp[]): void {
      together(() => {
        for (const app of apps) put(app)
        note('populated', 'yes')
      })
    },

    /** Returns the apps in the order in which they were added. */
    apps: () => all(AppRow, 'SELECT * FROM app ORDER BY rowid').map(located),

    app: (id: string) => all(AppRow, 'SELECT * FROM app WHERE id = ?', id).map(located)[0],

    remove(id: string, { purgeSettings }: { readonly purgeSettings: boolean }): void {
      together(() => {
        run('DELETE FROM app WHERE id = ?', id)
        if (purgeSettings) run('DELETE FROM setting WHERE owner = ?', id)
      })
    },

    settings(owner: string): Map<string, unknown> {
      const rows = all(SettingRow, 'SELECT name, value FROM setting WHERE owner = ? ORDER BY rowid', owner)
      return new Map(rows.map(({ name, value }): [string, unknown] => [name, JSON.parse(value)]))
    },

    setSetting(owner: string, name: string, value: unknown): void {
      const json = JSON.stringify(value)
      together(() => {
        const others = 'SELECT count(*) AS count FROM setting WHERE owner = ? AND name <> ?'
        const [{ count } = { count: 0 }] = all(CountRow, others, owner, name)
        const refused = refusedSetting(name, json, count)
        if (refused !== undefined) throw new HubError(refused.status, refused.code, refused.message)
        const put = `INSERT INTO setting (owner, name, value) VALUES (?, ?, ?)
          ON CONFLICT (owner, name) DO UPDATE SET value = excluded.value`
        run(put, owner, name, json)
      })
    },

    unsetSetting: (owner: string, name: string) =>
      void run('DELETE FROM setting WHERE owner = ? AND name = ?', owner, name),

    notifications: () => all(StoredNotification, 'SELECT * FROM notification ORDER BY id'),

    notify(owner: string, text: string): StoredNotification {
      return together(() => {
        const put = 'INSERT INTO notification (owner, text, at) VALUES (?, ?, ?) RETURNING *'
        const [made] = all(StoredNotification, put, owner, text, Date.now())
        if (made === undefined) throw new Error('the database returned no row')
        run('DELETE FROM notification WHERE id <= ?', made.id - MAX_NOTIFICATIONS)
        return made
      })
    },

    forget: (id: number) => run('DELETE FROM notification WHERE id = ?', id).changes > 0,
  } satisfies HubStore & Record<string, unknown>
}

/** Adds missing settings and returns their names. Keeps the values of settings that already exist. */
export function addSettings(state: SqliteState, id: string, settings: Readonly<Record<string, unknown>> = {}) {
  const existing = state.settings(id)
  const added = Object.keys(settings).filter((name) => !existing.has(name))
  for (const name of added) state.setSetting(id, name, settings[name])
  return added
}

/** Opens the data of an emulated hub. @throws HubDataError if the folder cannot be used, or another hub uses it */
export async function openHubData(
  options: Sources & {
    /** The data folder, created if missing; default: a temporary folder, removed when the data is closed. */
    readonly folder?: string | undefined
    /** Id of the hub; default: its previous id, or a new one. */
    readonly hubId?: string | undefined
  } = {},
) {
  await using opened = new AsyncDisposableStack()
  const folder = options.folder ?? opened.use(await makeTemporaryFolder()).path
  const database = openDatabase(folder, { alone: true })
  opened.defer(() => database.close())
  const state = sqliteState(database, options.hubId)
  const packages = packagesOf(database.folder, options)
  await packages.sweep(new Set(state.apps().map((app) => app.folder)))
  const keys = storedKeys(database)
  const resources = opened.move()
  return {
    /** Absolute path of the data folder. */
    folder: database.folder,
    state,
    packages,
    keys,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

async function makeTemporaryFolder() {
  const parent = tmpdir()
  try {
    return await mkdtempDisposable(join(parent, 'hub2mqtt-hub-'))
  } catch (cause) {
    const why = `cannot be used for temporary files (${systemCode(cause)})`
    throw new HubDataError(`${parent}: ${why}; set TMPDIR to another folder`, { cause })
  }
}

export type HubData = Awaited<ReturnType<typeof openHubData>>
