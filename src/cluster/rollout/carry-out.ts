/** Carries out a rollout from its current state, over one connection, by sending commands as a client does. */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import { type Clock, sleep, within } from '../../base/clock.ts'
import { readJson } from '../../base/read-json.ts'
import { durationMs } from '../../contract/payload.ts'
import type { Rollout, RolloutCommand, RolloutFailure, RolloutStep } from '../../contract/rollout.ts'
import { type Client, DeniedError } from './client.ts'
import { type RolloutEvent, readApp, reduce, type SeenApp } from './record.ts'
import type { RolloutsOptions } from './rollouts.ts'

export interface Session extends Pick<RolloutsOptions, 'topics' | 'clock' | 'serves' | 'refusal'> {
  readonly client: Client
  /** Publishes a record; `null` clears it. Resolves when the broker has the record. @throws DeniedError */
  readonly write: (rollout: Rollout, text: string | null) => Promise<void>
  /** Aborted when the connection is lost, and when this process must not continue the rollout. */
  readonly signal: AbortSignal
  /** Aborted before `signal` if this process shuts down cleanly. After that, no step is sent. */
  readonly ending: AbortSignal
  /** Aborted after `ending`, when no more answers will arrive. */
  readonly ended: AbortSignal
}

/** How long to wait for an answer, in milliseconds. A bridge retries a command for a shorter time. */
const ANSWER_MS: Readonly<Record<RolloutCommand, number>> = { restart: 2 * 60_000, install: 10 * 60_000 }
/** A command is retried after these errors, because the hub may come back, or another bridge may take it over. */
const TRY_AGAIN: ReadonlySet<string> = new Set(['busy', 'expired', 'hub_unreachable', 'rate_limited'])
/** These error codes may mean that this process is shutting down, so that the step might not have been executed. */
const UNSETTLED: ReadonlySet<string> = new Set([...TRY_AGAIN, 'outcome_unknown'])
const TRY_FOR_MS = 60_000
const TRY_AFTER_MS = [1_000, 2_000, 4_000, 8_000] as const
/** The expiry time of a command, in seconds. A command that is not executed within this time is dropped. */
const EXPIRY_S = 10
/** How long an app may take to run again after the pause. */
const START_MS = 60_000
/** The pause after a failure or a cancellation, when no other wave follows. */
const SHORT_PAUSE_MS = 5_000
const MAX_TRANSACTION = 256
const MAX_MESSAGE = 120

const ANSWER = v.object({
  ok: v.boolean(),
  transaction: v.unknown(),
  error: v.optional(v.object({ code: v.string(), message: v.string() })),
})
type Answer = v.InferOutput<typeof ANSWER>

export function newNotice() {
  let waiting = Promise.withResolvers<void>()
  return {
    notify(): void {
      waiting.resolve()
      waiting = Promise.withResolvers()
    },
    next: (): Promise<void> => waiting.promise,
  }
}

/** @param value the state that is recorded on the broker */
export function newProgress(value: Rollout, clock: Clock) {
  let recorded: Rollout | undefined = value
  const progress = {
    value,
    /** Notifies on each change of the state, and when the broker has received a state. */
    changed: newNotice(),
    apply(event: RolloutEvent): void {
      const next = reduce(progress.value, event)
      if (next === progress.value) return
      progress.value = { ...next, updated_at: new Date(clock.now()).toISOString() }
      progress.changed.notify()
    },
    /** Call this after a lost connection. `found` is the record that the broker holds, if any. */
    readBack(found: Rollout | undefined): void {
      recorded = isDeepStrictEqual(found, progress.value) ? progress.value : undefined
    },
    /** Resolves when the broker has the latest state. */
    async recorded(): Promise<void> {
      while (recorded !== progress.value) await progress.changed.next()
    },
    /** Writes each change, or only the newest of several waiting changes. @throws the errors of `write` */
    async keepRecorded({ write, signal }: Pick<Session, 'write' | 'signal'>): Promise<never> {
      for (;;) {
        signal.throwIfAborted()
        const { value } = progress
        if (recorded === value) await progress.changed.next()
        else {
          await write(value, JSON.stringify(value))
          recorded = value
          progress.changed.notify()
        }
      }
    },
  }
  return progress
}
export type Progress = Readonly<ReturnType<typeof newProgress>>

