import { type Clock, systemClock } from '../../../src/base/clock.ts'
import { type ConformanceOptions, examine } from '../../../src/cli/conformance/conformance.ts'
import type { Report } from '../../../src/cli/conformance/report.ts'
import { EmulatedHub, type EmulatedHubOptions } from '../../../src/emulator/hub.ts'
import { closeAtEnd, open } from '../support.ts'
import { APP, type Findings } from './plants.ts'

export { APP, closeAtEnd, open }

export const KEY = 'key-of-the-examiner'
/** The pauses of the examination: between two requests, between two checks of the app, and for an event. */
const [BETWEEN_MS, CHECK_MS, EVENT_MS] = [200, 1_000, 3_000]
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
  return open.adopt(hub, (one) => one.close())
}

/** A clock that shortens pauses, but not deadlines. The pause for an event is 500 ms, because the event may be late. */
export const hasty = (betweenMs = 1): Clock => ({
  ...systemClock,
  // Time passes twenty times as fast, because on a busy machine the requests take most of the time.
  elapsed: () => systemClock.elapsed() * 20,
  after(ms, task) {
    const pauses: Readonly<Record<number, number>> = { [BETWEEN_MS]: betweenMs, [CHECK_MS]: 20, [EVENT_MS]: 500 }
    return systemClock.after(ms >= 15_000 ? ms : (pauses[ms] ?? Math.min(ms, 50)), task)
  },
})

export async function reportOn(url: string, options: Partial<ConformanceOptions> = {}): Promise<Report> {
  const defaults = { key: KEY, timeoutMs: 15_000, writes: false, limits: false, clock: hasty() }
  return await examine({ url, ...defaults, ...options })
}

export const found = ({ expectations }: Report, id: string) => expectations.find((row) => row.id === id)
export const outcome = ({ operations }: Report, name: string) => operations.find((row) => row.name === name)?.outcome

/** Returns the findings, except for expectations that were only inferred. */
export function said({
  expectations,
  operations,
  left,
  unseen,
}: Report): Required<Findings> & { unseen: readonly string[] } {
  return {
    differs: expectations.filter(({ result, mark }) => result === 'differs' && mark !== 'I').map(({ id }) => id),
    operations: operations.filter(({ differs }) => differs !== null).map(({ name }) => name),
    left: left ?? [],
    unseen: unseen ?? [],
  }
}
export const NOTHING = { differs: [], operations: [], left: [], unseen: [] }
