import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { HubDataError } from '../../../src/emulator/data/data-folder.ts'
import { openHubData } from '../../../src/emulator/data/state.ts'
import { available } from '../../support/skipped.ts'
import { LIGHTS, storedApp } from './apps.ts'
import { folder, opened } from './support.ts'

async function usedFolder(use: (data: Awaited<ReturnType<typeof opened>>) => void = () => {}): Promise<string> {
  const path = join(folder(), 'data')
  await using data = await openHubData({ folder: path })
  use(data)
  return path
}

const refusal = (path: string) =>
  openHubData({ folder: path }).then(
    () => 'opened',
    (error: unknown) => (error instanceof HubDataError ? error.message.replace(path, 'DATA') : error),
  )

const hasModes = available(process.platform !== 'win32', 'the rights of a data folder', 'that has modes of files')

describe('a data folder', () => {
  it('restores the hub with its id, apps, settings and notifications', async () => {
    const crashed = {
      crashed: true,
      crashedMessage: 'Error: it fell\n    at x',
      crashedCount: 3,
      exitSignal: 'SIGKILL',
    }
    const second = storedApp({ id: 'com.example.door', enabled: false, autoupdate: true, exitCode: 1, ...crashed })
    let id = ''
    const path = await usedFolder(({ state }) => {
      id = state.hubId
      state.put(storedApp())
      state.put(second)
      state.setSetting(LIGHTS, 'night', { on: true, steps: [1, 2, null] })
      state.setSetting('hub', 'name', 'Home')
      state.notify(LIGHTS, 'the light is on')
    })
    const { state } = await opened({ folder: path })
    expect(state.hubId).toBe(id)
    expect(state.apps()).toEqual([storedApp(), second])
    expect(state.app(LIGHTS)).toEqual(storedApp())
    expect(state.app('com.example.other')).toBeUndefined()
    expect([...state.settings(LIGHTS)]).toEqual([['night', { on: true, steps: [1, 2, null] }]])
    expect([...state.settings('hub')]).toEqual([['name', 'Home']])
    expect(state.notifications()).toEqual([{ id: 1, owner: LIGHTS, text: 'the light is on', at: expect.any(Number) }])
  })

  it('keeps the position of an app that changes', async () => {
    const { state } = await opened({})
    for (const id of ['com.example.b', 'com.example.a']) state.put(storedApp({ id }))
    state.put(storedApp({ id: 'com.example.b', version: '2.0.0' }))
    expect(state.apps().map(({ id, version }) => [id, version])).toEqual([
      ['com.example.b', '2.0.0'],
      ['com.example.a', '1.0.0'],
    ])
  })

  it('uses the id from its options, and keeps it', async () => {
    const path = join(folder(), 'data')
    for (const hubId of ['mine', undefined]) {
      await using data = await openHubData({ folder: path, hubId })
      expect(data.state.hubId).toBe('mine')
    }
  })

  it('is new until its first apps are stored, in one write', async () => {
    const path = await usedFolder(({ state }) => {
      expect(state.isNew).toBe(true)
      const impossible = storedApp({ id: 'com.example.bad', crashedCount: 0.5 })
      expect(() => state.populate([storedApp(), impossible])).toThrow()
      expect(state.apps()).toEqual([])
      expect(state.isNew).toBe(true)
      state.populate([storedApp()])
      state.remove(LIGHTS, { purgeSettings: true })
    })
    expect((await opened({ folder: path })).state.isNew).toBe(false)
  })

  it('finds code inside of it again after a move, and other code at its old place', async () => {
    const path = await usedFolder(({ state, folder: data }) => {
      state.put(storedApp({ folder: join(data, 'apps', LIGHTS, '1.0.0-aa') }))
      state.put(storedApp({ id: 'com.example.own', folder: '/home/me/own' }))
    })
    renameSync(path, `${path}-moved`)
    const { state } = await opened({ folder: `${path}-moved` })
    expect(state.apps().map((app) => app.folder)).toEqual([
      join(`${path}-moved`, 'apps', LIGHTS, '1.0.0-aa'),
      '/home/me/own',
    ])
  })

  it('stores all of several writes or none', async () => {
    const { state } = await opened({})
    const broken = () =>
      state.transaction(() => {
        state.setSetting('hub', 'one', 1)
        state.remove(LIGHTS, { purgeSettings: true })
        throw new Error('no')
      })
    state.put(storedApp())
    expect(broken).toThrow('no')
    expect([state.settings('hub').size, state.apps().length]).toEqual([0, 1])
  })

  test.runIf(hasModes)('can be read by its owner only', async () => {
    const path = await usedFolder()
    const { folder: data, state } = await opened({ folder: path })
    state.setSetting('hub', 'a', 1)
    const modes = readdirSync(data).map((name) => [name, (statSync(join(data, name)).mode & 0o777).toString(8)])
    expect((statSync(data).mode & 0o777).toString(8)).toBe('700')
    expect(Object.fromEntries(modes)).toEqual({
      'hub.db': '600',
      'hub.db-shm': '600',
      'hub.db-wal': '600',
      'hub.lock': '600',
    })
  })

  it('is temporary and removed at the end if none is named', async () => {
    const data = await openHubData()
    data.state.setSetting('hub', 'a', 1)
    expect(existsSync(data.folder)).toBe(true)
    await data[Symbol.asyncDispose]()
    expect(existsSync(data.folder)).toBe(false)
  })
})

