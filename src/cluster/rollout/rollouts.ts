/**
 * Runs rollouts, one at a time, each over a separate connection. A rollout is started by a command, or is found
 * unfinished on the broker at startup. A process that takes over a rollout has only the record on the broker.
 */
import type { Logger } from 'pino'
import { Backoff } from '../../base/backoff.ts'
import { type Clock, sleep, within } from '../../base/clock.ts'
import type { Json } from '../../base/json.ts'
import type { RolloutControl } from '../../contract/command.ts'
import { CommandError } from '../../contract/errors.ts'
import type { Rollout, RolloutCommand, RolloutOrder } from '../../contract/rollout.ts'
import type { Topics } from '../../contract/topics.ts'
import type { MqttLink } from '../../mqtt/link.ts'
import { SessionError, type SessionOptions, withSession } from '../../mqtt/session.ts'
import type { BrokerOptions } from '../../mqtt/types.ts'
import { carryOut, newNotice, newProgress, type Progress, type Session } from './carry-out.ts'
import { type Client, DeniedError, newClient } from './client.ts'
import { checkName, isOrderOf, plan, readRollout } from './record.ts'

export interface RolloutsOptions {
  readonly topics: Topics
  /** Returns the options of the connection to the broker. Called for each connection. */
  readonly broker: () => BrokerOptions
  /** Returns an id that no other client of the broker has. */
  readonly clientId: () => string
  readonly serves: (hub: string) => boolean
  /** Returns the other member that leads the fleet, and so runs the rollouts. */
  readonly otherLeader: () => string | undefined
  /** Returns why the configuration refuses rollouts of a command; without a command, why it refuses all rollouts. */
  readonly refusal: (command?: RolloutCommand) => string | undefined
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
}

/** Number of finished rollouts whose records stay on the broker. */
const KEPT = 20
/** Time limit for the broker to accept a rollout or a cancellation, in milliseconds. */
const TAKEN_MS = 10_000
const BACKOFF_MS = { min: 1_000, max: 30_000 }
/** Maximum duration of `finish`, unless `commands` takes longer. Keeps a stop without a broker shorter than 5 s. */
const FINISH_MS = 1_800
/** How long a member that hands over a hub waits for the responses to its writes. */
export const HANDOVER_MS = 1_500

/** Returns a controller for each stage of the shutdown, as described at `Session`. */
const newStages = () => ({
  ending: new AbortController(),
  ended: new AbortController(),
  stopped: new AbortController(),
})
type Stages = ReturnType<typeof newStages>

export class Rollouts implements RolloutControl, AsyncDisposable {
  readonly #options: RolloutsOptions
  /** `undefined` while this process is inactive. */
  #active: Stages | undefined
  /** Whether the search for an unfinished rollout has begun since this process became active. */
  #hasSearched = false
  /** The current rollout, or the search for a rollout. Never rejects. */
  #work: Promise<void> | undefined
  #progress: Progress | undefined
  /** Set only by this class, during a rollout or a search for a rollout. Receives each answer from this process. */
  client: Client | undefined
  #last: Progress | undefined
  /** Resolves when the latest order of a rollout is answered. */
  #ordered: Promise<unknown> = Promise.resolve()
  readonly held = new Set<string>()
  readonly #found = newNotice()
  #link: Pick<MqttLink, 'expect' | 'release'> | undefined

  constructor(options: RolloutsOptions) {
    this.#options = options
  }

