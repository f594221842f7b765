/** The daemon from its configuration to its end: the one place where the parts are put together. */
import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import type { Logger } from 'pino'
import { Feed } from './api/feed.ts'
import { Peers } from './api/peers.ts'
import { camelKeys } from './base/camel-keys.ts'
import { type Clock, sleep } from './base/clock.ts'
import { claimInstance } from './base/instance.ts'
import { Throttle } from './base/throttle.ts'
import { logActivity } from './bridge/activity-log.ts'
import { ApiKeys } from './bridge/api-keys.ts'
import { Bridge } from './bridge/bridge.ts'
import { policyOf } from './bridge/dispatcher.ts'
import { discoveryFilters } from './bridge/home-assistant/discovery-topics.ts'
import { brokerAccess } from './config/broker-access.ts'
import { hubFilesIn } from './config/hubs-dir.ts'
import type { Config, HubConfig } from './config/options.ts'
import { refusalsOf, rolloutRefusal } from './contract/permissions.ts'
import { createTopics, type Topics } from './contract/topics.ts'
import { FleetLeader } from './fleet/fleet-leader.ts'
import { membershipOf } from './fleet/membership.ts'
import { FleetReport } from './fleet-report.ts'
import type { FleetRun, FleetRunOptions } from './fleet-run.ts'
import { Recent } from './health/recent.ts'
import { healthReport, hubHealth } from './health/report.ts'
import { openListener } from './http/listener.ts'
import type { Sessions } from './http/sessions.ts'
import { Hubs } from './hubs.ts'
import type { Log } from './log/log.ts'
import { createMetrics } from './metrics/metrics.ts'
import { Tally } from './metrics/tally.ts'
import type { EmbeddedBroker } from './mqtt/embedded.ts'
import { MqttLink } from './mqtt/link.ts'
import type { LinkHandlers, LinkOptions } from './mqtt/types.ts'
import { applyChanges } from './reload/apply.ts'
import { LiveConfig, type Load } from './reload/live-config.ts'
import { watchFolder } from './reload/watch-folder.ts'
import { Rollouts } from './rollout/rollouts.ts'

export interface RunOptions {
  readonly config: Config
  /** The configuration file, if there is one. */
  readonly path?: string | null
  /** How many files the folder of `hubs_dir` has, if it is named. */
  readonly hubFiles?: number | null
  /** Reads the configuration again: at a reload, and when a hub or the broker refuses what it was given. */
  readonly load: Load
  /** Hands out a function to call whenever the configuration shall be read again. */
  readonly onReload?: (reload: () => void) => void
  readonly version: string
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  /** Called once, when the bridge does its work for the first time. */
  readonly onReady?: () => void
  /** Gets the address of the page that logs a browser in, while there is no password. */
  readonly onPage?: (address: string) => void
  /** Of the page, from before there was a hub. */
  readonly sessions?: Sessions
  /** Aborted to stop. */
  readonly signal: AbortSignal
}

const HEALTH_INTERVAL_MS = 15_000
/** How long commands under way may take at the end: with what the link needs, less than a supervisor waits. */
const ANSWER_MS = 1500
/** How long what is cut off may take to be answered. */
const CUT_MS = 300
/** From so many hubs on, memory counts for more than the processor time that it takes to collect it more often. */
const MANY_HUBS = 50
/** Else V8 lets the heap grow to several times of what is in use before it looks what can go. */
const FRUGAL = '--heap-growing-percent=30'

/**
 * Runs until the signal aborts; then `offline` is published before anything else ends.
 * @throws EmbeddedBrokerError if the embedded broker cannot listen
 */
