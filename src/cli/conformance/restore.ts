/** Restores an app even if the hub is offline for a while. */
import { sleep } from '../../base/clock.ts'
import { compareVersions } from '../../base/versions.ts'
import { isAway, isOk, type Observation, outcomeOf, recordOf } from './observation.ts'
import { type AppRecord, operate, type ProbeName } from './probes.ts'
import type { WritesOptions } from './writes.ts'

/** The key of the setting that the write tests set and remove. */
export const SETTING = 'hub2mqtt-conformance'

/** The parts of an app that a write test can change. */
export type Item = 'setting' | 'autoupdate' | 'channel' | 'enabled' | 'state' | 'version'
type Items = ReadonlySet<Item>

export interface Leftovers {
  /** Items that could not be restored. */
  readonly left: readonly string[]
  /** Items that might not have been restored. */
  readonly unseen: readonly string[]
}

type Subject = Pick<WritesOptions, 'client' | 'reading' | 'app' | 'clock'>

type CheckResult = 'right' | 'wrong' | 'late' | 'away' | 'refused'

const CHECK_MS = 1_000
/** Time limit for the restoration while the hub is offline. It is long, because a reboot takes minutes. */
const AWAY_MS = 300_000
/** Time limit for the hub to start or install the app, while it answers. */
const LATE_MS = 90_000
/** Maximum number of requests for one change, because a hub may confirm a change without making it. */
const MAX_REQUESTS = 3

/** Restores the changed items. @param lost items whose request got no answer; the hub may still carry it out */
export async function restoreApp(options: Subject, before: AppRecord, touched: Items, lost: Items): Promise<Leftovers> {
  const { clock } = options
  const app = subjectOf(options, before)
  const requests = new Map<Item, number>()
  const ended = new Map<Item, Fate>()
  /** When each item last had a result other than `late`. */
  const otherwise = new Map<Item, number>()
  // If a write test has enabled or disabled the app, its running state may have changed as well.
  const items = new Set<Item>([...touched, ...(touched.has('enabled') ? (['state'] as const) : [])])
  const started = clock.elapsed()
  for (let pauses = 0; ended.size < items.size; pauses += CHECK_MS) {
    if (pauses > 0) await sleep(clock, CHECK_MS)
    const waited = Math.max(pauses, clock.elapsed() - started)
    const resultOf = await app.check()
    for (const item of [...items].filter((one) => !ended.has(one))) {
      const times = requests.get(item) ?? 0
      const result = resultOf(item)
      if (result !== 'late') otherwise.set(item, waited)
      const since = result === 'late' ? (otherwise.get(item) ?? 0) : 0
      const next = nextFor(item, result, times, waited - since, lost.has(item))
      if (next === 'restore') {
        requests.set(item, times + 1)
        await app.restore(item)
      } else if (next !== 'wait') ended.set(item, next)
    }
  }
  const withFate = (fate: Fate) =>
    [...ended].flatMap(([item, one]) => (one !== fate ? [] : item === 'setting' ? [`setting ${SETTING}`] : [item]))
  return { left: withFate('left'), unseen: withFate('unseen') }
}

type Fate = 'done' | 'left' | 'unseen'
type Next = Fate | 'restore' | 'wait'

/**
 * Returns the next step for an item.
 * @param waited how long the item has been `late`; for any other result, how long the restoration has taken
 * @param isLost whether the request to change the item got no answer
 */
function nextFor(item: Item, result: CheckResult, times: number, waited: number, isLost: boolean): Next {
  switch (result) {
    case 'right':
      // The hub may still carry out the unanswered install, so do not request another one.
      if (item === 'version') return isLost ? 'unseen' : 'done'
      return isLost && times === 0 ? 'restore' : 'done'
    case 'wrong':
      return times < MAX_REQUESTS ? 'restore' : 'left'
    case 'late':
      return waited < LATE_MS ? 'wait' : 'left'
    case 'away':
      return waited < AWAY_MS ? 'wait' : 'unseen'
    case 'refused':
      return 'unseen'
  }
}

function subjectOf({ client, reading, app }: Subject, before: AppRecord) {
  let isInstalled = false
  const send = (name: ProbeName, body?: unknown) =>
    operate(client, reading.prefix, name, { app, setting: SETTING, body })

  /** Checks the setting. If the list of settings cannot be read, reads only this setting. */
  async function checkSetting(): Promise<CheckResult> {
    const list = await send('getAppSettings')
    const settings = recordOf(list)
    if (settings !== undefined) return Object.hasOwn(settings, SETTING) ? 'wrong' : 'right'
    const one = await send('getAppSetting')
    if (outcomeOf(one) === 'absent') return 'right'
    return isOk(one) && (one.value ?? null) !== null ? 'wrong' : resultOfFailure(list)
  }

  function compare(item: Item, now: AppRecord): CheckResult {
    if (item === 'state') return runs(before) !== true || runs(now) === true ? 'right' : 'late'
    const isOff = (record: AppRecord) => record['enabled'] === false
    if (item === 'enabled' ? isOff(before) === isOff(now) : before[item] === now[item]) return 'right'
    const [old, version] = [String(before['version']), String(now['version'])]
    return item === 'version' && isInstalled && compareVersions(version, old) < 0 ? 'late' : 'wrong'
  }

  return {
    async check(): Promise<(item: Item) => CheckResult> {
      const seen = await send('getApp')
      const setting = await checkSetting()
      const record = recordOf(seen)
      return (item) =>
        item === 'setting' ? setting : record === undefined ? resultOfFailure(seen) : compare(item, record)
    },

    async restore(item: Item): Promise<void> {
      const { autoupdate, channel, enabled } = before
      if (item === 'setting') await send('unsetAppSetting')
      else if (item === 'enabled') await send(enabled === false ? 'disableApp' : 'enableApp')
      else if (item === 'autoupdate') await send('updateApp', { autoupdate })
      else if (item === 'channel') await send('updateApp', { channel })
      else if (item === 'version' && !isInstalled) {
        const seen = await send('installFromAppStore', { id: app, ...(typeof channel === 'string' && { channel }) })
        isInstalled = isOk(seen) || (isAway(seen) && !isDenied(seen))
      }
    },
  }
}

/** Whether a hub that is away has certainly not begun to carry out the request. */
const isDenied = ({ status, failure }: Observation) => status === 429 || status === 503 || failure === 'unreachable'

/** Classifies a failed read: a hub that is starting is `away` and may recover, but a refusal is permanent. */
function resultOfFailure(seen: Observation): CheckResult {
  return isAway(seen) || outcomeOf(seen) === 'failed' ? 'away' : 'refused'
}

/** Whether an app is running; `null` while it starts or stops, or if its record has neither a state nor `ready`. */
export function runs({ state, ready }: Record<string, unknown>): boolean | null {
  if (typeof state !== 'string') return typeof ready === 'boolean' ? ready : null
  return state === 'stopping' || state === 'starting' ? null : state === 'running'
}
