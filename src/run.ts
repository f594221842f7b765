/** The daemon from its configuration to its end: the one place where the parts are put together. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { Bridge } from './bridge/bridge.ts'
import { appFilter, mayUse } from './bridge/permission.ts'
import { createTopics, type Topics } from './bridge/topics.ts'
import type { Clock } from './clock.ts'
import type { Config } from './config/options.ts'
import { Hub } from './hub/hub.ts'
import type { Log } from './log.ts'
import { type EmbeddedBroker, startEmbeddedBroker } from './mqtt/embedded.ts'
import { MqttLink } from './mqtt/link.ts'
import type { LinkOptions } from './mqtt/types.ts'

/** A supervisor kills after ten seconds; a broker that hangs must not keep us from a clean end. */
const GOODBYE_MS = 3000

export interface RunOptions {
  readonly config: Config
  readonly version: string
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  /** Aborted to stop. */
  readonly signal: AbortSignal
}

/**
 * Runs until the signal aborts; then `offline` is published before anything else ends.
 * @throws EmbeddedBrokerError if the embedded broker cannot listen
 */
export async function run(options: RunOptions): Promise<void> {
  const { config, version, clock, random, log, signal } = options
  await using broker = config.mqtt.url === null ? await embeddedBroker(config.mqtt, log) : undefined
  const topics = createTopics(config.mqtt.base_topic)
  await using hubs = openHubs(options)
  const link = new MqttLink(
    linkOptions(config.mqtt, broker?.url ?? config.mqtt.url ?? '', topics),
    { clock, log: log.child({ part: 'mqtt' }), random },
    { onConnected: (status) => bridge.onConnected(status), onMessage: (message) => bridge.onMessage(message) },
  )
  await using _ = { [Symbol.asyncDispose]: () => link.close({ deadlineMs: GOODBYE_MS }) }
  const bridge = new Bridge(
    {
      topics,
      hubs: hubs.all,
      control: { setLogLevel: (level) => log.setLevel(level) },
      allows: (command) => mayUse(config.commands, command),
      settings: config.settings.publish,
      version,
      clock,
      log: log.child({ part: 'bridge' }),
    },
    link,
  )
  bridge.start()
  link.start()
  for (const { hub } of hubs.all.values()) hub.start()
  log.info({ version, base_topic: topics.base, hubs: [...hubs.all.keys()] }, 'hub2mqtt started')
  await aborted(signal)
  log.info('stopping')
}

function embeddedBroker({ embedded, username, password }: Config['mqtt'], log: Log): Promise<EmbeddedBroker> {
  const { host, port, ws_port, max_payload: maxPayload } = embedded
  const credentials = { username: username ?? undefined, password: password ?? undefined }
  const wsPort = ws_port === 0 ? null : ws_port
  return startEmbeddedBroker({ host, port, wsPort, maxPayload, ...credentials }, log.child({ part: 'broker' }))
}

function openHubs({ config, clock, random, log }: RunOptions) {
  const shows = appFilter(config.apps.include, config.apps.exclude)
  const all = new Map(
    Object.entries(config.hubs).map(([name, options]) => {
      const hub = new Hub(
        {
          url: options.url,
          apiKey: () => options.api_key,
          shows,
          pathPrefix: options.path_prefix,
          realtime: options.realtime,
          pollInterval: options.poll_interval,
          pollIntervalFallback: options.poll_interval_fallback,
          timeoutMs: options.timeout,
          maxRequests: options.max_requests,
        },
        { clock, log: log.child({ part: 'hub', hub: name }), random },
      )
      return [name, { hub, url: options.url, concurrency: options.max_requests }]
    }),
  )
  const close = () => Promise.all([...all.values()].map(({ hub }) => hub.destroy()))
  return { all, [Symbol.asyncDispose]: async () => void (await close()) }
}

function linkOptions(mqtt: Config['mqtt'], url: string, topics: Topics): LinkOptions {
  const pem = (path: string | null) => (path === null ? undefined : readFileSync(path))
  return {
    url,
    username: mqtt.username ?? undefined,
    password: mqtt.password ?? undefined,
    clientId: mqtt.client_id ?? stableClientId(topics.base),
    protocol: mqtt.protocol,
    ca: pem(mqtt.ca_file),
    cert: pem(mqtt.cert_file),
    key: pem(mqtt.key_file),
    rejectUnauthorized: mqtt.reject_unauthorized,
    keepaliveMs: mqtt.keepalive,
    stateTopic: topics.bridgeState,
    probeTopic: topics.bridgeProbe,
    subscriptions: topics.commandFilters,
    heldFilters: topics.retainedFilters,
  }
}

/** The same after a restart, so that the broker ends what a crash left half open; another on another machine. */
function stableClientId(base: string): string {
  return `hub2mqtt-${createHash('sha256').update(`${hostname()}\n${base}`).digest('hex').slice(0, 12)}`
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
