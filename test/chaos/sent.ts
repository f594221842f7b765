import { COPY, type History, type Sent } from './history.ts'

/** How long a command may wait inside the bridge. */
export const MAX_WAIT_MS = 10_000
/** The time limit for an answer: a call's timeout, the check of its outcome, and time for a busy machine. */
const ANSWER_MS = 8000
/** How long the bridge remembers an answered transaction, and the tolerance of the checkers. */
export const MEMORY_MS = 5 * 60_000
export const MEMORY_SLACK_MS = 10_000
/** How long a command or request may be in transit while something changes. */
export const UNDER_WAY_MS = 300
/** The time limit for an install. The bridge verifies it for a minute, and the rest is for the call. */
const INSTALL_MS = 80_000

/** Returns a function that converts a time to the bridge's clock, which may have jumped. */
export function passing({ jumps }: Pick<History, 'jumps'>): (at: number) => number {
  return (at) => at + jumps.filter((jump) => jump.at <= at).reduce((sum, { by }) => sum + by, 0)
}

/** Counts how often the bridge may have forgotten the transaction between two copies, which takes five minutes. */
export function timesForgotten(history: History, copies: readonly Sent[]): number {
  const passed = passing(history)
  let times = 0
  let fresh = Number.POSITIVE_INFINITY
  for (const { at } of copies.toSorted((one, other) => one.at - other.at)) {
    // Add the time in transit, because the clock may jump while the message is in transit.
    if (passed(at + UNDER_WAY_MS) - fresh > MEMORY_MS - MEMORY_SLACK_MS) times += 1
    else if (Number.isFinite(fresh)) continue
    fresh = passed(at)
  }
  return times
}

/** Returns whether an install may have no result yet, because the bridge may check the hub for a minute. */
export const mayTakeLong = ({ hubRequest, at }: Sent, now: number) =>
  hubRequest?.startsWith('installFromAppStore') === true && now - at < INSTALL_MS

/** The time in which two bridges that start at the same moment detect each other. */
const DETECTION_MS = 1000

/** Returns `true` if several bridges had just connected, so that each of them may have been active. */
export function startedTogether({ links, lives }: Pick<History, 'links' | 'lives'>, { at }: Sent): boolean {
  const fresh = links.filter(
    ({ openedAt, closedAt = at }) => openedAt > at - DETECTION_MS && openedAt <= at && closedAt >= at,
  )
  return lives.length > 1 && fresh.length > 1
}

/** Returns the commands of a finished episode that may still reach the hub. */
export function underWay(sent: readonly Sent[], now: number): Sent[] {
  return sent.filter((copy) => now - copy.at < MAX_WAIT_MS + ANSWER_MS || mayTakeLong(copy, now))
}

/** Returns `true` if the bridge was online before the command, and stayed connected long enough for the answer. */
export function wasReceived({ links, onlineAt }: History, { at, offline }: Sent): boolean {
  if (offline) return false
  const link = links.find(
    (one) => one.openedAt < at && (one.closedAt ?? Number.POSITIVE_INFINITY) > at + ANSWER_MS + MAX_WAIT_MS,
  )
  if (link === undefined) return false
  // A new connection with the same client id ends the previous one, which may have published `online` until its end.
  const overlapped = links.filter(({ openedAt, closedAt = 0 }) => openedAt < link.openedAt && closedAt > link.openedAt)
  const since = Math.max(link.openedAt, ...overlapped.map(({ closedAt = 0 }) => closedAt))
  return onlineAt.some((online) => online > since && online < at)
}

export function byHubRequest(sent: readonly Sent[]): Map<string, Sent[]> {
  return Map.groupBy(
    sent.filter(({ hubRequest }) => hubRequest !== null),
    ({ hubRequest }) => hubRequest ?? '',
  )
}

export function byToken(sent: readonly Sent[]): Map<string, Sent[]> {
  return Map.groupBy(sent, ({ token }) => token)
}

/** Groups copies with different tokens by their common transaction. */
export function byTransaction(sent: readonly Sent[]): Map<string, Sent[]> {
  return Map.groupBy(
    sent.filter(({ token }) => token.includes(COPY)),
    ({ token }) => token.split(COPY)[0] ?? '',
  )
}

export function unique(sent: readonly Sent[]): Sent[] {
  return [...byToken(sent).values()].flatMap(([first]) => (first === undefined ? [] : [first]))
}