export async function run(options: RunOptions): Promise<void> {
  const { config, version, clock, random, log, signal } = options
  limitHeap(config)
  const live = new LiveConfig(options, options.load, log, clock)
  const membership = membershipOf(config)
  const topics = createTopics(config.mqtt.base_topic, membership?.member, membership?.mode === 'static')
  const tally = new Tally()
  const startedAt = new Date(clock.now()).toISOString()

  await using broker =
    config.mqtt.url === null ? await openEmbeddedBroker(config, log.child({ part: 'broker' })) : undefined
  const urls = broker === undefined ? (config.mqtt.url ?? []) : [broker.url]
  await using claims = new AsyncDisposableStack()
  const numbers: number[] = []
  for (const url of urls) numbers.push(claims.use(await claimInstance(`${url}\n${topics.base}`)).number)
  const fleet = membership && (await joinFleet({ membership, live, clock, log }))
  const report = fleet && new FleetReport(fleet)
  const mayAct = fleet && (() => fleet.mayAct())
  const keys = new ApiKeys(config)
  live.onReplaced = (replaced) => keys.add(replaced)
  const redact = (payload: string) => keys.scrubber.payload(payload)
  await using hubs = new Hubs({ live, keys, tally, mayAct, clock, log, random })
  const clientId = clientIdOf(config, topics.base, membership?.member, Math.max(...numbers))
  await using rollouts = new Rollouts({
    topics,
    broker: () => brokerAccess(live.value.mqtt, urls),
    clientId: `${clientId}-rollout`,
    link: () => link,
    serves: (hub) => fleet === undefined || hubs.all.has(hub),
    refusal: (command) => rolloutRefusal(policyOf(live.value), command),
    clock,
    random,
    log: log.child({ part: 'rollout' }),
  })
  const memberStates = othersStates(topics, fleet)
  const basics: LinkOptions = {
    ...linkOptions(config, urls, topics, memberStates),
    clientId,
    maximumPacketSize: broker === undefined ? undefined : config.mqtt.embedded.max_payload,
    credentials: () => live.renewCredentials(),
  }
  const isOfBridge = (topic: string) => topic.startsWith(`${topics.base}/bridge/`)
  const mayPublish = mayAct && ((topic: string) => isOfBridge(topic) || mayAct())
  const feed = new Feed({
    topics,
    discoveryPrefix: config.discovery.prefix,
    retained: () => bridge.retained().map(([topic, payload]) => [topic, redact(payload)]),
    refusals: () => refusals(hubs, live),
    fleet: report?.status,
    clock,
  })
  const linked = { ...basics, mayPublish, redact, observer: feed }
  await using link = new MqttLink(linked, { clock, log: log.child({ part: 'mqtt' }), random })
  const others = fleet && new Peers({ topics, memberStates, hubs: hubs.all, live, feed })
  const bridge = new Bridge(
    {
      topics,
      hubs: hubs.all,
      live,
      setLogLevel: (level) => log.setLevel(level),
      rollouts,
      onAnswer: (end) => {
        tally.commands.add(end.command, end.outcome, end.ms)
        const summary = () => redact(end.summary())
        rollouts.client?.answered(end.result, summary)
        // That of a failure may be long.
        feed.happened(end.result, end.outcome === 'ok' ? summary : summary())
      },
      onPresence: () => followRole(),
      fleet,
      whyNotServed: report?.whyNotServed,
      version,
      startedAt,
      clock,
      random,
      log: log.child({ part: 'bridge' }),
      audit: log.audit,
    },
    link,
  )
  const lost = new Recent(clock)
  const health = () => {
    const { contested, role, failedSettings } = bridge
    const mqtt = link.status()
    const losing = lost.grew(mqtt.dropped)
    const mayBeIdle = fleet !== undefined
    const ofHubs = { hubs: hubHealth(hubs.all), failedSettings }
    return healthReport({ version, startedAt, mqtt, losing, contested, role, mayBeIdle, ...ofHubs })
  }
  let wasReady = false
  const isOnline = () => link.status().state === 'connected' && bridge.role === 'active'
  const tellHealth = () => telling.request()
  const telling = new Throttle(clock, () => {
    const report = health()
    bridge.healthChanged(report)
    // The link writes it, and its will.
    feed.held(topics.of('bridgeState', {}), isOnline() ? 'online' : 'offline')
    if (report.ready && !wasReady) {
      wasReady = true
      options.onReady?.()
    }
  })

  /** At once: a rollout may be ordered as soon as it is said that the bridge is online. */
  const followRole = () => {
    const speaks = fleet?.isSpeaker ?? true
    if (isOnline() && speaks) rollouts.start()
    else if (bridge.role === 'standby' || !speaks) rollouts.stop()
    tellHealth()
  }

  bridge.start()
  link.start({
    ...hearing(bridge, others, rollouts),
    onConnected: (status) => bridge.onConnected(status),
    onMessage: (message) => bridge.onMessage(message),
    onStatus: followRole,
    onMove: () => bridge.onMove(),
    isBusy: () => bridge.isBusy,
  })
  const openHub = (name: string, hubConfig: HubConfig) => {
    const hub = hubs.open(name, hubConfig)
    hub.subscribe(tellHealth)
    const state = bridge.addHub(name, hub)
    logActivity(hub, state, () => live.value.commands, log.child({ part: 'apps', hub: name }))
    state.subscribe((changes) => {
      for (const { events } of changes) for (const event of events) tally.event(name, event)
    })
    if (config.http.enabled) feed.follow(name, hub.apps)
    hub.start()
  }
  await using _member = fleet
  if (fleet === undefined) for (const [name, hubConfig] of Object.entries(config.hubs)) openHub(name, hubConfig)
  else {
    const speaking = { ...basics, clientId: `${clientId}-speaker`, stateTopic: topics.availability }
    const speaker = new FleetLeader({ link: speaking, clock, log: log.child({ part: 'speaker' }), random })
    const onSilence = () => {
      link.hold(topics.availability, 'offline')
      // The broker may have got something else from a speaker since that was read.
      link.refresh([topics.availability])
    }
    const isConnected = () => link.status().protocol !== null
    fleet.start({ hubs, bridge, speaker, openHub, onChange: followRole, isConnected, onSilence })
  }

  const metrics = createMetrics({ version, tally, link: () => link.status(), bridge, hubs: hubs.all, health, fleet })
  const services = {
    topics,
    bridge,
    version,
    clean: redact,
    hubs: hubs.all,
    path: options.path ?? null,
  }
  const { sessions, onPage } = options
  const addSecret = (secret: string) => {
    log.addSecret(secret)
    keys.scrubber.add(secret)
  }
  const listening = { live, log, health, metrics, feed, services, sessions, onPage, addSecret, clock }
  await using _listener = config.http.enabled ? await openListener(listening) : undefined
  const reload = () => {
    const reloaded = live.reload()
    tally.reload(reloaded === undefined ? 'refused' : 'ok')
    if (reloaded === undefined) return
    // Whose a new hub is, the fleet says.
    applyChanges(reloaded, { hubs, bridge, openHub: fleet === undefined ? openHub : () => {}, log })
    fleet?.hubsChanged()
    tellHealth()
  }
  const reloadSafely = () => {
    try {
      reload()
    } catch (err) {
      log.error({ err }, 'a changed configuration was taken over in part only, by a mistake of the program')
    }
  }
  options.onReload?.(reloadSafely)
  live.start(reloadSafely)
  if (config.hubs_dir !== null) {
    void watchFolder({ folder: config.hubs_dir, pick: hubFilesIn, onChange: reloadSafely, clock, signal })
  }
  log.info({ version, base_topic: topics.base, hubs: [...hubs.all.keys()] }, 'hub2mqtt started')

  // Not everything in it is told of when it changes.
  for (;;) {
    await sleep(clock, HEALTH_INTERVAL_MS, signal)
    if (signal.aborted) break
    tellHealth()
  }
  telling.stop()
  live.stop()
  rollouts.stop()
  log.info('stopping')
  await answerCommands(bridge, hubs, clock)
  bridge.stop()
}

