/**
 * How long this process has done nothing else at a time. The hub, the client and the clock of all that is seen are in
 * it: what comes late by that is not the bridge's doing, and on a busy machine the bridge hardly fared better.
 */
const STEP_MS = 20
const WORTH_TELLING_MS = 50
/** Of a campaign's length, only the latest matter. */
const KEPT = 10_000

const lags: { readonly at: number; readonly ms: number }[] = []

/** Begins with the import; ends with the process. */
let before = performance.now()
setInterval(() => {
  const now = performance.now()
  const ms = now - before - STEP_MS
  before = now
  if (ms < WORTH_TELLING_MS) return
  lags.push({ at: Date.now(), ms })
  if (lags.length > KEPT) lags.shift()
}, STEP_MS).unref()

/** The longest since then (epoch milliseconds), in milliseconds. */
export function longestLag(since: number): number {
  return Math.max(0, ...lags.filter(({ at }) => at >= since).map(({ ms }) => ms))
}
