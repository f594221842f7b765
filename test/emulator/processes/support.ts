/** Runs the apps of a test as real processes, and sends them requests as a hub does. */
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import type { InApp } from '../../../src/emulator/core/in-app.ts'
import { type Manifest, readManifest } from '../../../src/emulator/data/manifest.ts'
import { addSettings, newApp, openHubData } from '../../../src/emulator/data/state.ts'
import { HubError } from '../../../src/emulator/hub-error.ts'
import { ProcessApps } from '../../../src/emulator/processes/process-apps.ts'
import type { Limits } from '../../../src/emulator/processes/watch.ts'
import type { Flavour } from '../../../src/emulator/records.ts'
import { until } from '../../support/until.ts'
import { writeApp } from '../data/apps.ts'
import { folder as temporary } from '../data/support.ts'

export const APP = 'com.example.app'

/** The system's clock, whose timers fire five times as early, so that the hub checks files and usage more often. */
export const quickClock: Clock = { ...systemClock, after: (ms, task) => systemClock.after(ms / 5, task) }

type Files = Readonly<Record<string, string>>

/** Writes an app. `code`: the main file, or several files. The parent of the returned folder contains nothing else. */
export function written(code: string | Files, manifest: Partial<Manifest> = {}): string {
  const files = typeof code === 'string' ? { 'app.js': code } : code
  return writeApp(join(temporary(), 'app'), { id: APP, name: 'App', version: '1.0.0', ...manifest }, files)
}

export async function fill(store: string, folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    const { id, version } = readManifest(folder)
    await cp(folder, join(store, id, version), { recursive: true })
  }
}

interface Options {
  readonly flavour?: Flavour
  readonly limits?: Partial<Limits>
  readonly clock?: Clock
  readonly store?: readonly string[]
  readonly settings?: Readonly<Record<string, unknown>>
  readonly inApp?: Partial<InApp>
}

export async function running(folder: string, options: Options = {}) {
  const store = temporary()
  await fill(store, options.store ?? [])
  const data = await openHubData({ store })
  const { state, packages } = data
  const { id, version, channel } = packages.adopt(folder).manifest
  state.put(newApp({ id, folder, version, channel, origin: 'devkit_run' }))
  // Use one transaction, because each write on its own would wait for the disk.
  state.transaction(() => addSettings(state, id, options.settings))
  const events: [event: string, payload: unknown][] = []
  const emitted: [event: string, payload: unknown][] = []
  const refuse = () => {
    throw new HubError(403, 'missing_scopes', 'Missing Scopes: homey.app.readonly')
  }
  const inApp: InApp = {
    call: refuse,
    subscribe: refuse,
    emit: (_id, event, payload) => emitted.push([event, payload]),
    ...options.inApp,
  }
  const sendEvent = (event: string, payload: unknown) => void events.push([event, payload])
  const apps = new ProcessApps(
    { state, packages, limits: options.limits, clock: options.clock },
    { flavour: options.flavour ?? 'older', sendEvent, inApp },
  )
  onTestFinished(async () => {
    await apps.stop()
    await data[Symbol.asyncDispose]()
  })
  const hub = {
    apps,
    state,
    store,
    events,
    emitted,
    get record() {
      const record = apps.records.get(id)
      if (record === undefined) throw new Error('the app does not exist')
      return record
    },
    /** The states without repetitions: events about the usage repeat the state. */
    get states(): unknown[] {
      const states = events.map(([, payload]) => Object(payload).state)
      return states.filter((state, at) => at === 0 || state !== states[at - 1])
    },
    ask: (line: string, body?: unknown) => {
      const [method = '', target = ''] = line.split(' ')
      const url = new URL(target, 'http://app')
      return apps.request(id, { method, path: url.pathname, query: Object.fromEntries(url.searchParams), body })
    },
    untilState: (wanted: string) => until(`the state ${wanted}`, () => hub.record.state === wanted),
    untilCrashed: () => until('the crash', () => hub.record.crashed),
    untilOutput: (text: string) => until(`"${text}" in the output`, () => apps.output(id).includes(text)),
  }
  await apps.start()
  await until('the start', () => hub.record.state === 'running' || hub.record.crashed)
  return hub
}

/** Writes and starts an app. `code`: the main file, or several files. */
export const runningApp = (code: string | Files, options: Options = {}) => running(written(code), options)

export function isAlive(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 0)
  } catch {
    return false
  }
}
