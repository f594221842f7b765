/** Reports of emulated hubs. */
import { onTestFinished } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import { type ConformanceOptions, examine } from '../../../src/cli/conformance/conformance.ts'
import type { Report } from '../../../src/cli/conformance/report.ts'
import { EmulatedHub, type EmulatedHubOptions } from '../../../src/emulator/hub.ts'
import { APP } from './plants.ts'

export { APP }

export const KEY = 'key-of-the-examiner'
/** What must be in no report. */
export const SECRETS = [KEY, APP, 'secretmaker', 'Rose garden', 'gate_code', '4711-gate', 'com.other.app', '127.0.0.1']

const APPS = [
  {
    id: APP,
    name: 'Rose garden',
    version: '2.1.0',
    settings: { gate_code: '4711-gate' },
    record: { '4711-gate field': 'x', author: { name: 'secretmaker' } },
  },
  { id: 'com.other.app', enabled: false },
]
const STORE = [{ id: APP, name: 'Rose garden', version: '2.1.0' }]

export async function emulate(options: EmulatedHubOptions = {}): Promise<EmulatedHub> {
  const keys = { [KEY]: ['homey.app', 'homey.speech', 'homey.system'] }
  const hub = await EmulatedHub.start({ keys, settleMs: 0, apps: APPS, store: STORE, ...options })
  onTestFinished(() => hub.close())
  return hub
}

/** Pauses are no part of what is promised here: they end at once, while deadlines are real. */
const hasty: Clock = {
  ...systemClock,
  after: (ms, task) => systemClock.after(ms >= 15_000 ? ms : Math.min(ms, 50), task),
}

export async function reportOn(url: string, options: Partial<ConformanceOptions> = {}): Promise<Report> {
  const defaults = { key: KEY, timeoutMs: 15_000, writes: false, limits: false, version: '0.0.0', clock: hasty }
  return await examine({ url, ...defaults, ...options })
}

export const found = ({ expectations }: Report, id: string) => expectations.find((row) => row.id === id)
export const outcome = ({ operations }: Report, name: string) => operations.find((row) => row.name === name)?.outcome
