/** The checkers, which find violations in the history of an episode. They have no other input. */
import type { Seen } from '../support/observer.ts'
import { type Answer, answersOf, isAnswer, parse } from './answers.ts'
import type { History, Life, LiveChecker, Sent, Violation } from './history.ts'
import { APPS } from './model.ts'
import {
  byHubRequest,
  byToken,
  byTransaction,
  MAX_WAIT_MS,
  MEMORY_MS,
  MEMORY_SLACK_MS,
  mayTakeLong,
  passing,
  startedTogether,
  timesForgotten,
  UNDER_WAY_MS,
  unique,
  wasReceived,
} from './sent.ts'

/** The time from the bridge's decision until the request reaches the hub, plus the rounding of an expiry to seconds. */
const SLACK_MS = 1300
const EXIT_MS = 5000
/** The bridge's keep-alive interval. The broker closes the connection after 1.5 times this interval. */
const KEEPALIVE_MS = 2000
/** How long an old app name may still be published while the bridge can reach the hub. */
const STALE_MS = 4000
/** Additional time for a change without an event, because a list that lacks apps is read up to five times. */
const LIST_MS = 10_000

/** An error line that is always permitted, because the harness sometimes starts a second bridge. */
const SECOND_BRIDGE = /another hub2mqtt uses the same base topic/

type Checker = (history: History) => Iterable<string>