/** Resolves when the rollout has ended or this process is shutting down, and the broker has the result. */
export async function carryOut(progress: Progress, session: Session): Promise<void> {
  for (;;) {
    if (session.refusal(progress.value.command) !== undefined) progress.apply({ kind: 'end', reason: 'not_allowed' })
    // If a wave is still running, it was started over an earlier connection, and it continues now.
    if (!session.ending.aborted) progress.apply({ kind: 'begin' })
    await progress.recorded()
    session.signal.throwIfAborted()
    if (progress.value.state !== 'running' || session.ending.aborted) return
    await carryOutWave(progress, session)
  }
}

interface WatchedApp {
  seen: SeenApp | undefined
  /** Whether the app has crashed since this process began to watch it. */
  hasCrashed: boolean
}

async function carryOutWave(progress: Progress, session: Session): Promise<void> {
  using open = new DisposableStack()
  const apps = new Map<string, WatchedApp>()
  const topicOf = ({ hub, app }: RolloutStep) => session.topics.of('app', { hub, app })
  const start = async (step: Rollout['current'][number]) => {
    const app: WatchedApp = { seen: undefined, hasCrashed: false }
    const take = (text: string) => {
      const before = app.seen
      app.seen = readApp(text)
      app.hasCrashed ||= isCrash(before, app.seen)
      progress.changed.notify()
    }
    try {
      open.defer(await session.client.listen(topicOf(step), take))
      apps.set(topicOf(step), app)
      const result = step.phase === 'sent' ? await send(step, app, progress, session) : 'open'
      if (result === 'open') return
      progress.apply(result === 'ok' ? { kind: 'answered', step } : { kind: 'failed', step, failure: result })
    } catch (error) {
      // The broker refused the subscription or the command, so the hub has received nothing.
      if (!(error instanceof DeniedError)) throw error
      progress.apply({ kind: 'failed', step, failure: { code: 'not_allowed', message: cut(error.message) } })
    }
  }
  await Promise.all(progress.value.current.map(start))
  await watch(progress, session, (step) => apps.get(topicOf(step)))
}

function isCrash(before: SeenApp | undefined, after: SeenApp | undefined): boolean {
  if (before === undefined || after === undefined) return false
  // If the app was restarted after a crash, only its crash count shows that crash.
  const isCounted = before.crash_count !== null && (after.crash_count ?? 0) > (before.crash_count ?? 0)
  return isCounted || (after.crashed === true && before.crashed !== true)
}

/**
 * Returns whether an app is running without problems. An unknown state counts as running. After an update, a disabled
 * app need not be running.
 */
function runsWell(seen: SeenApp | undefined, command: RolloutCommand): boolean {
  if (seen === undefined || seen.crashed === true) return false
  return seen.state === 'running' || seen.state === null || (command !== 'restart' && seen.enabled === false)
}

