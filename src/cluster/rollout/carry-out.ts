/** Carries a rollout out over one connection, from wherever it is: by commands like anybody's. */
import { createHash } from 'node:crypto'
import { type Clock, sleep } from '../../base/clock.ts'
import { durationMs } from '../../contract/payload.ts'
import type { Rollout, RolloutCommand, RolloutFailure, RolloutStep } from '../../contract/rollout.ts'
import type { Topics } from '../../contract/topics.ts'
import { type Answer, cut, failureOf, readAnswer } from './answers.ts'
import { type Client, DeniedError } from './client.ts'
import type { Progress } from './progress.ts'
import { WatchedApp } from './watched-app.ts'

export interface Session {
  readonly client: Client
  readonly topics: Topics
  readonly clock: Clock
  /** Publishes a record; null clears it. Resolves when the broker has it. @throws DeniedError */
  readonly write: (rollout: Rollout, text: string | null) => Promise<void>
  /** Whether this process serves a hub, and so answers its commands itself. */
  readonly serves: (hub: string) => boolean
  /** Aborted when the connection is lost, and when nobody wants the rollout to go on here. */
  readonly signal: AbortSignal
}

/** How long an answer may take: longer than a bridge tries. */
const ANSWER_MS: Readonly<Record<RolloutCommand, number>> = { restart: 2 * 60_000, install: 10 * 60_000 }
/** They say that nothing was done: a hub that comes back, or a bridge that takes it over, gets a moment. */
const TRY_AGAIN: ReadonlySet<string> = new Set(['busy', 'expired', 'hub_unreachable', 'rate_limited'])
const TRY_FOR_MS = 60_000
const TRY_AFTER_MS = [1_000, 2_000, 4_000, 8_000] as const
/** Not carried out by then, the command is not to be. */
const EXPIRY_S = 10
/** How long an app may take, after the pause, to run again. */
const START_MS = 60_000
/** The pause where no further wave follows by a failure or a cancellation. */
const SHORT_PAUSE_MS = 5_000
/** What an envelope takes. */
const MAX_TRANSACTION = 256

/**
 * Resolves when the rollout has ended and the broker knows.
 * @throws DeniedError if the broker does not take the record
 */
export async function carryOut(
  progress: Progress,
  session: Session,
  refusal: (command: RolloutCommand) => string | undefined,
): Promise<void> {
  const { write, signal } = session
  const record = (rollout: Rollout) => write(rollout, JSON.stringify(rollout))
  await Promise.race([progress.keepRecorded(record, signal), inWaves(progress, session, refusal)])
}

async function inWaves(
  progress: Progress,
  session: Session,
  refusal: (command: RolloutCommand) => string | undefined,
): Promise<void> {
  for (;;) {
    if (refusal(progress.value.command) !== undefined) progress.apply({ kind: 'refuse' })
    // Where a wave is under way already, it is an earlier connection's, and goes on.
    progress.apply({ kind: 'begin' })
    await progress.recorded()
    session.signal.throwIfAborted()
    if (progress.value.state !== 'running') return
    await carryOutWave(progress, session)
  }
}

async function carryOutWave(progress: Progress, session: Session): Promise<void> {
  using open = new DisposableStack()
  const apps = new Map<string, WatchedApp>()
  const begin = async (step: Rollout['current'][number]) => {
    try {
      const app = new WatchedApp(progress.changed)
      open.defer(await session.client.listen(topicOf(session, step), (text) => app.take(text)))
      apps.set(topicOf(session, step), app)
      const failure = step.phase === 'sent' ? await send(step, progress, session) : undefined
      if (failure === undefined) progress.apply({ kind: 'answered', step })
      else progress.apply({ kind: 'failed', step, failure })
    } catch (error) {
      // Before anything was sent.
      if (!(error instanceof DeniedError)) throw error
      progress.apply({ kind: 'failed', step, failure: { code: 'not_allowed', message: cut(error.message) } })
    }
  }
  await Promise.all(progress.value.current.map(begin))
  await watch(progress, session, (step) => apps.get(topicOf(session, step)))
}