export const CHECKERS = {
  /** The hub must have executed every command that was answered `ok`, except removals. */
  *'confirmed, not executed'(history) {
    const answers = answersOf(history)
    for (const { token, hubRequest, topic } of unique(history.sent)) {
      const confirmed = answers.get(token)?.find(({ ok }) => ok)
      if (hubRequest === null || confirmed === undefined || isRemoval(hubRequest)) continue
      const done = history.hubRequests.some(
        (one) => one.hubRequest === hubRequest && one.executed && one.at <= confirmed.at,
      )
      if (!done) yield `${topic} (${token}) was answered ok, but the hub never executed ${hubRequest}`
    }
  },

  /** A command that the hub has executed must not be reported as failed, because the client would repeat it. */
  *'executed, called failed'(history) {
    const answers = answersOf(history)
    for (const [hubRequest, copies] of byHubRequest(history.sent.filter(({ write }) => write))) {
      const [first, ...others] = copies
      const failed = answers.get(first?.token ?? '')?.find(({ code }) => code === 'hub_failed')
      const done = history.hubRequests.some((one) => one.hubRequest === hubRequest && one.executed)
      if (others.length === 0 && failed !== undefined && done)
        yield `${hubRequest} was executed, but answered ${failed.text}`
    }
  },

  /** Each bridge process must send a write to the hub at most once. A new process has no record of earlier writes. */
  *'executed twice'(history) {
    const { sent, hubRequests, lives } = history
    for (const [hubRequest, copies] of byHubRequest(sent.filter(({ write }) => write))) {
      // A request that the hub refused with 429 was not executed.
      const count = hubRequests.filter((one) => one.hubRequest === hubRequest && one.status !== 429).length
      const receivers = lives.filter(({ startedAt, endedAt }) =>
        copies.some(({ at }) => at >= startedAt && at <= (endedAt ?? Number.POSITIVE_INFINITY)),
      )
      const allowed = Math.min(copies.length, Math.max(1, receivers.length) + timesForgotten(history, copies))
      if (count > allowed) yield `${hubRequest} reached the hub ${count} times`
    }
  },

  *'executed late'({ sent, hubRequests, stallMs, wallClockStepped }) {
    for (const [hubRequest, copies] of byHubRequest(sent)) {
      const expiry = ({ expiresAt }: Sent) => (wallClockStepped ? null : expiresAt) ?? Number.POSITIVE_INFINITY
      const end = (copy: Sent) => Math.min(copy.at + MAX_WAIT_MS, expiry(copy))
      const deadline = Math.max(...copies.map(end)) + SLACK_MS + stallMs
      for (const { at } of hubRequests.filter((one) => one.hubRequest === hubRequest)) {
        if (at > deadline) yield `${hubRequest} reached the hub ${at - deadline} ms too late`
      }
    }
  },

  /** Each write to the hub must belong to a valid, unretained command that was sent while a bridge was online. */
  *'executed unasked'({ sent, earlier, hubRequests }) {
    const wanted = byHubRequest([...earlier, ...sent])
    for (const { hubRequest, at, executed } of hubRequests) {
      // Before the bridge has read its first list, it forwards commands for unknown apps, which the hub rejects.
      if (hubRequest === null || (!executed && / nobody-/.test(hubRequest))) continue
      const copies = (wanted.get(hubRequest) ?? []).filter((copy) => copy.at <= at)
      if (copies.length === 0) yield `${hubRequest} reached the hub without a command`
      else if (copies.every(({ offline }) => offline))
        yield `${hubRequest} was sent while the bridge was offline, but executed`
      else if (copies.every(({ kind }) => kind !== 'good')) yield `${hubRequest} was retained, but executed`
    }
  },

  /** Every command must be answered, unless the bridge's connection was lost before the answer. */
  *'not answered'(history) {
    const answers = answersOf(history)
    const end = history.seen.at(-1)?.at ?? 0
    for (const [token, copies] of byToken(history.sent)) {
      const due = copies.filter((copy) => wasReceived(history, copy) && !mayTakeLong(copy, end)).length
      const count = answers.get(token)?.length ?? 0
      if (count < due) yield `${copies[0]?.topic} (${token}): ${due} sent, ${count} answered`
    }
  },

  /**
   * Each command must have one answer. Identical messages are duplicates, which QoS 1 allows. On a new connection, the
   * bridge may replace an answer by `too_large`, because it cannot know whether the broker has received the answer.
   */
  *'answered twice'(history: Pick<History, 'links' | 'lives' | 'seen' | 'sent'>) {
    const answers = answersOf(history)
    // Skip retained commands: until such a command is cleared, the bridge receives it on each connection.
    for (const [token, copies] of byToken(history.sent.filter(({ kind }) => kind !== 'retained'))) {
      const given = answers.get(token) ?? []
      const isReplacement = ({ code, at }: Answer) =>
        code === 'too_large' &&
        given.some((earlier) => history.links.some(({ openedAt }) => openedAt > earlier.at && openedAt <= at))
      const count = new Set(given.filter((one) => !isReplacement(one)).map(({ text }) => text)).size
      const allowed = copies.length + copies.filter((copy) => startedTogether(history, copy)).length
      if (count > allowed) yield `${copies[0]?.topic} (${token}): ${copies.length} sent, ${count} answered`
    }
  },

  /** Every published rename, installation or removal of an app must also cause an event. */
  *'event lost'(history) {
    if (history.excuses.size > 0) return
    const own = history.seen.filter((one) => !history.planted.has(one))
    const events = Map.groupBy(own.flatMap(eventOf), ({ topic }) => topic)
    for (const [topic, states] of Map.groupBy(own.filter(isAppState), (one) => one.topic)) {
      const sent = events.get(topic) ?? []
      for (const [what, count] of transitions(states)) {
        const found = sent.filter(({ changes }) => changes.includes(what)).length
        if (found < count) yield `${topic}: ${what} ${count} times in the state, but ${found} times as an event`
      }
    }
  },

  /** After a reload that denies a command, the command must no longer reach the hub. */
  *'denied executed'({ denials, hubRequests, stallMs }) {
    for (const { from, to = Number.POSITIVE_INFINITY, hubRequest: denied } of denials) {
      for (const { at, hubRequest } of hubRequests) {
        if (hubRequest !== null && denied.test(hubRequest) && at > from + UNDER_WAY_MS + stallMs && at < to)
          yield `${hubRequest} reached the hub ${at - from} ms after it was denied`
      }
    }
  },

  /**
   * Measures the time from the client's receipt of an original answer until the client sends the next copy. The bridge
   * stores the answer earlier and receives the copy later, so clock jumps in transit do not count.
   */
  *'remembered too long'(history) {
    const passed = passing(history)
    const answers = answersOf(history)
    for (const [transaction, copies] of byTransaction(history.sent)) {
      let fresh = Number.POSITIVE_INFINITY
      for (const { token, at } of copies.toSorted((one, other) => one.at - other.at)) {
        const [answer] = answers.get(token) ?? []
        const age = passed(at) - fresh
        if (answer?.replayed && age > MEMORY_MS + MEMORY_SLACK_MS)
          yield `${transaction} was answered from memory after ${age} ms`
        // The answer was lost, so it is unknown whether the bridge stored the transaction for this copy.
        if (answer === undefined) fresh = Number.POSITIVE_INFINITY
        else if (!answer.replayed) fresh = passed(answer.at)
      }
    }
  },

  /** A removed app must not be published again, unless it is installed again. */
  *resurrected({ returned, lives }) {
    if (!overlap(lives)) yield* returned
  },

  /** Reports nothing if the machine was so busy that the bridge might have missed its keep-alive. */
  *'said offline'({ seen, planted, staysOnline, lagMs }) {
    if (!staysOnline || lagMs > KEEPALIVE_MS / 2) return
    const offline = seen.find((one) => isState(one.topic) && one.text === 'offline' && !planted.has(one))
    if (offline !== undefined) yield `${offline.topic} without reason`
  },

  *'bad input accepted'(history) {
    const answers = answersOf(history)
    for (const { token, topic, kind } of unique(history.sent)) {
      const wrong = kind === 'good' ? undefined : answers.get(token)?.find(({ ok }) => ok)
      if (wrong !== undefined) yield `${topic} (${token}) was answered ok, but was ${kind}`
    }
  },

  *'secret shown'({ canaries, lives, seen }) {
    // Remove the last two characters of each secret, to find truncated secrets too.
    for (const canary of canaries.map((whole) => whole.slice(0, -2))) {
      for (const { lines, errors } of lives) {
        const line = [...lines, ...errors].find((one) => one.includes(canary))
        if (line !== undefined) yield `in the log: ${mask(line, canary)}`
      }
      for (const { topic, text } of seen) {
        if (topic.includes(canary)) yield `as a topic: ${mask(topic, canary)}`
        const mayHold = topic.includes('/cmd/') || isAnswerWithSettings(topic, text)
        if (!mayHold && text.includes(canary)) yield `on ${topic}: ${mask(text, canary)}`
      }
    }
  },

  *process({ lives, expectedErrors, lagMs }) {
    for (const life of lives) yield* troubleOf(life, [SECOND_BRIDGE, ...expectedErrors], EXIT_MS + lagMs)
  },

  /**
   * The bridge must not publish an app name that the hub replaced long before, for example after a reconnect. `stallMs`
   * allows for messages that the network has delayed after the bridge sent them.
   */
  *'stale state'({ seen, names, hubWasWell, stallMs }) {
    if (!hubWasWell) return
    for (const { at, topic, text, retain } of seen) {
      if (!retain || !/\/app\/[^/]+$/.test(topic) || text === '') continue
      const { id, name } = appOf(text)
      const known = names.get(id) ?? []
      const index = known.findIndex((one) => one.name === name)
      const later = index < 0 ? [] : known.slice(index + 1)
      const missed = later.find((one) => at - one.at > STALE_MS + stallMs + (one.silent ? LIST_MS : 0))
      if (missed !== undefined) yield `${topic} says ${name} ${at - missed.at} ms after it was replaced`
    }
  },
} satisfies Record<string, Checker>

