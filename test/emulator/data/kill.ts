/**
 * Kills a hub at random moments during writes. Checks each time that the hub has stored every confirmed write, and no
 * write in part. `node test/emulator/data/kill.ts --count 200` prints the figures.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import * as v from 'valibot'
import { type HubData, openHubData } from '../../../src/emulator/data/state.ts'
import { LIGHTS, manifestOf, writeApp } from './apps.ts'

export const WRITER = fileURLToPath(new URL('writer.ts', import.meta.url))
/** The maximum time for which a hub writes before it is killed. */
const MAX_LIFE_MS = 250
/** Every fourth hub is killed within this time after its start. Some of these hubs have not opened their data yet. */
const MAX_START_MS = 800
const FILES = 8

const Line = v.tuple([
  v.picklist(['begin', 'done']),
  v.union([
    v.tuple([v.literal('setting'), v.string(), v.nullable(v.string())]),
    v.tuple([v.literal('enabled'), v.boolean()]),
    v.tuple([v.literal('installed'), v.nullable(v.string())]),
  ]),
])
type Write = v.InferOutput<typeof Line>[1]

interface KillFigures {
  kills: number
  /** The number of writes that were confirmed before a kill. */
  confirmed: number
  /** The number of kills between the beginning of a write and its confirmation. */
  midway: number
  /** The number of writes that were complete although the hub had not confirmed them. */
  doneUnconfirmed: number
  /** The number of folders with incomplete or old code that a start found and removed. */
  swept: number
  /** One line for each value that was lost, incomplete or left over. */
  faults: string[]
}

/** Maps the key of each write to its value. */
type Wanted = Map<string, unknown>

const keyOf = (write: Write) => (write[0] === 'setting' ? `setting ${write[1]}` : write[0])
const wantedOf = (write: Write) => (write[0] === 'setting' ? write[2] : write[1])

/** Kills a hub `count` times, or until `isEnough` returns `true`. */
export async function killOften(
  count: number,
  isEnough: (figures: KillFigures) => boolean = () => false,
): Promise<KillFigures> {
  const root = mkdtempSync(join(tmpdir(), 'hub2mqtt-kill-'))
  try {
    return await killRounds(root, count, isEnough)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

async function killRounds(
  root: string,
  count: number,
  isEnough: (figures: KillFigures) => boolean,
): Promise<KillFigures> {
  const [folder, store] = [join(root, 'data'), join(root, 'store')]
  for (const version of ['1.0.0', '2.0.0'])
    writeApp(join(store, LIGHTS, version), manifestOf({ version }), filesOf(version))
  const wanted: Wanted = new Map()
  const figures: KillFigures = { kills: 0, confirmed: 0, midway: 0, doneUnconfirmed: 0, swept: 0, faults: [] }
  while (figures.kills < count && !isEnough(figures)) {
    const lines = await writeUntilKilled([folder, store, String(figures.kills)], figures.kills % 4 === 0)
    figures.kills++
    figures.confirmed += lines.filter(([what]) => what === 'done').length
    for (const [what, write] of lines) if (what === 'done') wanted.set(keyOf(write), wantedOf(write))
    const last = lines.at(-1)
    const open = last?.[0] === 'begin' ? last[1] : undefined
    const before = codeFolders(folder).length
    await using data = await openHubData({ folder, store })
    figures.swept += before - codeFolders(folder).length
    const found = foundIn(data)
    if (open !== undefined) {
      figures.midway++
      const key = keyOf(open)
      if (same(found.get(key), wantedOf(open)) && !same(wanted.get(key), wantedOf(open))) {
        figures.doneUnconfirmed++
        wanted.set(key, wantedOf(open))
      }
    }
    figures.faults.push(...faultsOf(wanted, found, data).map((fault) => `kill ${figures.kills}: ${fault}`))
  }
  return figures
}

const filesOf = (version: string) =>
  Object.fromEntries(Array.from({ length: FILES }, (_, index) => [`lib/${index}.js`, version.repeat(5000)]))

/** Resolves with the output of the hub until it was killed, in order; an incomplete last line is ignored. */
async function writeUntilKilled(args: readonly string[], atStart: boolean) {
  const child = spawn(process.execPath, [WRITER, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const killWithin = (ms: number) => setTimeout(() => child.kill('SIGKILL'), Math.random() * ms)
  if (atStart) killWithin(MAX_START_MS)
  let text = ''
  child.stdout.setEncoding('utf8')
  child.stdout.on('data', (chunk: string) => {
    // Start the timer at the hub's first write, so that a slow start does not use up the time.
    if (text === '' && !atStart) killWithin(MAX_LIFE_MS)
    text += chunk
  })
  const [code, signal] = await once(child, 'close')
  if (signal !== 'SIGKILL') throw new Error(`the hub ended by itself: ${code}`)
  const whole = text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .slice(0, -1)
  return whole.map((line) => v.parse(Line, JSON.parse(line)))
}

function codeFolders(folder: string): string[] {
  const apps = join(folder, 'apps')
  if (!existsSync(apps)) return []
  return readdirSync(apps).flatMap((id) => readdirSync(join(apps, id)).map((name) => join(apps, id, name)))
}

const Setting = v.strictObject({ mark: v.string(), text: v.pipe(v.string(), v.length(3000)) })

function foundIn({ state }: HubData): Wanted {
  const found: Wanted = new Map()
  for (const [name, value] of state.settings(LIGHTS)) found.set(`setting ${name}`, v.parse(Setting, value).mark)
  const door = state.app('com.example.door')
  if (door !== undefined) found.set('enabled', door.enabled)
  const lights = state.app(LIGHTS)
  if (lights !== undefined) found.set('installed', lights.version)
  return found
}

/** Compares two values; a missing value equals `null`. */
const same = (one: unknown, other: unknown) => (one ?? null) === (other ?? null)

function faultsOf(wanted: Wanted, found: Wanted, { state, folder }: HubData): string[] {
  const keys = new Set([...wanted.keys(), ...found.keys()])
  const lost = [...keys].filter((key) => !same(wanted.get(key), found.get(key)))
  const faults = lost.map((key) => `${key} is ${String(found.get(key))}, not ${String(wanted.get(key))}`)
  const lights = state.app(LIGHTS)
  if (lights !== undefined) {
    // One write sets both fields of the row, so they must be equal. The installed code must match the row's version.
    if (lights.crashedMessage !== lights.version) faults.push('half of a row')
    const files = Object.entries(filesOf(lights.version))
    const whole = files.every(([name, text]) => readFileSync(join(lights.folder, name), 'utf8') === text)
    if (!whole) faults.push('half of the code')
  }
  const used = state.apps().map((app) => app.folder)
  const left = codeFolders(folder).filter((path) => !used.includes(path))
  return [...faults, ...left.map((path) => `left over: ${path}`)]
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { count: { type: 'string', default: '200' } } })
  const started = performance.now()
  const { faults, ...figures } = await killOften(Number(values.count))
  for (const fault of faults) console.error(fault)
  console.log({ ...figures, faults: faults.length, seconds: Math.round((performance.now() - started) / 1000) })
  process.exitCode = faults.length === 0 ? 0 : 1
}