describe('a data folder that cannot be used', () => {
  it('is refused while another hub uses it, and stays usable for that one', async () => {
    const path = join(folder(), 'data')
    const { state } = await opened({ folder: path })
    for (let attempt = 0; attempt < 2; attempt++) expect(await refusal(path)).toBe('DATA: another hub uses this folder')
    state.setSetting('hub', 'a', 1)
    expect(state.settings('hub').get('a')).toBe(1)
  })

  it('is free again after the hub has closed, or could not open it', async () => {
    const path = await usedFolder()
    const database = join(path, 'hub.db')
    const whole = readFileSync(database)
    writeFileSync(database, 'x'.repeat(5000))
    expect(await refusal(path)).not.toBe('opened')
    writeFileSync(database, whole)
    expect(await refusal(path)).toBe('opened')
  })

  test.each([
    ['no database', (whole: Buffer) => Buffer.alloc(whole.length, 'x')],
    ['a damaged header', (whole: Buffer) => Buffer.from(whole).fill(0xff, 0, 40)],
    ['damaged pages', (whole: Buffer) => Buffer.from(whole).fill(0xab, 4096, 12_288)],
    ['half of the database', (whole: Buffer) => whole.subarray(0, 4096)],
  ])('is refused and not changed: %s', async (_, damage) => {
    const path = await usedFolder(({ state }) => {
      state.transaction(() => {
        for (let index = 0; index < 200; index++) state.setSetting('hub', `name ${index}`, 'x'.repeat(500))
      })
    })
    const database = join(path, 'hub.db')
    const damaged = damage(readFileSync(database))
    writeFileSync(database, damaged)
    expect(await refusal(path)).toMatch(/^DATA\/hub\.db: .*it was not changed$/s)
    expect(readFileSync(database).equals(damaged)).toBe(true)
  })

  test.each([
    ['PRAGMA user_version = 999', 'was written by a newer hub2mqtt (format 999; this one reads up to 1)'],
    ['PRAGMA application_id = 7', 'is the database of another program'],
  ])('is refused after %s', async (statement, reason) => {
    const path = await usedFolder()
    const sql = new DatabaseSync(join(path, 'hub.db'))
    sql.exec(statement)
    sql.close()
    expect(await refusal(path)).toBe(`DATA/hub.db: ${reason}`)
  })

  test.runIf(hasModes)('is refused with a link in place of its apps, and the target of the link stays', async () => {
    const [path, elsewhere] = [await usedFolder(), folder()]
    mkdirSync(join(elsewhere, 'Documents', 'photos'), { recursive: true })
    writeFileSync(join(elsewhere, 'Documents', 'photos', 'p.jpg'), 'photo')
    rmSync(join(path, 'apps'), { recursive: true, force: true })
    symlinkSync(elsewhere, join(path, 'apps'))
    expect(await refusal(path)).toBe('DATA/apps: is not a folder; it was not changed')
    expect(readFileSync(join(elsewhere, 'Documents', 'photos', 'p.jpg'), 'utf8')).toBe('photo')
  })

  const changed = (path: string, statement: string) => {
    const sql = new DatabaseSync(path)
    sql.exec(statement)
    return sql
  }
  const makes: [string, (path: string, other: string) => void][] = [
    ['no hub, but something else', (path) => writeFileSync(join(path, 'letter.txt'), 'Dear')],
    ['a text in place of the database', (path) => writeFileSync(join(path, 'hub.db'), 'text '.repeat(999))],
    ['a database of another program', (path) => changed(join(path, 'hub.db'), 'CREATE TABLE mine (a)').close()],
    [
      'a database that keeps a log',
      (path) => changed(join(path, 'hub.db'), 'PRAGMA journal_mode = WAL; CREATE TABLE mine (a)').close(),
    ],
    [
      'a database with the log of a killed process',
      (path, other) => {
        const sql = changed(other, 'PRAGMA journal_mode = WAL; CREATE TABLE mine (a)')
        for (const end of ['', '-wal', '-shm']) copyFileSync(`${other}${end}`, join(path, `hub.db${end}`))
        sql.close()
      },
    ],
    ['a folder in place of the database', (path) => mkdirSync(join(path, 'hub.db'))],
    ['a pipe in place of the database', (path) => execFileSync('mkfifo', [join(path, 'hub.db')])],
    ['a link in place of the database', (path, other) => symlinkSync(other, join(path, 'hub.db'))],
    ['a folder in place of the lock', (path) => mkdirSync(join(path, 'hub.lock'))],
    ['a pipe in place of the lock', (path) => execFileSync('mkfifo', [join(path, 'hub.lock')])],
    ['a link in place of the lock', (path, other) => symlinkSync(other, join(path, 'hub.lock'))],
    ['a text in place of the lock', (path) => writeFileSync(join(path, 'hub.lock'), 'text '.repeat(999))],
  ]
  test.runIf(hasModes).each(makes)('keeps its names, modes and contents: %s', async (_, make) => {
    const [path, around] = [folder(), folder()]
    const other = join(around, 'other')
    writeFileSync(other, '', { mode: 0o644 })
    make(path, other)
    const files = [path, other, ...readdirSync(path).map((name) => join(path, name))]
    for (const file of files) if (!lstatSync(file).isSymbolicLink()) chmodSync(file, 0o755)
    const look = () => [
      readdirSync(path),
      files.map((file) => {
        const found = lstatSync(file)
        // Ignore the `-shm` file, an index of the WAL file, because every reader may write it.
        const hasBytes = found.isFile() && !file.endsWith('-shm')
        return [file, found.mode.toString(8), hasBytes && readFileSync(file, 'latin1')]
      }),
    ]
    const before = look()
    expect(await refusal(path)).toMatch(/^DATA/)
    expect(look()).toEqual(before)
  })
})

