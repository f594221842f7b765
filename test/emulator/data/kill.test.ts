import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as v from 'valibot'
import { expect, it } from 'vitest'
import { type HubData, openHubData } from '../../../src/emulator/data/state.ts'
import { Process } from '../../support/process.ts'
import { LIGHTS, manifestOf, offer, writeApp } from './apps.ts'
import { folder } from './support.ts'

const WRITER = fileURLToPath(new URL('writer.ts', import.meta.url))
/** The maximum time for which a hub writes before it is killed. */
const MAX_LIFE_MS = 250
/** Every fourth hub is killed within this time after its start. Some of these hubs have not opened their data yet. */
const MAX_START_MS = 800

const Line = v.tuple([v.picklist(['begin', 'done']), v.string(), v.nullable(v.union([v.string(), v.boolean()]))])
const Setting = v.strictObject({ mark: v.string(), text: v.pipe(v.string(), v.length(3000)) })

it('a data folder that another process uses is refused until that process has ended, even if it was killed', async () => {
  const [data, store] = [join(folder(), 'data'), folder()]
  for (const version of ['1.0.0', '2.0.0']) offer(store, version)
  await using hub = new Process(process.execPath, [WRITER, data, store, '0'])
  await hub.untilLine('"begin"')
  await expect(openHubData({ folder: data })).rejects.toThrow(`${data}: another hub uses this folder`)
  hub.signal('SIGKILL')
  await hub.closed
  await using opened = await openHubData({ folder: data })
  expect(opened.folder).toBe(data)
})

const filesOf = (version: string) =>
  Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`lib/${index}.js`, version.repeat(5000)]))

/** Resolves with the lines that a hub has printed until it was killed at a random time. */
async function writeUntilKilled(args: readonly string[], isAtStart: boolean) {
  await using hub = new Process(process.execPath, [WRITER, ...args])
  // A slow start must not use up the time for writes.
  if (!isAtStart) await hub.untilLine('"begin"')
  const ms = Math.random() * (isAtStart ? MAX_START_MS : MAX_LIFE_MS)
  const timer = setTimeout(() => hub.signal('SIGKILL'), ms)
  expect(await hub.closed, hub.errors.join('\n')).toBe('signal SIGKILL')
  clearTimeout(timer)
  return hub.lines.map((line) => v.parse(Line, JSON.parse(line)))
}

/** Returns the folders with code of apps, also of apps that are not installed. */
function codeFolders(data: string): string[] {
  const apps = join(data, 'apps')
  if (!existsSync(apps)) return []
  return readdirSync(apps).flatMap((id) => readdirSync(join(apps, id)).map((name) => join(apps, id, name)))
}

/** Returns the value of each key that the hub has stored. */
function storedIn({ state }: HubData): Map<string, unknown> {
  const settings = [...state.settings(LIGHTS)].map(([name, value]) => [name, v.parse(Setting, value).mark] as const)
  const apps = { enabled: state.app('com.example.door')?.enabled, installed: state.app(LIGHTS)?.version }
  return new Map([...settings, ...Object.entries(apps).filter(([, value]) => value !== undefined)])
}

function expectWhole({ state, folder: data }: HubData): void {
  const lights = state.app(LIGHTS)
  if (lights !== undefined) {
    // One write sets both fields of the row, so they must be equal. The installed code must match the row's version.
    expect(lights.crashedMessage).toBe(lights.version)
    for (const [name, text] of Object.entries(filesOf(lights.version))) {
      expect(readFileSync(join(lights.folder, name), 'utf8') === text, name).toBe(true)
    }
  }
  const used = state.apps().map((app) => app.folder)
  expect(codeFolders(data).filter((path) => !used.includes(path))).toEqual([])
}

it('a hub that is killed while it writes has everything that it confirmed, nothing in part and nothing left over, however often it is killed', async () => {
  const [path, store] = [join(folder(), 'data'), folder()]
  for (const version of ['1.0.0', '2.0.0'])
    writeApp(join(store, LIGHTS, version), manifestOf({ version }), filesOf(version))
  const wanted = new Map<string, unknown>()
  const seen = { confirmed: 0, midway: 0, swept: 0 }
  // Kill the hub until enough writes were tested. Even on a busy machine, about five writes happen before a kill.
  for (let kills = 0; kills < 8 || seen.confirmed <= 20 || seen.midway === 0 || seen.swept === 0; kills++) {
    expect(kills).toBeLessThan(40)
    const lines = await writeUntilKilled([path, store, String(kills)], kills % 4 === 0)
    const done = lines.filter(([what]) => what === 'done')
    for (const [, key, value] of done) wanted.set(key, value)
    const before = codeFolders(path).length
    await using data = await openHubData({ folder: path, store })
    const stored = storedIn(data)
    const last = lines.at(-1)
    if (last?.[0] === 'begin') {
      seen.midway++
      // The hub may have finished this write without confirming it.
      const [, key, value] = last
      if ((stored.get(key) ?? null) === value) wanted.set(key, value)
    }
    for (const [key, value] of wanted) if (value === null) wanted.delete(key)
    expect(stored).toEqual(wanted)
    expectWhole(data)
    seen.confirmed += done.length
    seen.swept += before - codeFolders(path).length
  }
})
