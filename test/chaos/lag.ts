/**
 * Measures how long processes had to wait for a CPU, so that the checkers do not blame the bridge for a busy machine.
 * The hub and the client, which take all timestamps, run in this process.
 */
import { readFileSync } from 'node:fs'

const STEP_MS = 20
const MIN_LAG_MS = 50
/** The number of measured lags to keep, because in a long campaign only the latest ones matter. */
const KEPT = 10_000

const lags: { readonly at: number; readonly ms: number }[] = []

/** The clocks at the latest measurement. The interval is never cleared, so it measures until the process exits. */
let before = clocks()
setInterval(() => {
  const now = clocks()
  const ms = Math.max(...now.map((at, i) => at - (before[i] ?? at))) - STEP_MS
  before = now
  if (ms < MIN_LAG_MS) return
  lags.push({ at: Date.now(), ms })
  if (lags.length > KEPT) lags.shift()
}, STEP_MS).unref()

/** Reads two clocks. The first clock is monotonic, and stops while the machine is suspended. */
function clocks(): readonly number[] {
  return [performance.now(), Date.now()]
}

/** Returns the longest lag of this process since `since`, which is in epoch milliseconds. */
export function longestLag(since: number): number {
  return Math.max(0, ...lags.filter(({ at }) => at >= since).map(({ ms }) => ms))
}

/** Returns how long a process has waited for a CPU, in milliseconds; 0 if the system does not report it. */
export function waited(pid: number): number {
  try {
    const [, nanoseconds = '0'] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')
    return Number(nanoseconds) / 1e6
  } catch {
    return 0
  }
}