describe('settings', () => {
  it('are read back as the JSON value that was stored, in the order of their first write', async () => {
    const { state } = await opened({})
    const names = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 50 }).filter((name) => !name.includes('\0'))
    const entries = fc.uniqueArray(fc.tuple(names, fc.jsonValue()), { selector: ([name]) => name })
    let owner = 0
    fc.assert(
      fc.property(entries, (all) => {
        owner++
        state.transaction(() => {
          for (const [name, value] of all) state.setSetting(`com.example.n${owner}`, name, value)
        })
        const wanted = all.map(([name, value]) => [name, JSON.parse(JSON.stringify(value))])
        expect([...state.settings(`com.example.n${owner}`)]).toEqual(wanted)
      }),
      { numRuns: 50 },
    )
  })
})

it('notifications are kept until they are deleted, the newest thousand', async () => {
  const { state } = await opened({})
  const { id } = state.notify(LIGHTS, 'soon forgotten')
  expect([state.forget(id), state.forget(id)]).toEqual([true, false])
  expect(state.notifications()).toEqual([])
  state.transaction(() => {
    for (let index = 0; index < 1001; index++) state.notify(LIGHTS, `number ${index}`)
  })
  const texts = state.notifications().map(({ text }) => text)
  expect([texts.length, texts[0], texts.at(-1)]).toEqual([1000, 'number 1', 'number 1000'])
})
