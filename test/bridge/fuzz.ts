/** Sends bad commands to a bridge over a real broker, and counts the results. */
import { inspect } from 'node:util'
import { longestIn } from '../fuzz/run.ts'
import type { BrokerKind } from '../support/brokers.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'
import { type BadInput, badInputs } from './bad-input.ts'
import { APP } from './payload-samples.ts'

/** The number of inputs sent at a time, which is smaller than a broker's queue for one subscriber. */
const BATCH = 200
const TIMEOUT_MS = 20_000

interface FuzzOptions {
  readonly count: number
  readonly seed: number
  readonly broker: BrokerKind
}

const resultTopic = ({ topic }: BadInput) => `hub2mqtt/${topic.replace(/(^|\/)cmd(?=\/|$)/, '$1result')}`

/**
 * `hubCalls` are the operations of the requests that reached the hub, `crashed` is the number of uncaught exceptions and
 * of internal errors in the log, and `longestMs` is the longest time for which the event loop was blocked.
 */
export async function fuzz({ count, seed, broker }: FuzzOptions) {
  // Polls are rare, so that each request to the hub is caused by a command.
  const env = {
    COMMANDS_ALLOW: '*',
    GUARD_WATCH: 'no.such.app',
    HUB_POLL_INTERVAL: '1h',
    HUB_POLL_INTERVAL_FALLBACK: '1h',
  }
  const apps = [{ id: APP, settings: { one: 1 } }]
  await using world = await World.start({ broker, env, hub: { apps, memory: 100_000 } })
  await world.request('bridge/cmd/ping')
  world.hub.forgetRequests()
  const next = badInputs(seed, broker === 'mosquitto')
  const tally = new Tally()
  process.on('uncaughtException', tally.crash).on('unhandledRejection', tally.crash)
  const started = performance.now()
  let longestMs = 0
  for (let left = count; left > 0; left -= BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, left) }, next)
    const feed = (inputs: readonly BadInput[]) => runBatch(world, inputs, inputs === batch ? tally : new Tally())
    longestMs = Math.max(longestMs, await longestIn(batch, feed))
  }
  const seconds = (performance.now() - started) / 1000
  process.off('uncaughtException', tally.crash).off('unhandledRejection', tally.crash)
  const hubCalls = world.hub.requests.map(({ operation }) => operation)
  const aliveAfter = (await world.request('bridge/cmd/ping')).ok
  const { wrong, answered, unanswered, crashed } = tally
  return { wrong, answered, unanswered, crashed, hubCalls, aliveAfter, seconds, longestMs }
}

async function runBatch(world: World, batch: readonly BadInput[], tally: Tally): Promise<void> {
  const { observer, bridge } = world
  observer.seen.length = 0
  const answers = () => observer.seen.filter(({ topic }) => /\/result(\/|$)/.test(topic))
  for (const { topic, payload, retain = false } of batch) {
    // Send the inputs concurrently, because inputs sent one by one would hide errors that need several.
    void observer.publish(`hub2mqtt/${topic}`, payload, { retain }).catch(tally.crash)
  }
  await until('all answers', () => answers().length >= batch.length, TIMEOUT_MS).catch(() => undefined)
  const found = Map.groupBy(answers(), ({ topic }) => topic)
  for (const [topic, inputs] of Map.groupBy(batch, resultTopic)) {
    const codes = found.get(topic)?.map(({ text }) => codeOf(text)) ?? []
    tally.compare(topic, inputs, codes)
  }
  tally.crashed += bridge.lines.splice(0).filter((line) => /"level":"(error|fatal)"/.test(line)).length
}

function codeOf(text: string): string {
  const answer: { ok: boolean; error?: { code: string } } = JSON.parse(text)
  return answer.ok ? 'ok' : (answer.error?.code ?? 'none')
}

class Tally {
  /** The answers with a wrong code, as text; `render` prints the first few. */
  readonly wrong: string[] = []
  answered = 0
  unanswered = 0
  crashed = 0

  readonly crash = () => {
    this.crashed += 1
  }

  /** Compares all codes on a result topic at once, because many answers do not identify their input. */
  compare(topic: string, inputs: readonly BadInput[], codes: readonly string[]): void {
    const came = [...codes]
    for (const { code } of inputs) if (came.includes(code)) came.splice(came.indexOf(code), 1)
    this.answered += codes.length - came.length
    this.unanswered += Math.max(0, inputs.length - codes.length)
    const kinds = [...new Set(inputs.map(({ kind }) => kind))].join(', ')
    for (const code of came) this.wrong.push(`${code} on ${topic.slice(0, 100)} for ${kinds}`)
  }
}

type FuzzReport = Awaited<ReturnType<typeof fuzz>>

export const isGood = ({ wrong, unanswered, crashed, hubCalls, aliveAfter }: FuzzReport) =>
  wrong.length + unanswered + crashed + hubCalls.length === 0 && aliveAfter

export const render = ({ wrong, ...counts }: FuzzReport): string => inspect({ ...counts, wrong: wrong.slice(0, 20) })