  /**
   * Continues an unfinished rollout once rollouts are allowed. Further calls have no effect until `stop` is called.
   * @param link keeps the records on the broker, even if other clients change them
   */
  start(link: Pick<MqttLink, 'expect' | 'release'>): void {
    this.#link = link
    const active = this.#active ?? newStages()
    this.#active = active
    if (this.#hasSearched || this.#options.refusal() !== undefined) return
    this.#hasSearched = true
    this.#start(() => this.#resume(active))
  }

  /**
   * Sends no more steps, and stops as soon as the broker has all answers that arrived before `commands` resolved, so
   * that the next process does not repeat these steps. Takes at most `FINISH_MS`, or as long as `commands`.
   * @param commands default: 1.5 seconds, in which other members of the fleet confirm writes before they hand over hubs
   */
  async finish(commands?: Promise<void>): Promise<void> {
    const { clock } = this.#options
    const end = clock.elapsed() + FINISH_MS
    const active = this.#active
    active?.ending.abort()
    const work = this.client === undefined ? Promise.resolve() : (this.#work ?? Promise.resolve())
    await (commands ?? within(clock, HANDOVER_MS, work))
    active?.ended.abort()
    // Without a connection, nothing can be recorded in time.
    if (this.client !== undefined) await within(clock, end - clock.elapsed(), this.#work ?? Promise.resolve())
    this.stop()
  }

  /** Stops rollouts. The record of an unfinished rollout stays on the broker. */
  stop(): void {
    this.#active?.stopped.abort()
    this.#active = undefined
    this.#hasSearched = false
    this.#release([...this.held])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop()
    await this.#work
  }

  rollOut(transaction: string, order: RolloutOrder): Promise<Json> {
    const answer = this.#order(transaction, order, this.#ordered)
    this.#ordered = answer.catch(() => {})
    return answer
  }

  /** @param before resolves when the previous order has been answered */
  async #order(transaction: string, order: RolloutOrder, before: Promise<unknown>): Promise<Json> {
    checkName(transaction)
    this.#checkLeader()
    await within(this.#options.clock, TAKEN_MS, before)
    const running = (await this.#current())?.value
    if (running !== undefined) return same(running, transaction, order)
    const active = this.#active
    if (active === undefined) throw unknownYet()
    const accepted = Promise.withResolvers<Json>()
    this.#start(() => this.#accept(transaction, order, active, accepted))
    return await accepted.promise
  }

  async cancelRollout(transaction: string): Promise<Json> {
    this.#checkLeader()
    let progress = this.#last
    if (progress?.value.transaction !== transaction) {
      // The cancellation may arrive before the order of its rollout is answered.
      await within(this.#options.clock, TAKEN_MS, this.#ordered)
      progress = await this.#current()
    }
    if (progress?.value.transaction !== transaction) {
      throw new CommandError('invalid_payload', 'transaction: no rollout of this name is running.')
    }
    progress.apply({ kind: 'end', reason: 'cancelled' })
    const isRecorded = progress.recorded().then(() => true)
    if (!(await within(this.#options.clock, TAKEN_MS, isRecorded))) {
      throw new CommandError('outcome_unknown', 'The broker has not accepted the cancellation yet.')
    }
    const { state, done, total } = progress.value
    return { transaction, state, done, total }
  }

  /** @throws CommandError if another member runs the rollouts: only HTTP clients send their commands to this member */
  #checkLeader(): void {
    const leader = this.#options.otherLeader()
    if (leader === undefined) return
    const message = `Member ${leader} leads the fleet: send the command to that member, or over MQTT.`
    throw new CommandError('busy', message)
  }

  /**
   * Returns the current rollout. Waits until a recorded rollout is found, or until the short search at startup ends.
   * @throws CommandError if this takes too long
   */
  async #current(): Promise<Progress | undefined> {
    if (this.#progress === undefined && this.#work !== undefined) {
      await within(this.#options.clock, TAKEN_MS, Promise.race([this.#work, this.#found.next()]))
    }
    if (this.#progress === undefined && this.#work !== undefined) throw unknownYet()
    return this.#progress
  }

  /** Call this with each record that the link reads on connect. Another bridge may have continued the rollout. */
  readBack(topic: string, text: string): void {
    const { topics } = this.#options
    const own = this.#progress?.value
    if (own === undefined || topic !== topics.of('rollout', own)) return
    if (isNewer(readRollout(topics, topic, text), own)) this.#release([topic])
  }

  #release(topics: readonly string[]): void {
    for (const topic of topics) this.held.delete(topic)
    if (topics.length > 0) this.#link?.release((topic) => topics.includes(topic))
  }

  #start(task: () => Promise<void>): void {
    const before = this.#work ?? Promise.resolve()
    const work = before.then(task).catch((error: unknown) => {
      this.#options.log.error({ err: error }, 'a rollout failed because of a bug in hub2mqtt')
    })
    this.#work = work
    void work.then(() => {
      if (this.#work === work) this.#work = undefined
    })
  }

  /** Continues each unfinished rollout, oldest first. */
  async #resume(active: Stages): Promise<void> {
    const { signal } = active.stopped
    const { clock, log, random } = this.#options
    const backoff = new Backoff({ ...BACKOFF_MS, random })
    while (!signal.aborted) {
      try {
        await this.#connected(active, signal, (session) => this.#carryOutAll(session))
        return
      } catch (error) {
        if (signal.aborted) break
        if (error instanceof DeniedError) {
          log.error({ err: error }, 'rollouts cannot continue')
          break
        }
        if (!(error instanceof SessionError)) throw error
        log.warn(`rollouts wait: ${error.message}`)
        await sleep(clock, backoff.next(), signal)
      }
    }
    this.#progress = undefined
  }

  async #accept(
    transaction: string,
    order: RolloutOrder,
    active: Stages,
    accepted: PromiseWithResolvers<Json>,
  ): Promise<void> {
    const inTime = new AbortController()
    const stage = { isRecording: false }
    const cancelLate = this.#options.clock.after(TAKEN_MS, () => inTime.abort())
    try {
      const signal = AbortSignal.any([active.stopped.signal, inTime.signal])
      await this.#connected(active, signal, async (session) => {
        const { client, topics, clock } = session
        const records = [...(await client.records()).keys()]
        const before = records.find((one) => one.transaction === transaction) ?? records.find(isUnfinished)
        if (before === undefined) {
          const now = new Date(clock.now()).toISOString()
          const rollout = plan(transaction, order, await client.apps(order), now)
          stage.isRecording = true
          const topic = topics.of('rollout', rollout)
          const text = JSON.stringify(rollout)
          await client.publish(topic, text, { retain: true })
          // Under MQTT 3.1.1, a broker does not report that it has dropped a message.
          if (![...(await client.records()).keys()].some((one) => one.transaction === transaction)) {
            throw new DeniedError('the broker does not keep the record of a rollout')
          }
          this.held.add(topic)
          this.#link?.expect(topic, text)()
          accepted.resolve({ transaction, total: rollout.total })
        } else if (isUnfinished(before)) accepted.resolve(same(before, transaction, order))
        else throw new CommandError('invalid_payload', 'transaction: a rollout of this name has already ended.')
        cancelLate()
        await this.#carryOutAll(session)
      })
      return
    } catch (error) {
      const why = inTime.signal.aborted ? 'the broker took too long' : undefined
      // This has no effect if the rollout has already been accepted.
      accepted.reject(refusalOf(error, stage.isRecording, why))
      // Nothing has started, and no other rollout is running.
      if (error instanceof CommandError && error.code !== 'busy') return
    } finally {
      cancelLate()
    }
    await this.#resume(active)
  }

  async #carryOutAll(session: Session): Promise<void> {
    const { clock, log } = this.#options
    for (;;) {
      const records = await this.#recordsOn(session)
      const own = this.#progress?.value
      const there = records.find(({ transaction }) => transaction === own?.transaction)
      if (own !== undefined && isNewer(there, own)) this.#progress = undefined
      this.#progress?.readBack(there)
      if (this.#progress === undefined) {
        const unfinished = records.find(isUnfinished)
        if (unfinished === undefined || session.ending.aborted) return
        this.#progress = newProgress(unfinished, clock)
        this.#found.notify()
        log.info(summary(unfinished), 'rollout running')
      }
      const progress = this.#progress
      await Promise.race([progress.keepRecorded(session), carryOut(progress, session)])
      this.#progress = undefined
      if (isUnfinished(progress.value)) return
      log.info(summary(progress.value), 'rollout ended')
      this.#last = progress
      const ended = (await this.#recordsOn(session)).filter((one) => !isUnfinished(one))
      for (const old of ended.slice(0, -KEPT)) await session.write(old, null)
    }
  }

  /** Passes the records that should stay on the broker to the link. */
  async #recordsOn(session: Session): Promise<Rollout[]> {
    const found = await session.client.records()
    const records = [...found.keys()]
    const ended = records.filter((one) => !isUnfinished(one))
    for (const one of [...records.filter(isUnfinished).slice(0, 1), ...ended.slice(-KEPT)]) {
      const topic = session.topics.of('rollout', one)
      const text = found.get(one) ?? ''
      this.readBack(topic, text)
      if (session.signal.aborted || this.held.has(topic)) continue
      this.held.add(topic)
      this.#link?.expect(topic, text)()
    }
    return records
  }

  async #write(client: Client, topic: string, text: string | null): Promise<void> {
    if (text === null) this.held.delete(topic)
    else this.held.add(topic)
    const isThere = this.#link?.expect(topic, text)
    await client.publish(topic, text ?? '', { retain: true })
    isThere?.()
  }

