/**
 * How busy the machine is. The hub, the client and the clock of all that is seen are in this process: what comes late
 * because it did nothing at all is not the bridge's doing. Nor is what the system keeps a process from doing.
 */
import { readFileSync } from 'node:fs'

const STEP_MS = 20
const WORTH_TELLING_MS = 50
/** Of a campaign's length, only the latest matter. */
const KEPT = 10_000

const lags: { readonly at: number; readonly ms: number }[] = []

/** Begins with the import; ends with the process. */
let before = clocks()
setInterval(() => {
  const now = clocks()
  const ms = Math.max(...now.map((at, i) => at - (before[i] ?? at))) - STEP_MS
  before = now
  if (ms < WORTH_TELLING_MS) return
  lags.push({ at: Date.now(), ms })
  if (lags.length > KEPT) lags.shift()
}, STEP_MS).unref()

/** While a machine is suspended, the monotonic one stands still. */
function clocks(): readonly number[] {
  return [performance.now(), Date.now()]
}

/** The longest since then (epoch milliseconds), in milliseconds. */
export function longestLag(since: number): number {
  return Math.max(0, ...lags.filter(({ at }) => at >= since).map(({ ms }) => ms))
}

/** How long the system has let a process wait for a processor so far, in milliseconds; 0 where it does not tell. */
export function waited(pid: number): number {
  try {
    const [, nanoseconds = '0'] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')
    return Number(nanoseconds) / 1e6
  } catch {
    return 0
  }
}
