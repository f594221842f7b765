/** The daemon from its configuration to its end: the one place where the parts are put together. */
import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { camelKeys } from './base/camel-keys.ts'
import type { Clock } from './base/clock.ts'
import { Bridge } from './bridge/bridge.ts'
import { CleanLink } from './bridge/clean-link.ts'
import { discoveryFilters } from './bridge/home-assistant/discovery-topics.ts'
import { brokerAccess } from './config/broker-access.ts'
import type { Config, HubConfig } from './config/options.ts'
import { createTopics, type Topics } from './contract/topics.ts'
import { healthReport, hubHealth } from './health/report.ts'
import { openListener } from './http/listener.ts'
import { Hubs } from './hubs.ts'
import type { Log } from './log/log.ts'
import { createMetrics } from './metrics/metrics.ts'
import { Tally } from './metrics/tally.ts'
import type { EmbeddedBroker } from './mqtt/embedded.ts'
import { MqttLink } from './mqtt/link.ts'
import type { LinkOptions } from './mqtt/types.ts'
import { applyChanges } from './reload/apply.ts'
import { LiveConfig, type Load } from './reload/live-config.ts'

export interface RunOptions {
  readonly config: Config
  /** Reads the configuration again: at a reload, and when a hub or the broker refuses what it was given. */
  readonly load: Load
  /** Hands out a function to call whenever the configuration shall be read again. */
  readonly onReload?: (reload: () => void) => void
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
  const live = new LiveConfig(config, options.load, log)
  const topics = createTopics(config.mqtt.base_topic)
  const tally = new Tally()
  const startedAt = new Date(clock.now()).toISOString()

  await using broker = config.mqtt.url === null ? await embeddedBroker(config.mqtt, log) : undefined
  await using hubs = new Hubs({ live, onCall: (name, call) => tally.call(name, call), clock, log, random })
  await using link = new MqttLink(
    {
      ...linkOptions(config, broker?.url ?? config.mqtt.url ?? '', topics),
      maximumPacketSize: broker === undefined ? undefined : config.mqtt.embedded.max_payload,
      credentials: () => live.renewCredentials(),
    },
    { clock, log: log.child({ part: 'mqtt' }), random },
  )
  const bridge = new Bridge(
    {
      topics,
      hubs: hubs.all,
      live,
      setLogLevel: (level) => log.setLevel(level),
      onEvent: (hub, event) => tally.event(hub, event),
      onAnswer: (end) => tally.command(end),
      onPresence: () => tellHealth(),
      version,
      startedAt,
      clock,
      random,
      log: log.child({ part: 'bridge' }),
      audit: log.audit,
    },
    new CleanLink(link, live),
  )
  const health = () => {
    const { contested, role } = bridge
    return healthReport({ version, startedAt, mqtt: link.status(), contested, role, hubs: hubHealth(hubs.all) })
  }
  const tellHealth = () => bridge.healthChanged(health())

  bridge.start()
  link.start({
    onReadBack: (topic, payload) => bridge.furtherFilters(topic, payload),
    onConnected: (status) => bridge.onConnected(status),
    onMessage: (message) => bridge.onMessage(message),
    onStatus: tellHealth,
    onTouched: (topic, payload) => bridge.onTouched(topic, payload),
  })
  const openHub = (name: string, hubConfig: HubConfig) => {
    const hub = hubs.open(name, hubConfig)
    hub.subscribe(tellHealth)
    bridge.addHub(name, hub)
    hub.start()
  }
  for (const [name, hubConfig] of Object.entries(config.hubs)) openHub(name, hubConfig)

  const metrics = createMetrics({ version, tally, link: () => link.status(), hubs: hubs.all, health })
  await using _listener = config.http.enabled ? await openListener({ config, log, health, metrics }) : undefined
  const reload = () => {
    const reloaded = live.reload()
    tally.reload(reloaded === undefined ? 'refused' : 'ok')
    if (reloaded === undefined) return
    applyChanges(reloaded, { hubs, bridge, openHub, log })
    tellHealth()
  }
  options.onReload?.(() => {
    try {
      reload()
    } catch (err) {
      log.error({ err }, 'a changed configuration was taken over in part only, by a mistake of the program')
    }
  })
  log.info({ version, base_topic: topics.base, hubs: [...hubs.all.keys()] }, 'hub2mqtt started')

  await aborted(signal)
  bridge.stop()
  log.info('stopping')
}

async function embeddedBroker(mqtt: Config['mqtt'], log: Log): Promise<EmbeddedBroker> {
  // Most have a broker of their own and need not load this one.
  const { startEmbeddedBroker } = await import('./mqtt/embedded.ts')
  const { username, password } = camelKeys(mqtt)
  const { wsPort, ...options } = camelKeys(mqtt.embedded)
  return startEmbeddedBroker(
    { ...options, wsPort: wsPort === 0 ? null : wsPort, username, password },
    log.child({ part: 'broker' }),
  )
}

function linkOptions({ mqtt, discovery }: Config, url: string, topics: Topics): LinkOptions {
  const held = [...topics.retainedFilters, ...discoveryFilters(discovery.prefix)]
  return {
    ...brokerAccess(mqtt, url),
    clientId: mqtt.client_id ?? stableClientId(topics.base),
    stateTopic: topics.of('bridgeState', {}),
    probeTopic: topics.of('bridgeProbe', {}),
    subscriptions: [...topics.commandFilters, topics.of('bridgePresence', {}), discovery.birth_topic],
    heldFilters: held,
    watchedFilters: held,
    gates: (topic) => topic.startsWith(`${topics.base}/`),
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