  async #connected(active: Stages, until: AbortSignal, task: (session: Session) => Promise<void>): Promise<void> {
    const { topics, broker, clientId, clock } = this.#options
    const over = new AbortController()
    const onPublish: SessionOptions['onPublish'] = (packet) => this.client?.received(packet)
    const session = { broker: broker(), clientId: clientId(), signal: until, onPublish }
    try {
      await withSession(session, clock, async (connection) => {
        const client = newClient(connection, topics, clock)
        this.client = client
        const write: Session['write'] = (rollout, text) => this.#write(client, topics.of('rollout', rollout), text)
        const signal = AbortSignal.any([until, over.signal])
        const ended = AbortSignal.any([signal, active.ended.signal])
        const ending = AbortSignal.any([ended, active.ending.signal])
        await task({ ...this.#options, client, write, signal, ending, ended })
      })
    } finally {
      this.client = undefined
      over.abort()
    }
  }
}

/** Returns whether another process has continued the same rollout. */
const isNewer = (there: Rollout | undefined, own: Rollout) =>
  there?.transaction === own.transaction && Date.parse(there.updated_at) > Date.parse(own.updated_at)

const isUnfinished = ({ state }: Rollout) => state === 'running'

const unknownYet = () =>
  new CommandError('busy', 'The bridge is reading rollouts from the broker, or is starting another rollout.')

/** @throws CommandError if the order is for a different rollout */
function same(running: Rollout, transaction: string, order: RolloutOrder): Json {
  if (running.transaction !== transaction) {
    throw new CommandError('busy', `The rollout ${running.transaction} is running.`)
  }
  if (isOrderOf(running, order)) return { transaction, total: running.total }
  throw new CommandError('invalid_payload', 'transaction: a rollout of this name is running with a different order.')
}

function refusalOf(error: unknown, isRecording: boolean, reason?: string): CommandError {
  if (error instanceof CommandError) return error
  if (error instanceof DeniedError) return new CommandError('not_allowed', `Refused: ${error.message}.`)
  const why = reason ?? (error instanceof SessionError ? error.message : 'a bug in the bridge')
  return isRecording
    ? new CommandError('outcome_unknown', `The broker has not confirmed the rollout: ${why}.`)
    : new CommandError('busy', `The rollout could not be started: ${why}.`)
}

function summary({ transaction, command, app, state, reason, total, done, failed }: Rollout) {
  return { transaction, command, app, state, reason, total, done, failed: failed.length }
}