export type CheckerName = keyof typeof CHECKERS | LiveChecker

export function check(history: History): Violation[] {
  const found = Object.entries(CHECKERS).flatMap(([checker, run]) =>
    [...run(history)].map((what) => ({ checker, what })),
  )
  return [...found, ...history.live]
}

function* troubleOf(
  { lines, errors, end, expectedEnd, endedWithinMs }: Life,
  expected: readonly RegExp[],
  exitMs: number,
): Iterable<string> {
  if (end !== expectedEnd)
    yield `ended with ${end ?? 'nothing'} instead of ${expectedEnd ?? 'still running'}: ${errors.at(-1) ?? lines.at(-1)}`
  if (expectedEnd === 'code 0' && (endedWithinMs ?? 0) > exitMs)
    yield `took ${Math.round(endedWithinMs ?? 0)} ms to end`
  for (const line of lines)
    if (/"level":"(error|fatal)"/.test(line) && !expected.some((one) => one.test(line)))
      yield `logged ${line.slice(0, 3000)}`
  if (errors.length > 0) yield `wrote to standard error: ${errors.join(' | ').slice(0, 3000)}`
}

/** Recognises removals, which are `ok` even if another client has removed the app or setting; see `false ok`. */
const isRemoval = (hubRequest: string) => /^(unsetAppSetting|uninstallApp org\.visitor)/.test(hubRequest)

/** Returns `true` if two bridges ran at the same time. The second might then have taken over with outdated data. */
function overlap(lives: readonly Life[]): boolean {
  return lives.some((life, index) =>
    lives.slice(index + 1).some(({ startedAt }) => startedAt < (life.endedAt ?? Number.POSITIVE_INFINITY)),
  )
}

const isState = (topic: string) => /^[^/]+\/[^/]+\/state$/.test(topic)
const isAppState = ({ topic, retain }: Seen) => retain && topic.startsWith(APPS) && topic.split('/').length === 4

/** Returns the state topic of the app that an event is about, and the reported changes. */
function eventOf({ topic, text }: Seen): { topic: string; changes: readonly string[] }[] {
  if (!topic.startsWith(APPS) || !topic.endsWith('/event')) return []
  const { event_type: type, changed }: { event_type?: unknown; changed?: unknown } = Object(parse(text))
  const reported = Array.isArray(changed) ? changed.map(String) : []
  const changes = type === 'installed' || type === 'removed' ? [type] : reported
  return [{ topic: topic.slice(0, -'/event'.length), changes }]
}

/** Counts the renames, installations and removals that an app's states show. */
function transitions(states: readonly Seen[]): Map<string, number> {
  const counts = new Map<string, number>()
  let before: string | undefined
  for (const { text } of states) {
    const now = text === '' ? '' : appOf(text).name
    const what = now === '' ? 'removed' : before === '' ? 'installed' : 'name'
    if (before !== undefined && now !== before) counts.set(what, (counts.get(what) ?? 0) + 1)
    before = now
  }
  return counts
}

function isAnswerWithSettings(topic: string, text: string): boolean {
  return isAnswer(topic) && /"command":"(get-settings?|get-setting)"/.test(text)
}

const mask = (text: string, canary: string) => text.replaceAll(canary, '<secret>').slice(0, 300)

function appOf(text: string): { id: string; name: string } {
  const { id, name }: { id?: unknown; name?: unknown } = Object(parse(text))
  return { id: String(id), name: String(name) }
}