/** Lets commands under way end; those that take too long are cut off, and answered too. */
async function answerCommands(bridge: Bridge, hubs: Hubs, clock: Clock): Promise<void> {
  const done = new AbortController()
  const answered = bridge.endCommands().finally(() => done.abort())
  await Promise.race([answered, sleep(clock, ANSWER_MS, done.signal)])
  if (!bridge.isBusy) return
  for (const { hub } of hubs.all.values()) void hub.endCalls()
  await Promise.race([answered, sleep(clock, CUT_MS, done.signal)])
}

function limitHeap({ hubs }: Config): void {
  if (Object.keys(hubs).length >= MANY_HUBS) setFlagsFromString(FRUGAL)
}

/** What the broker holds, or others have published: for the bridge, and for who looks at the whole fleet. */
function hearing(
  bridge: Bridge,
  others: Peers | undefined,
  rollouts: Rollouts,
): Pick<LinkHandlers, 'onReadBack' | 'onTouched'> {
  return {
    onReadBack(topic, payload) {
      others?.heard(topic, payload)
      rollouts.found(topic, payload)
      return bridge.furtherFilters(topic, payload)
    },
    onTouched(topic, payload) {
      others?.heard(topic, payload)
      bridge.onTouched(topic, payload)
    },
  }
}

