/** Apps of a test: written into a temporary folder, run as real processes, told and asked as a hub would. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { cp, mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { InApp } from '../../../src/emulator/core/in-app.ts'
import { openHubData } from '../../../src/emulator/data/hub-data.ts'
import { type Manifest, readManifest } from '../../../src/emulator/data/manifest.ts'
import { HubError } from '../../../src/emulator/hub-error.ts'
import { ProcessApps } from '../../../src/emulator/processes/process-apps.ts'
import { addSettings, newApp } from '../../../src/emulator/processes/record.ts'
import type { Limits } from '../../../src/emulator/processes/watch.ts'
import type { Flavour } from '../../../src/emulator/records.ts'
import { until } from '../../support/until.ts'

export const APP = 'com.example.app'

type Files = Readonly<Record<string, string>>

/** Writes an app: its main file, or several. Its folder is the only one in a temporary one. */
export async function written(code: string | Files, manifest: Partial<Manifest> = {}): Promise<string> {
  const parent = await mkdtempDisposable(join(tmpdir(), 'app-'))
  onTestFinished(parent.remove)
  const folder = join(parent.path, 'app')
  const files = typeof code === 'string' ? { 'app.js': code } : code
  const whole = { id: APP, name: 'App', version: '1.0.0', main: 'app.js', permissions: [], ...manifest }
  for (const [name, text] of Object.entries({ ...files, 'app.json': JSON.stringify(whole) })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

/** Puts apps into a store. */
export async function fill(store: string, folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    const { id, version } = readManifest(folder)
    await cp(folder, join(store, id, version), { recursive: true })
  }
}

interface Options {
  readonly flavour?: Flavour
  readonly limits?: Partial<Limits>
  /** Folders of what the store offers. */
  readonly store?: readonly string[]
  readonly settings?: Readonly<Record<string, unknown>>
  readonly inApp?: Partial<InApp>
  /** Whether the test starts it by itself. */
  readonly down?: boolean
}

/** A hub's apps, of which the app in `folder` is one, running. */
export async function running(folder: string, options: Options = {}) {
  const store = await mkdtempDisposable(join(tmpdir(), 'store-'))
  onTestFinished(store.remove)
  await fill(store.path, options.store ?? [])
  const data = await openHubData({ store: store.path })
  const { state, packages } = data
  const { id, version, channel } = packages.adopt(folder).manifest
  state.put(newApp({ id, folder, version, channel, origin: 'devkit_run' }))
  addSettings(state, id, options.settings)
  const events: [event: string, payload: unknown][] = []
  const told: [event: string, payload: unknown][] = []
  const refuse = () => {
    throw new HubError(403, 'missing_scopes', 'Missing Scopes: homey.app.readonly')
  }
  const inApp: InApp = {
    call: refuse,
    subscribe: refuse,
    emit: (_id, event, payload) => told.push([event, payload]),
    ...options.inApp,
  }
  const tell = (event: string, payload: unknown) => void events.push([event, payload])
  const apps = new ProcessApps(
    { state, packages, limits: options.limits },
    { flavour: options.flavour ?? 'older', tell, inApp },
  )
  onTestFinished(async () => {
    await apps.stop()
    await data[Symbol.asyncDispose]()
  })
  const hub = {
    apps,
    state,
    store: store.path,
    events,
    /** What the app has told everybody. */
    told,
    get record() {
      const record = apps.records.get(id)
      if (record === undefined) throw new Error('the app is gone')
      return record
    },
    get states() {
      return events.map(([, payload]) =>
        typeof payload === 'object' && payload !== null && 'state' in payload ? payload.state : undefined,
      )
    },
    ask: (line: string, body?: unknown) => {
      const [method = '', target = ''] = line.split(' ')
      const url = new URL(target, 'http://app')
      return apps.request(id, { method, path: url.pathname, query: new Map(url.searchParams), body })
    },
    untilState: (wanted: string) => until(`the state ${wanted}`, () => hub.record.state === wanted),
    untilCrashed: () => until('the crash', () => hub.record.crashed),
    untilOutput: (text: string) => until(`"${text}" in the output`, () => apps.output(id).includes(text)),
  }
  if (options.down) return hub
  await apps.start()
  await until('the start', () => hub.record.state === 'running' || hub.record.crashed)
  return hub
}

/** Whether there is such a process. */
export function isAlive(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 0)
  } catch {
    return false
  }
}
