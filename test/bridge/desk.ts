/** A dispatcher with an emulated hub and a link that only records its messages, without a broker or a daemon. */
import pino from 'pino'
import { Dispatcher } from '../../src/bridge/dispatcher.ts'
import { Evidence } from '../../src/bridge/evidence.ts'
import { limitLargeReads } from '../../src/bridge/hub-state.ts'
import type { CommandEnd, CommandRun, DispatcherOptions, FailedWrite } from '../../src/bridge/requests.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/options.ts'
import type { LogLevel } from '../../src/contract/log-levels.ts'
import { createTopics } from '../../src/contract/topics.ts'
import type { EmulatedHub, EmulatedHubOptions } from '../../src/emulator/hub.ts'
import type { Message, Protocol, SendOptions } from '../../src/mqtt/types.ts'
import * as one from '../hub/support.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/until.ts'

export const APP = 'the.app'
export const app = (command: string, id = APP) => `home/app/${id}/cmd/${command}`
const APPS = [{ id: APP, settings: { x: 1 }, update: '2.0.0' }, { id: 'another.app' }]

export interface Sent {
  readonly topic: string
  readonly answer: Record<string, unknown>
  readonly options: SendOptions
}

export interface Desk {
  readonly emulated: EmulatedHub
  readonly dispatcher: Dispatcher
  /** The clock of the bridge. The hub runs in real time. */
  readonly clock: FakeClock
  readonly sent: Sent[]
  readonly cleared: string[]
  readonly ends: CommandEnd[]
  readonly failed: FailedWrite[]
  readonly runs: CommandRun[]
  /** The commands for the guardian, and the requests to restore everything on the broker. */
  readonly calls: unknown[]
  readonly log: Record<string, unknown>[]
  readonly audit: Record<string, unknown>[]
  readonly levels: LogLevel[]
  /** Values that a test may change at any time. */
  readonly world: { policy: Partial<Config['commands']>; protocol: Protocol; connection: number }
  /** Delivers a message without waiting for the answer. `topic` is relative to the base topic. */
  readonly hand: (topic: string, payload?: string | Buffer, more?: Partial<Message>) => void
  /** Delivers a message like `hand`, and resolves to the answer. */
  readonly ask: (topic: string, payload?: string | Buffer, more?: Partial<Message>) => Promise<Record<string, unknown>>
  readonly operations: () => (string | undefined)[]
  /** Returns the operations that change something. Omits reads, which the hub's client also sends itself. */
  readonly writes: () => (string | undefined)[]
}

/** Configures a hub, `attic`, that the dispatcher does not serve. */
const FILE = `
guard: { watch: ["*"] }
commands: { response_topics: [me] }
hubs: { attic: { url: "http://127.0.0.1:9", api_key: key } }`
const CONFIG = loadConfig({ env: {}, file: 'x.yaml', readFile: () => FILE, requireHub: false }).config

/** Records log lines, and parses them only when they are read, because a test may log 100,000 lines. */
function recordingLog() {
  const lines: string[] = []
  const options = { level: 'debug', base: null, timestamp: false, messageKey: 'message' }
  const log = pino(options, { write: (line) => lines.push(line) })
  return { log, read: (): Record<string, unknown>[] => lines.map((line) => JSON.parse(line)) }
}

export interface DeskOptions {
  readonly hub?: EmulatedHubOptions
  readonly concurrency?: number
  readonly fleet?: DispatcherOptions['fleet']
  readonly rollOut?: DispatcherOptions['control']['rollouts']['rollOut']
}

export async function openDesk(
  {
    hub: hubOptions,
    concurrency = 4,
    fleet,
    rollOut = (transaction, order) => Promise.resolve({ transaction, app: order.app }),
  }: DeskOptions = {},
  { emulate, hold }: Pick<typeof one, 'emulate' | 'hold'> = one,
): Promise<Desk> {
  const emulated = await emulate({ flavour: 'older', apps: APPS, ...hubOptions })
  const held = hold(emulated.url, { realtime: false, pollInterval: 3_600_000, pollIntervalFallback: 3_600_000 })
  await one.listed(held)
  emulated.forgetRequests()
  const clock = new FakeClock()
  const configWith = (policy: Partial<Config['commands']>): Config => ({
    ...CONFIG,
    commands: { ...CONFIG.commands, ...policy },
  })
  // Keep the same object until the configuration changes, as the daemon does.
  let config = configWith({
    allow: ['*'],
    deny: [],
    read_only: false,
    call: [{ item: '*', methods: ['GET', 'POST', 'PUT', 'DELETE'] }],
  })
  const world: Desk['world'] = {
    get policy() {
      return config.commands
    },
    set policy(policy) {
      config = configWith(policy)
    },
    protocol: '5',
    connection: 1,
  }
  const records = {
    sent: [] as Sent[],
    cleared: [] as string[],
    ends: [] as CommandEnd[],
    failed: [] as FailedWrite[],
    runs: [] as CommandRun[],
    calls: [] as unknown[],
    levels: [] as LogLevel[],
  }
  const [log, audit] = [recordingLog(), recordingLog()]
  const state = {
    onRun: (run: CommandRun) => void records.runs.push(run),
    onFailedWrite: (failed: FailedWrite) => void records.failed.push(failed),
    control: (...given: unknown[]) => void records.calls.push(given),
  }
  const dispatcher = new Dispatcher({
    states: new Map([['home', state]]),
    handlers: { onAnswer: (end) => records.ends.push(end) },
    repair: () => void records.calls.push('repair'),
    hubs: new Map([['home', { hub: held.hub, concurrency }]]),
    topics: createTopics('b'),
    link: {
      isCurrent: ({ connection }) => connection === world.connection,
      status: () => ({ protocol: world.protocol }),
      send: (topic, payload, options = {}) => {
        records.sent.push({
          topic,
          options,
          get answer() {
            return JSON.parse(payload)
          },
        })
      },
      hold: (topic, payload) => {
        if (payload === null) records.cleared.push(topic)
      },
    },
    fleet,
    evidence: new Evidence(clock, pino({ level: 'silent' })),
    largeReads: limitLargeReads(clock),
    control: {
      setLogLevel: (level) => {
        if (level === 'trace') throw new TypeError('a mistake')
        records.levels.push(level)
      },
      rollouts: {
        rollOut,
        cancelRollout: (transaction) => Promise.resolve({ transaction }),
      },
    },
    live: {
      get value() {
        return config
      },
    },
    clock,
    log: log.log,
    audit: audit.log,
  })
  const hand: Desk['hand'] = (topic, payload = '', more = {}) =>
    dispatcher.receive({
      topic: `b/${topic}`,
      payload: Buffer.from(payload),
      retain: false,
      dup: false,
      qos: 1,
      receivedAt: clock.elapsed(),
      connection: 1,
      ...more,
    })
  const ask: Desk['ask'] = async (...given) => {
    const before = records.sent.length
    hand(...given)
    return (await until('an answer', () => records.sent[before])).answer
  }
  const operations = () => emulated.requests.map(({ operation }) => operation)
  const writes = () => emulated.requests.filter(({ method }) => method !== 'GET').map(({ operation }) => operation)
  return {
    ...{ emulated, dispatcher, clock, world, hand, ask, operations, writes, ...records },
    get log() {
      return log.read()
    },
    get audit() {
      return audit.read()
    },
  }
}

export const test = one.test.extend<{ readonly desk: Desk }>({
  desk: async ({ emulate, hold }, use) => use(await openDesk({}, { emulate, hold })),
})