async function joinFleet(options: FleetRunOptions): Promise<FleetRun> {
  // Most run alone and need not load the client of NATS.
  const { FleetRun } = await import('./fleet-run.ts')
  return new FleetRun(options)
}

/** @throws EmbeddedBrokerError */
export async function openEmbeddedBroker({ mqtt, http, discovery }: Config, log: Logger): Promise<EmbeddedBroker> {
  // Most have a broker of their own and need not load this one.
  const { startEmbeddedBroker } = await import('./mqtt/embedded.ts')
  const { username, password } = camelKeys(mqtt)
  const { wsPort, ...options } = camelKeys(mqtt.embedded)
  const { commandFilters } = createTopics(mqtt.base_topic)
  const ws = { wsPort: wsPort === 0 ? null : wsPort, wsHosts: http.allowed_hosts }
  const watched = { commandFilters, birthTopic: discovery.birth_topic }
  return startEmbeddedBroker({ ...options, ...ws, ...watched, username, password }, log)
}

function linkOptions(
  { mqtt, discovery }: Config,
  urls: readonly string[],
  topics: Topics,
  memberStates: readonly string[],
): Omit<LinkOptions, 'clientId'> {
  const held = [...topics.retainedFilters, ...memberStates, ...discoveryFilters(discovery.prefix)]
  return {
    ...brokerAccess(mqtt, urls),
    stateTopic: topics.of('bridgeState', {}),
    probeTopic: topics.of('bridgeProbe', {}),
    subscriptions: [...topics.commandFilters, topics.of('bridgePresence', {}), discovery.birth_topic],
    heldFilters: held,
    watchedFilters: held,
    transientFilters: topics.transientFilters,
    delaysOnline: (topic) => topic.startsWith(`${topics.base}/`),
  }
}

/**
 * Where other members tell their states. Those that share by number are known from the start; those that share by leases
 * come and go, and the fleet tells who is there.
 */
function othersStates(topics: Topics, fleet: FleetRun | undefined): string[] {
  const names = Object.keys(fleet?.payload.members ?? {}).filter((name) => name !== topics.member)
  return names.map(topics.memberState)
}

function refusals(hubs: Hubs, live: LiveConfig): Record<string, Record<string, string>> {
  return Object.fromEntries([...hubs.all].map(([name, { hub }]) => [name, refusalsOf(hub, policyOf(live.value))]))
}

/** Of the members of a fleet, none can be two: the broker ends the connection of the first. */
function clientIdOf({ mqtt }: Config, base: string, member: string | undefined, instance: number): string {
  if (member === undefined) return mqtt.client_id ?? stableClientId(base, instance)
  return `${mqtt.client_id ?? `hub2mqtt-${markOf(base)}`}-${member}`
}

/**
 * The same after a restart, so that the broker ends what a crash left half open; another on another machine, and for
 * another process on this one: two with one id throw each other out for ever.
 */
function stableClientId(base: string, instance: number): string {
  const mark = markOf(`${hostname()}\n${base}`)
  return instance === 0 ? `hub2mqtt-${mark}` : `hub2mqtt-${mark}-${instance}`
}

const markOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 12)
