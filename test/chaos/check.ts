/** The checkers: each looks at the history alone and tells what must not have happened. */
import type { Asked, History, Life, Sent, Violation } from './history.ts'

/** The longest that a command may wait inside the bridge. */
const MAX_WAIT_MS = 10_000
/** From the bridge's decision to the hub's first sight of the request, and what a whole-second expiry may be off by. */
const SLACK_MS = 1300
/** A call's deadline, a look at what became of it, and time for a busy machine. */
const ANSWER_MS = 8000
const EXIT_MS = 5000
/** How old the bridge's word of an app's name may be while it can see the hub. */
const STALE_MS = 4000

export interface Answer {
  readonly at: number
  readonly ok: boolean
  readonly code: string | undefined
  readonly replayed: boolean
}

/** The one error that is none of the bridge's own: somebody started a second one. */
const TELLS_OF_ANOTHER = /another hub2mqtt uses the same base topic/

type Checker = (history: History) => Iterable<string>

/** Answers by the token of what they answer. */
export function answersOf({ seen }: Pick<History, 'seen'>): Map<string, Answer[]> {
  const answers = new Map<string, Answer[]>()
  for (const { at, topic, text, packet, retain } of seen) {
    const token = packet.properties?.correlationData?.toString()
    if (token === undefined || retain || !isAnswer(topic)) continue
    const { ok, error, replayed } = parse(text)
    const list = answers.get(token) ?? []
    list.push({ at, ok: ok === true, code: error?.code, replayed: replayed === true })
    answers.set(token, list)
  }
  return answers
}

const isAnswer = (topic: string) => topic.startsWith('answers/') || /\/result(\/|$)/.test(topic)

function parse(text: string): { ok?: unknown; error?: { code?: string }; replayed?: unknown } {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

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

  /** A write reaches the hub once at most for each bridge that heard of it: one that was killed remembers nothing. */
  *'executed twice'({ sent, asked, lives }) {
    for (const [asks, copies] of byAsks(sent.filter(({ write }) => write))) {
      const count = asked.filter((one) => one.asks === asks).length
      const heard = lives.filter(({ startedAt, endedAt }) =>
        copies.some(({ at }) => at >= startedAt && at <= (endedAt ?? Number.POSITIVE_INFINITY)),
      )
      if (count > Math.max(1, heard.length)) yield `${asks} reached the hub ${count} times`
    }
  },

  *'executed late'({ sent, asked, stallMs }) {
    for (const [asks, copies] of byAsks(sent)) {
      const end = (copy: Sent) => Math.min(copy.at + MAX_WAIT_MS, copy.expiresAt ?? Number.POSITIVE_INFINITY)
      const deadline = Math.max(...copies.map(end)) + SLACK_MS + stallMs
      for (const { at } of asked.filter((one) => one.asks === asks)) {
        if (at > deadline) yield `${asks} reached the hub ${at - deadline} ms too late`
      }
    }
  },

  /** Whatever was refused, or sent while nobody listened, or never sent at all, does not reach the hub. */
  *'executed unasked'({ sent, asked }) {
    const wanted = new Map(byAsks(sent))
    for (const { asks, at } of asked) {
      if (asks === null) continue
      const copies = (wanted.get(asks) ?? []).filter((copy) => copy.at <= at)
      if (copies.length === 0) yield `${asks} reached the hub, and nobody had asked for it`
      else if (copies.every(({ away }) => away)) yield `${asks} was sent while the bridge was away, and executed`
      else if (copies.every(({ kind }) => kind !== 'good')) yield `${asks} was retained, and executed`
    }
  },

  /** Every command of a connection that lasted is answered; a broken one excuses. */
  *'not answered'(history) {
    const answers = answersOf(history)
    for (const [token, copies] of byToken(history.sent)) {
      const due = copies.filter((copy) => wasHeard(history, copy)).length
      const count = answers.get(token)?.length ?? 0
      if (count < due) yield `${copies[0]?.topic} (${token}): ${due} sent, ${count} answered`
    }
  },

  *'bad input accepted'(history) {
    const answers = answersOf(history)
    for (const { token, topic, kind } of unique(history.sent)) {
      const wrong = kind === 'good' ? undefined : answers.get(token)?.find(({ ok }) => ok)
      if (wrong !== undefined) yield `${topic} (${token}) was answered ok, but was ${kind}`
    }
  },

  *'secret shown'({ canaries, lives, seen }) {
    for (const canary of canaries) {
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

  *process({ lives }) {
    for (const life of lives) yield* troubleOf(life)
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

export type CheckerName = keyof typeof CHECKERS

export function check(history: History): Violation[] {
  return Object.entries(CHECKERS).flatMap(([checker, run]) => [...run(history)].map((what) => ({ checker, what })))
}

function* troubleOf({ lines, errors, end, wantedEnd, endedWithinMs }: Life): Iterable<string> {
  if (end !== wantedEnd)
    yield `ended with ${end ?? 'nothing'} instead of ${wantedEnd ?? 'going on'}: ${errors.at(-1) ?? lines.at(-1)}`
  if (wantedEnd === 'code 0' && (endedWithinMs ?? 0) > EXIT_MS) yield `took ${Math.round(endedWithinMs ?? 0)} ms to end`
  for (const line of lines)
    if (/"level":"(error|fatal)"/.test(line) && !TELLS_OF_ANOTHER.test(line)) yield `logged ${line.slice(0, 3000)}`
  if (errors.length > 0) yield `wrote to standard error: ${errors.join(' | ').slice(0, 3000)}`
}

/** Whether a connection that was online before the command came lasted long enough for the answer. */
function wasHeard({ links, onlineAt }: History, { at, away }: Sent): boolean {
  if (away) return false
  const link = links.find(
    (one) => one.openedAt < at && (one.closedAt ?? Number.POSITIVE_INFINITY) > at + ANSWER_MS + MAX_WAIT_MS,
  )
  if (link === undefined) return false
  return onlineAt.some((online) => online > link.openedAt && online < at)
}

/** What was not there, or was taken away meanwhile by others, is as gone as asked for. */
const isRemoval = (asks: string) => /^(unsetAppSetting|uninstallApp org\.visitor)/.test(asks)

function isAnswerWithSettings(topic: string, text: string): boolean {
  return isAnswer(topic) && /"command":"(get-settings?|get-setting)"/.test(text)
}

const mask = (text: string, canary: string) => text.replaceAll(canary, '<secret>').slice(0, 300)

function appOf(text: string): { id: string; name: string } {
  const { id, name }: { id?: unknown; name?: unknown } = Object(parse(text))
  return { id: String(id), name: String(name) }
}

function byAsks(sent: readonly Sent[]): Map<string, Sent[]> {
  return Map.groupBy(
    sent.filter(({ asks }) => asks !== null),
    ({ asks }) => asks ?? '',
  )
}

function byToken(sent: readonly Sent[]): Map<string, Sent[]> {
  return Map.groupBy(sent, ({ token }) => token)
}

/** One of each, however many copies were sent. */
function unique(sent: readonly Sent[]): Sent[] {
  return [...byToken(sent).values()].flatMap(([first]) => (first === undefined ? [] : [first]))
}

export type { Asked }