/** Resolves to `open` if this process ends before the outcome of the step is known; the next process repeats it. */
async function send(
  step: RolloutStep,
  app: WatchedApp,
  progress: Progress,
  { client, topics, clock, serves, signal, ending, ended }: Session,
): Promise<RolloutFailure | 'ok' | 'open'> {
  const { command, transaction: name } = progress.value
  const topic = topics.appCommand(step.hub, step.app, command)
  const transaction = transactionOf(name, step)
  let take: (answer: Answer) => void = () => {}
  let wasOwn = false
  const stop = await client.listen(topics.parseCommand(topic)?.result ?? '', (text, from) => {
    // A process that serves the hub receives the answer directly, and ignores answers from the broker, which any client
    // may have published.
    if (from === 'broker' && wasOwn && serves(step.hub)) return
    const answer = readJson(ANSWER, text)
    if (answer?.transaction === transaction) take(answer)
  })
  const startedAt = clock.elapsed()
  for (let tries = 0; ; tries += 1) {
    const { promise: answered, resolve } = Promise.withResolvers<Answer>()
    // The app may have been disabled since the rollout was ordered.
    if (command === 'restart' && app.seen?.enabled === false) {
      stop()
      return { code: 'not_running', message: 'The app is disabled.' }
    }
    if (ending.aborted) return 'open'
    take = resolve
    wasOwn = serves(step.hub)
    await client.publish(topic, JSON.stringify({ transaction }), { expirySeconds: EXPIRY_S })
    const answer = await within(clock, ANSWER_MS[command], answered, ended)
    signal.throwIfAborted()
    const failure = failureOf(answer)
    if (ending.aborted && UNSETTLED.has(failure?.code ?? '')) return 'open'
    const mayTry = TRY_AGAIN.has(failure?.code ?? '') && clock.elapsed() - startedAt < TRY_FOR_MS
    if (!mayTry || progress.value.reason !== null) {
      stop()
      return failure ?? 'ok'
    }
    await sleep(clock, TRY_AFTER_MS[Math.min(tries, TRY_AFTER_MS.length - 1)] ?? 0, ending)
    signal.throwIfAborted()
  }
}

/** Watches the apps of a wave during the pause. Then completes the steps of all apps that run without problems. */
async function watch(
  progress: Progress,
  { clock, signal, ending }: Session,
  appOf: (step: RolloutStep) => WatchedApp | undefined,
): Promise<void> {
  const until = async (ms: number, isDone: () => boolean) => {
    const end = clock.elapsed() + ms
    while (!ending.aborted && !isDone() && clock.elapsed() < end) {
      await within(clock, end - clock.elapsed(), progress.changed.next(), ending)
      signal.throwIfAborted()
    }
  }
  const fail = (code: string, message: string, which: (app: WatchedApp | undefined) => boolean) => {
    for (const step of progress.value.current) {
      if (which(appOf(step))) progress.apply({ kind: 'failed', step, failure: { code, message } })
    }
  }
  const isDone = () => {
    fail('crashed', 'The app crashed afterwards.', (app) => app?.hasCrashed === true)
    return progress.value.current.length === 0
  }
  const endsEarly = () => isDone() || progress.value.reason !== null
  const startedAt = clock.elapsed()
  const pause = durationMs('pause', progress.value.pause)
  await until(pause, endsEarly)
  if (progress.value.reason !== null) await until(Math.min(SHORT_PAUSE_MS, startedAt + pause - clock.elapsed()), isDone)
  await until(START_MS, () => {
    for (const step of progress.value.current) {
      if (runsWell(appOf(step)?.seen, progress.value.command)) progress.apply({ kind: 'done', step })
    }
    return isDone()
  })
  if (!ending.aborted) fail('not_running', 'The app is not running.', () => true)
}

/** Returns a transaction that does not depend on the sender, so that a bridge recognises steps it has executed. */
function transactionOf(rollout: string, { hub, app }: RolloutStep): string {
  const transaction = `${rollout}/${hub}/${app}`
  if (transaction.length <= MAX_TRANSACTION) return transaction
  return `${rollout}/${hub}/${createHash('sha256').update(app).digest('hex')}`
}

function failureOf(answer: Answer | undefined): RolloutFailure | undefined {
  if (answer === undefined) return { code: 'outcome_unknown', message: 'There was no answer.' }
  if (answer.ok) return undefined
  const { code, message } = answer.error ?? { code: 'hub_failed', message: '' }
  return { code: code.slice(0, 64), message: cut(message) }
}

const cut = (text: string) => (text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE - 1)}…` : text)