/** Sends the command until it is carried out or fails. */
async function send(
  step: RolloutStep,
  progress: Progress,
  { client, topics, clock, serves, signal }: Session,
): Promise<RolloutFailure | undefined> {
  const { command, transaction } = progress.value
  const topic = topics.appCommand(step.hub, step.app, command)
  const mark = markOf(transaction, step)
  let take: (answer: Answer) => void = () => {}
  let wasOwn = false
  const stop = await client.listen(topics.parseCommand(topic)?.result ?? '', (text, from) => {
    // Others may be allowed to publish there. What this process answers, it knows without the broker.
    if (from === 'broker' && wasOwn && serves(step.hub)) return
    const answer = readAnswer(text)
    if (answer?.transaction === mark) take(answer)
  })
  const begunAt = clock.elapsed()
  for (let tries = 0; ; tries += 1) {
    const { promise: answered, resolve } = Promise.withResolvers<Answer>()
    take = resolve
    wasOwn = serves(step.hub)
    await client.publish(topic, JSON.stringify({ transaction: mark }), { expirySeconds: EXPIRY_S })
    const answer = await within(ANSWER_MS[command], answered, clock, signal)
    const failure = failureOf(answer)
    const mayTry = TRY_AGAIN.has(failure?.code ?? '') && clock.elapsed() - begunAt < TRY_FOR_MS
    if (!mayTry || progress.value.reason !== null) {
      stop()
      return failure
    }
    await sleep(clock, TRY_AFTER_MS[Math.min(tries, TRY_AFTER_MS.length - 1)] ?? 0, signal)
    signal.throwIfAborted()
  }
}

/** Looks on for the pause; then all that run well are done. */
async function watch(
  progress: Progress,
  { clock, signal }: Session,
  appOf: (step: RolloutStep) => WatchedApp | undefined,
): Promise<void> {
  const until = async (ms: number, isOver: () => boolean) => {
    const end = clock.elapsed() + ms
    while (!isOver() && clock.elapsed() < end) {
      await within(end - clock.elapsed(), progress.changed.next(), clock, signal)
    }
  }
  const settle = (code: string, message: string, which: (app: WatchedApp | undefined) => boolean) => {
    for (const step of progress.value.current) {
      if (which(appOf(step))) progress.apply({ kind: 'failed', step, failure: { code, message } })
    }
  }
  const failCrashed = () => settle('crashed', 'The app crashed afterwards.', (app) => app?.hasCrashed === true)
  const isOver = () => {
    failCrashed()
    return progress.value.current.length === 0
  }
  const endsEarly = () => isOver() || progress.value.reason !== null
  const begunAt = clock.elapsed()
  const pause = durationMs('pause', progress.value.pause)
  await until(pause, endsEarly)
  if (progress.value.reason !== null) await until(Math.min(SHORT_PAUSE_MS, begunAt + pause - clock.elapsed()), isOver)
  await until(START_MS, () => {
    for (const step of progress.value.current) if (appOf(step)?.runsWell) progress.apply({ kind: 'done', step })
    return isOver()
  })
  settle('not_running', 'The app does not run.', () => true)
}

/** The same from whoever sends the step: a bridge that has carried it out answers from memory. */
export function markOf(transaction: string, { hub, app }: RolloutStep): string {
  const mark = `${transaction}/${hub}/${app}`
  if (mark.length <= MAX_TRANSACTION) return mark
  return `${transaction}/${hub}/${createHash('sha256').update(app).digest('hex')}`
}

function topicOf({ topics }: Session, step: RolloutStep): string {
  return topics.of('app', { hub: step.hub, app: step.app })
}

/** What comes within `ms`; `undefined`: nothing. @throws the signal's reason */
async function within<T>(ms: number, event: Promise<T>, clock: Clock, signal: AbortSignal): Promise<T | undefined> {
  const done = new AbortController()
  const late = sleep(clock, ms, AbortSignal.any([done.signal, signal])).then(() => undefined)
  const found = await Promise.race([event, late])
  done.abort()
  signal.throwIfAborted()
  return found
}
