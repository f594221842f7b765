/** The daemon from its configuration to its end, in stages: each is ready when it is there, and uses what came before. */
import { Bridge } from './bridge/bridge.ts'
import type { Signals } from './cli/signals.ts'
import { membershipOf } from './cluster/membership.ts'
import { Peers } from './cluster/peers.ts'
import { Rollouts } from './cluster/rollout/rollouts.ts'
import { applyChanges } from './config/apply.ts'
import { openBroker } from './config/broker.ts'
import { brokerAccess, linkOptions } from './config/broker-access.ts'
import { LiveConfig, type Load } from './config/live-config.ts'
import type { Loaded } from './config/load.ts'
import { Hubs } from './config/open-hubs.ts'
import type { HubConfig } from './config/options.ts'
import { watchFolder } from './config/watch-folder.ts'
import { policyOf, rolloutRefusal } from './contract/permissions.ts'
import { createTopics } from './contract/topics.ts'
import { Guard } from './guardian/guard.ts'
import { HomeAssistant } from './home-assistant/home-assistant.ts'
import { MqttLink } from './mqtt/link.ts'
import { ApiKeys } from './observability/api-keys.ts'
import { Health } from './observability/health.ts'
import { createMetrics } from './observability/metrics.ts'
import { Tally } from './observability/tally.ts'
import { type ListenerOptions, openListener } from './web/server/listener.ts'

export interface RunOptions
  extends Pick<Loaded, 'config'>,
    Partial<Pick<Loaded, 'path' | 'hubFiles' | 'readAt'>>,
    Pick<ListenerOptions, 'version' | 'clock' | 'log' | 'sessions' | 'onPage'>,
    Signals {
  /** Reads the configuration again: at a reload, and when a hub or the broker refuses what it was given. */
  readonly load: Load
  readonly random: () => number
  /** Called once, when the bridge does its work for the first time. */
  readonly onReady?: () => void
}

/**
 * Runs until the signal aborts; then `offline` is published before anything else ends.
 * @throws EmbeddedBrokerError if the embedded broker cannot listen
 */
export async function run(options: RunOptions): Promise<void> {
  const { config, version, clock, random, log, signal } = options
  const live = new LiveConfig(options, options.load, log, clock)
  const membership = membershipOf(config)
  const topics = createTopics(config.mqtt.base_topic, membership?.member, membership?.mode === 'static')
  const startedAt = new Date(clock.now()).toISOString()
  const tally = new Tally()
  const keys = new ApiKeys(live)

  await using broker = await openBroker(config, log.child({ part: 'broker' }))
  // Most run alone and need not load the client of NATS.
  const fleet = membership && new (await import('./cluster/fleet-run.ts')).FleetRun(membership, live, clock, log)
  const mayAct = fleet && (() => fleet.mayAct())

  await using hubs = new Hubs({ live, keys, onCall: tally.called, mayAct, clock, log, random })
  const memberStates = fleet?.othersStates(topics) ?? []
  const linked = { ...linkOptions(live, broker, topics, memberStates, mayAct), redact: keys.redact }
  await using rollouts = new Rollouts({
    ...options,
    log: log.child({ part: 'rollout' }),
    topics,
    broker: () => brokerAccess(live.value.mqtt, broker.urls),
    clientId: `${linked.clientId}-rollout`,
    serves: (hub) => fleet === undefined || hubs.all.has(hub),
    refusal: (command) => rolloutRefusal(policyOf(live.value), command),
  })

  await using link = new MqttLink(linked, { clock, log: log.child({ part: 'mqtt' }), random })
  const common = { topics, live, hubs: hubs.all, version, clock, random, log: log.child({ part: 'bridge' }) }
  const guardian = new Guard({ ...common, isConnected: () => link.status().protocol !== null })
  const isHidden = config.discovery.format === 'off'
  const homeAssistant = isHidden ? undefined : new HomeAssistant({ ...common, isShared: fleet !== undefined }, link)
  const bridge = new Bridge({ ...common, log, startedAt, rollouts, fleet, guardian, homeAssistant }, link)
  const served = { version, live, topics, bridge, fleet }
  const health = new Health({ version, startedAt, link, bridge, hubs: hubs.all, mayBeIdle: fleet !== undefined, clock })
  await using _member = fleet

  const metrics = createMetrics({ ...served, tally, link: () => link.status(), hubs: hubs.all, health: health.report })
  const pages = { ...options, ...served, hubs, health: health.report, metrics, clean: keys.redact, onSecret: keys.add }
  await using listener = config.http.enabled ? await openListener(pages) : undefined
  const feed = listener?.feed
  const peers = fleet && new Peers(topics, memberStates, hubs.all, live, feed)

  health.subscribe((report) => {
    bridge.healthChanged(report)
    // The link writes it, and its will.
    feed?.held(topics.of('bridgeState', {}), health.isOnline ? 'online' : 'offline')
  })
  void health.ready.then(options.onReady)
  /** At once: a rollout may be ordered as soon as it is said that the bridge is online. */
  const followRole = () => {
    const speaks = fleet?.isSpeaker ?? true
    if (health.isOnline && speaks) rollouts.start(link)
    else if (bridge.role === 'standby' || !speaks) rollouts.stop()
    health.changed()
  }
  bridge.start({
    onPresence: followRole,
    onAnswer: (end) => {
      tally.commands.add(end.command, end.outcome, end.ms)
      const summary = () => keys.redact(end.summary())
      rollouts.client?.answered(end.result, summary)
      // That of a failure may be long.
      feed?.happened(end.result, end.outcome === 'ok' ? summary : summary())
    },
    observer: feed,
    onReadBack: (topic, payload) => {
      peers?.heard(topic, payload)
      rollouts.found(topic, payload)
    },
    onTouched: (topic, payload) => peers?.heard(topic, payload),
    onStatus: followRole,
  })
  const openHub = (name: string, hubConfig: HubConfig) => {
    const hub = hubs.open(name, hubConfig)
    hub.subscribe(health.changed)
    tally.follow(name, bridge.addHub(name, hub))
    feed?.follow(name, hub.apps)
    hub.start()
  }
  if (fleet === undefined) for (const [name, hubConfig] of Object.entries(config.hubs)) openHub(name, hubConfig)
  else fleet.start({ topics, hubs, link, bridge, openHub, onChange: followRole }, linked, random)

  live.start((reloaded) => {
    tally.reload(reloaded === undefined ? 'refused' : 'ok')
    if (reloaded !== undefined) applyChanges(reloaded, { hubs, bridge, openHub, fleet })
    health.changed()
  })
  options.onReload(live.reload)
  const { hubs_dir: folder } = config
  if (folder !== null) void watchFolder({ folder, readAt: options.readAt }, live.reload, clock, signal)
  log.info({ version, base_topic: topics.base, hubs: [...hubs.all.keys()] }, 'hub2mqtt started')

  await health.watch(signal)
  live.stop()
  rollouts.stop()
  log.info('stopping')
  await bridge.stop()
}

/** The set-up page of a daemon that has no hub yet: others never load it. */
export const importFirstRun = () => import('./web/server/first-run.ts')
