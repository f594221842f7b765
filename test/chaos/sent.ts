/** Commands as they were sent: what belongs together, which of them the bridge heard, and what its memory allows. */
import { COPY, type History, type Sent } from './history.ts'

/** The longest that a command may wait inside the bridge. */
export const MAX_WAIT_MS = 10_000
/** A call's deadline, a look at what became of it, and time for a busy machine. */
const ANSWER_MS = 8000
/** How long an answered transaction is remembered, and what that may be off by. */
export const MEMORY_MS = 5 * 60_000
export const MEMORY_SLACK_MS = 10_000
/** A command or a request that is on its way as something changes. */
export const UNDER_WAY_MS = 300
/** A minute, and what the call itself may take. */
const INSTALL_MS = 80_000

/** The bridge's own time, which jumps now and then. */
export function passing({ jumps }: Pick<History, 'jumps'>): (at: number) => number {
  return (at) => at + jumps.filter((jump) => jump.at <= at).reduce((sum, { by }) => sum + by, 0)
}

/** How often a transaction may have been forgotten between its first copy and its last, as five minutes had passed. */
export function timesForgotten(history: History, copies: readonly Sent[]): number {
  const passed = passing(history)
  let times = 0
  let fresh = Number.POSITIVE_INFINITY
  for (const { at } of copies.toSorted((one, other) => one.at - other.at)) {
    // Time may jump while the message is on its way.
    if (passed(at + UNDER_WAY_MS) - fresh > MEMORY_MS - MEMORY_SLACK_MS) times += 1
    else if (Number.isFinite(fresh)) continue
    fresh = passed(at)
  }
  return times
}

/** The hub is looked at for a minute before an install counts as unknown. */
export const mayTakeLong = ({ asks, at }: Sent, now: number) =>
  asks?.startsWith('installFromAppStore') === true && now - at < INSTALL_MS

/** Two bridges that come at the same moment have heard of each other after so long. */
const HEARD_MS = 1000

/** Whether several bridges had just connected: each of them may have taken itself for the only one. */
export function cameTogether({ links, lives }: Pick<History, 'links' | 'lives'>, { at }: Sent): boolean {
  const fresh = links.filter(
    ({ openedAt, closedAt = at }) => openedAt > at - HEARD_MS && openedAt <= at && closedAt >= at,
  )
  return lives.length > 1 && fresh.length > 1
}

/** Commands that may still reach the hub although nobody waits for their answers any more. */
export function underWay(sent: readonly Sent[], now: number): Sent[] {
  return sent.filter((copy) => now - copy.at < MAX_WAIT_MS + ANSWER_MS || mayTakeLong(copy, now))
}

/** Whether a connection that was online before the command came lasted long enough for the answer. */
export function wasHeard({ links, onlineAt }: History, { at, away }: Sent): boolean {
  if (away) return false
  const link = links.find(
    (one) => one.openedAt < at && (one.closedAt ?? Number.POSITIVE_INFINITY) > at + ANSWER_MS + MAX_WAIT_MS,
  )
  if (link === undefined) return false
  // Another connection with the same client id ends the former one, which may have said `online` until then.
  const overlapped = links.filter(({ openedAt, closedAt = 0 }) => openedAt < link.openedAt && closedAt > link.openedAt)
  const since = Math.max(link.openedAt, ...overlapped.map(({ closedAt = 0 }) => closedAt))
  return onlineAt.some((online) => online > since && online < at)
}

export function byAsks(sent: readonly Sent[]): Map<string, Sent[]> {
  return Map.groupBy(
    sent.filter(({ asks }) => asks !== null),
    ({ asks }) => asks ?? '',
  )
}

export function byToken(sent: readonly Sent[]): Map<string, Sent[]> {
  return Map.groupBy(sent, ({ token }) => token)
}

/** Copies with a token of each its own, by the transaction that they share. */
export function byTransaction(sent: readonly Sent[]): Map<string, Sent[]> {
  return Map.groupBy(
    sent.filter(({ token }) => token.includes(COPY)),
    ({ token }) => token.split(COPY)[0] ?? '',
  )
}

/** One of each, however many copies were sent. */
export function unique(sent: readonly Sent[]): Sent[] {
  return [...byToken(sent).values()].flatMap(([first]) => (first === undefined ? [] : [first]))
}
