/** Starts a link as the bridge does, and records everything that the link reports. */
import pino, { type Logger } from 'pino'
import { test as base } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { type EmbeddedBroker, startEmbeddedBroker } from '../../src/mqtt/embedded.ts'
import { MqttLink } from '../../src/mqtt/link.ts'
import type { LinkHandlers, LinkOptions, LinkStatus, Message } from '../../src/mqtt/types.ts'
import { Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { Observer } from '../support/observer.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

export interface Line {
  readonly level: string
  readonly message: string
  readonly [field: string]: unknown
}

export const silent: Logger = pino({ level: 'silent' })

export class RecordingLog {
  readonly lines: Line[] = []
  readonly logger: Logger = pino(
    {
      level: 'debug',
      base: null,
      timestamp: false,
      messageKey: 'message',
      formatters: { level: (level) => ({ level }) },
    },
    { write: (line) => this.lines.push(JSON.parse(line)) },
  )

  /** The messages of warnings and errors. */
  get loud(): string[] {
    return this.lines.filter(({ level }) => level === 'warn' || level === 'error').map(({ message }) => message)
  }
}

export interface TestLink extends AsyncDisposable {
  readonly link: MqttLink
  readonly log: RecordingLog
  readonly messages: Message[]
  readonly statuses: LinkStatus[]
  /** The messages that other clients sent on the watched filters. */
  readonly touched: { readonly topic: string; readonly payload: string }[]
  /** The number of connections so far. */
  readonly connected: () => number
  /** How often the status became `connecting`, except for immediate retries with the other protocol. */
  readonly attempts: () => number
  /** Returns the retained topics that were read back and that the link does not hold, as `sweep` lists them. */
  readonly unowned: () => string[]
}

export interface TestLinkOptions extends Partial<LinkOptions> {
  /** The address of the broker, if there are no `urls`. */
  readonly url?: string
  readonly clock?: typeof systemClock
  readonly onConnected?: (link: MqttLink) => void
  readonly onReadBack?: (topic: string, payload: string) => readonly string[]
  readonly handlers?: LinkHandlers
}

/** Starts a link with the topics `b/state`, `b/app/+` (held) and `b/+/cmd/+` (commands). */
export function startLink({
  url,
  clock = systemClock,
  onConnected,
  onReadBack,
  handlers,
  ...options
}: TestLinkOptions): TestLink {
  const log = new RecordingLog()
  const messages: Message[] = []
  const statuses: LinkStatus[] = []
  const touched: { topic: string; payload: string }[] = []
  let connected = 0
  const link = new MqttLink(
    {
      urls: url === undefined ? [] : [url],
      clientId: 'bridge',
      stateTopic: 'b/state',
      probeTopic: 'b/probe',
      subscriptions: ['b/+/cmd/+'],
      retainedFilters: ['b/app/+', 'b/state'],
      ...options,
    },
    // A random value of 0 chooses the shortest jittered delays.
    { clock, log: log.logger, random: () => 0 },
  )
  link.start({
    ...handlers,
    onMessage: (message) => messages.push(message),
    onConnected: () => {
      connected += 1
      onConnected?.(link)
    },
    onStatus: (status) => statuses.push(status),
    onTouched: (topic, payload) => touched.push({ topic, payload }),
    ...(onReadBack && { onReadBack }),
  })
  return {
    link,
    log,
    messages,
    statuses,
    touched,
    connected: () => connected,
    attempts: () => statuses.filter(({ state }) => state === 'connecting').length,
    unowned: () => {
      const topics: string[] = []
      link.sweep((topic) => {
        topics.push(topic)
        return false
      })
      return topics.sort()
    },
    [Symbol.asyncDispose]: () => link.close({ deadlineMs: 1000 }),
  }
}

/** Resolves after this many connections, when everything, including `online`, is acknowledged. */
export function settled({ link, connected }: TestLink, times = 1): Promise<LinkStatus | undefined> {
  return until(
    'the link to have nothing left to send',
    () => {
      const status = link.status()
      const idle = status.state === 'connected' && status.queued === 0 && status.unacknowledged === 0
      return idle && status.publishes > 0 && connected() >= times ? status : undefined
      // The limit is long, because the link may have to send 40 MB on a busy machine.
    },
    40_000,
  )
}

export function startAedes(log: Logger = silent): Promise<EmbeddedBroker> {
  return startEmbeddedBroker({ host: '127.0.0.1', port: 0, commandFilters: ['b/+/cmd/#'] }, log)
}

export const portOf = (url: string | undefined) => Number(new URL(url ?? 'mqtt://none:0').port)

export const withoutMosquitto = mosquittoPath === undefined

interface Fixtures {
  readonly broker: Mosquitto
  readonly proxy: TcpProxy
  /** An observer that is connected before the link starts. */
  readonly observer: Observer
  /** A link that is connected without the proxy. */
  readonly bridge: TestLink
}

async function during<T extends AsyncDisposable>(starting: T | Promise<T>, use: (started: T) => Promise<void>) {
  await using started = await starting
  await use(started)
}

/** Vitest starts the fixtures that a test uses, in this order. */
export const test = base.extend<Fixtures>({
  broker: ({ task: _ }, use) => during(Mosquitto.start(), use),
  proxy: ({ broker }, use) => during(TcpProxy.to(broker.port), use),
  observer: ({ broker }, use) => during(Observer.on(broker.port), use),
  bridge: ({ broker }, use) => during(startLink({ url: broker.url }), use),
})
