/** The checkers: each looks at the history alone and tells what must not have happened. */
import type { Seen } from '../support/observer.ts'
import { answersOf, isAnswer, parse } from './answers.ts'
import type { History, Life, LiveChecker, Sent, Violation } from './history.ts'
import { APPS } from './model.ts'
import {
  byAsks,
  byToken,
  byTransaction,
  cameTogether,
  MAX_WAIT_MS,
  MEMORY_MS,
  MEMORY_SLACK_MS,
  mayTakeLong,
  passing,
  timesForgotten,
  UNDER_WAY_MS,
  unique,
  wasHeard,
} from './sent.ts'

/** From the bridge's decision to the hub's first sight of the request, and what a whole-second expiry may be off by. */
const SLACK_MS = 1300
const EXIT_MS = 5000
/** As the bridge is configured; the broker waits for half as much again. */
const KEEPALIVE_MS = 2000
/** How old the bridge's word of an app's name may be while it can see the hub. */
const STALE_MS = 4000

/** The one error that is none of the bridge's own: somebody started a second one. */
const TELLS_OF_ANOTHER = /another hub2mqtt uses the same base topic/

type Checker = (history: History) => Iterable<string>

export const CHECKERS = {
  /** Each `ok` was carried out by the hub. */
  *'confirmed, not executed'(history) {
    const answers = answersOf(history)
    for (const { token, asks, topic } of unique(history.sent)) {
      const confirmed = answers.get(token)?.find(({ ok }) => ok)
      if (asks === null || confirmed === undefined || isRemoval(asks)) continue
      const done = history.asked.some((one) => one.asks === asks && one.executed && one.at <= confirmed.at)
      if (!done) yield `${topic} (${token}) was answered ok, and the hub never did ${asks}`
    }
  },

  /** What the hub did for the only one who asked is not called a failure: he would ask again. */
  *'executed, called failed'(history) {
    const answers = answersOf(history)
    for (const [asks, copies] of byAsks(history.sent.filter(({ write }) => write))) {
      const [first, ...others] = copies
      const failed = answers.get(first?.token ?? '')?.find(({ code }) => code === 'hub_failed')
      const done = history.asked.some((one) => one.asks === asks && one.executed)
      if (others.length === 0 && failed !== undefined && done) yield `${asks} was done, and answered ${failed.text}`
    }
  },

  /** A write reaches the hub once at most for each bridge that heard of it: one that was killed remembers nothing. */
  *'executed twice'(history) {
    const { sent, asked, lives } = history
    for (const [asks, copies] of byAsks(sent.filter(({ write }) => write))) {
      // What the hub put off by 429 was not carried out.
      const count = asked.filter((one) => one.asks === asks && one.status !== 429).length
      const heard = lives.filter(({ startedAt, endedAt }) =>
        copies.some(({ at }) => at >= startedAt && at <= (endedAt ?? Number.POSITIVE_INFINITY)),
      )
      const allowed = Math.min(copies.length, Math.max(1, heard.length) + timesForgotten(history, copies))
      if (count > allowed) yield `${asks} reached the hub ${count} times`
    }
  },

  *'executed late'({ sent, asked, stallMs, wallClockStepped }) {
    for (const [asks, copies] of byAsks(sent)) {
      const expiry = ({ expiresAt }: Sent) => (wallClockStepped ? null : expiresAt) ?? Number.POSITIVE_INFINITY
      const end = (copy: Sent) => Math.min(copy.at + MAX_WAIT_MS, expiry(copy))
      const deadline = Math.max(...copies.map(end)) + SLACK_MS + stallMs
      for (const { at } of asked.filter((one) => one.asks === asks)) {
        if (at > deadline) yield `${asks} reached the hub ${at - deadline} ms too late`
      }
    }
  },

  /** Whatever was refused, or sent while nobody listened, or never sent at all, does not reach the hub. */
  *'executed unasked'({ sent, earlier, asked }) {
    const wanted = byAsks([...earlier, ...sent])
    for (const { asks, at, executed } of asked) {
      // A bridge that has not read the list yet lets the hub say that it has no such app.
      if (asks === null || (!executed && / nobody-/.test(asks))) continue
      const copies = (wanted.get(asks) ?? []).filter((copy) => copy.at <= at)
      if (copies.length === 0) yield `${asks} reached the hub, and nobody had asked for it`
      else if (copies.every(({ away }) => away)) yield `${asks} was sent while the bridge was away, and executed`
      else if (copies.every(({ kind }) => kind !== 'good')) yield `${asks} was retained, and executed`
    }
  },

  /** Every command of a connection that lasted is answered; a broken one excuses. */
  *'not answered'(history) {
    const answers = answersOf(history)
    const end = history.seen.at(-1)?.at ?? 0
    for (const [token, copies] of byToken(history.sent)) {
      const due = copies.filter((copy) => wasHeard(history, copy) && !mayTakeLong(copy, end)).length
      const count = answers.get(token)?.length ?? 0
      if (count < due) yield `${copies[0]?.topic} (${token}): ${due} sent, ${count} answered`
    }
  },

  /** One command, one answer. The same message again is a repetition on the way, which QoS 1 allows. */
  *'answered twice'(history) {
    const answers = answersOf(history)
    // A retained one is met again with each connection until it is cleared.
    for (const [token, copies] of byToken(history.sent.filter(({ kind }) => kind !== 'retained'))) {
      const count = new Set(answers.get(token)?.map(({ text }) => text)).size
      const allowed = copies.length + copies.filter((copy) => cameTogether(history, copy)).length
      if (count > allowed) yield `${copies[0]?.topic} (${token}): ${copies.length} sent, ${count} answered`
    }
  },

  /** Every change of an app's name, and every app that comes or goes, that is told as state is told as an event too. */
  *'event lost'(history) {
    if (history.excuses.size > 0) return
    const own = history.seen.filter((one) => !history.planted.has(one))
    const events = Map.groupBy(own.flatMap(eventOf), ({ topic }) => topic)
    for (const [topic, states] of Map.groupBy(own.filter(isAppState), (one) => one.topic)) {
      const told = events.get(topic) ?? []
      for (const [what, count] of transitions(states)) {
        const found = told.filter(({ tells }) => tells.includes(what)).length
        if (found < count) yield `${topic}: ${count} times ${what} as state, ${found} times as event`
      }
    }
  },

  /** What is refused by configuration does not reach the hub any more once that is in force. */
  *'denied executed'({ denials, asked, stallMs }) {
    for (const { from, to = Number.POSITIVE_INFINITY, asks: denied } of denials) {
      for (const { at, asks } of asked) {
        if (asks !== null && denied.test(asks) && at > from + UNDER_WAY_MS + stallMs && at < to)
          yield `${asks} reached the hub ${at - from} ms after it was denied`
      }
    }
  },

  /**
   * From an answer that was not from memory to the next copy of the command: the one was remembered before it was seen,
   * the other came in after it was sent, so that a jump of time between these does not count.
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
        // One whose answer got lost may have been the first of its time.
        if (answer === undefined) fresh = Number.POSITIVE_INFINITY
        else if (!answer.replayed) fresh = passed(answer.at)
      }
    }
  },

  /** An app that is gone stays away, unless the hub has it again. */
  *resurrected({ returned, lives }) {
    if (!overlap(lives)) yield* returned
  },

  /** A bridge that gets no time at all misses its keep-alive: then nothing is to be said. */
  *'said offline'({ seen, planted, staysOnline, lagMs }) {
    if (!staysOnline || lagMs > KEEPALIVE_MS / 2) return
    const said = seen.find((one) => isState(one.topic) && one.text === 'offline' && !planted.has(one))
    if (said !== undefined) yield `${said.topic} without reason`
  },

  *'bad input accepted'(history) {
    const answers = answersOf(history)
    for (const { token, topic, kind } of unique(history.sent)) {
      const wrong = kind === 'good' ? undefined : answers.get(token)?.find(({ ok }) => ok)
      if (wrong !== undefined) yield `${topic} (${token}) was answered ok, but was ${kind}`
    }
  },

  *'secret shown'({ canaries, lives, seen }) {
    // Most of a secret is as bad as all of it.
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

  *process({ lives, tells, lagMs }) {
    for (const life of lives) yield* troubleOf(life, [TELLS_OF_ANOTHER, ...tells], EXIT_MS + lagMs)
  },

  /** After a reconnect the newest state of each app is sent, and nothing that has been replaced meanwhile. */
  // What was on the way when the network held it comes late, and nobody can take it back.
  *'stale state'({ seen, names, hubWasWell, stallMs }) {
    if (!hubWasWell) return
    for (const { at, topic, text, retain } of seen) {
      if (!retain || !/\/app\/[^/]+$/.test(topic) || text === '') continue
      const { id, name } = appOf(text)
      const known = names.get(id) ?? []
      const next = known[known.findIndex((one) => one.name === name) + 1]
      if (known.some((one) => one.name === name) && next !== undefined && at - next.at > STALE_MS + stallMs)
        yield `${topic} says ${name} ${at - next.at} ms after it was replaced`
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
  { lines, errors, end, wantedEnd, endedWithinMs }: Life,
  expected: readonly RegExp[],
  exitMs: number,
): Iterable<string> {
  if (end !== wantedEnd)
    yield `ended with ${end ?? 'nothing'} instead of ${wantedEnd ?? 'going on'}: ${errors.at(-1) ?? lines.at(-1)}`
  if (wantedEnd === 'code 0' && (endedWithinMs ?? 0) > exitMs) yield `took ${Math.round(endedWithinMs ?? 0)} ms to end`
  for (const line of lines)
    if (/"level":"(error|fatal)"/.test(line) && !expected.some((one) => one.test(line)))
      yield `logged ${line.slice(0, 3000)}`
  if (errors.length > 0) yield `wrote to standard error: ${errors.join(' | ').slice(0, 3000)}`
}

/** What others took away meanwhile is as gone as asked for; `false ok` looks at these. */
const isRemoval = (asks: string) => /^(unsetAppSetting|uninstallApp org\.visitor)/.test(asks)

/** Whether two bridges ran at a time: the second may have known less when it took over. */
function overlap(lives: readonly Life[]): boolean {
  return lives.some((life, index) =>
    lives.slice(index + 1).some(({ startedAt }) => startedAt < (life.endedAt ?? Number.POSITIVE_INFINITY)),
  )
}

const isState = (topic: string) => /^[^/]+\/[^/]+\/state$/.test(topic)
const isAppState = ({ topic, retain }: Seen) => retain && topic.startsWith(APPS) && topic.split('/').length === 4

/** The state topic of the app that an event is about, and what it tells. */
function eventOf({ topic, text }: Seen): { topic: string; tells: readonly string[] }[] {
  if (!topic.startsWith(APPS) || !topic.endsWith('/event')) return []
  const { event_type: type, changed }: { event_type?: unknown; changed?: unknown } = Object(parse(text))
  const tells = type === 'installed' || type === 'removed' ? [type] : Array.isArray(changed) ? changed.map(String) : []
  return [{ topic: topic.slice(0, -'/event'.length), tells }]
}

/** How often an app's state says something new, by what it is. */
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
