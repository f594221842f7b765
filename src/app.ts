/** Creates the daemon's parts in stages. Each stage uses only the parts of earlier stages. */
import { Bridge } from './bridge/bridge.ts'
import type { Signals } from './cli/signals.ts'
import { openCluster } from './cluster/cluster.ts'
import { membershipOf } from './cluster/fleet.ts'
import { brokerAccess, linkOptions, openBroker, withLogin } from './config/broker.ts'
import { watchFolder } from './config/hubs-dir.ts'
import { LiveConfig, type Load } from './config/live-config.ts'
import type { Loaded } from './config/load.ts'
import { Hubs } from './config/open-hubs.ts'
import type { HubConfig } from './config/options.ts'
import { applyChanges } from './config/reload.ts'
import { createTopics } from './contract/topics.ts'
import { Guard } from './guardian/guard.ts'
import { HomeAssistant } from './home-assistant/home-assistant.ts'
import { STORE_URL, Store } from './hub/store.ts'
import { MqttLink } from './mqtt/link.ts'
import { ApiKeys } from './observability/api-keys.ts'
import { bridgeHealth } from './observability/health.ts'
import { type ListenerOptions, openListener } from './web/server/listener.ts'

export interface RunOptions
  extends Pick<Loaded, 'config'>,
    Partial<Pick<Loaded, 'path' | 'hubFiles' | 'readAt'>>,
    Pick<ListenerOptions, 'version' | 'clock' | 'log' | 'sessions' | 'onPage'>,
    Signals {
  /** Reads the configuration again on a reload, and when a hub or the broker rejects the credentials. */
  readonly load: Load
  readonly random: () => number
  /** The address of the app store; default: the public app store. */
  readonly storeUrl?: string | undefined
  /** Called once, when the bridge is ready for the first time. */
  readonly onReady?: () => void
}

/**
 * Runs until the signal aborts, then publishes `offline` and closes everything.
 * @throws EmbeddedBrokerError if the embedded broker cannot listen
 */
export async function run(options: RunOptions): Promise<void> {
  const { config, version, clock, random, log, signal } = options
  const live = new LiveConfig(options, options.load, log, clock)
  const membership = membershipOf(config)
  const topics = createTopics(config.mqtt.base_topic, membership?.member, membership?.mode === 'static')
  const startedAt = new Date(clock.now()).toISOString()
  // Only the HTTP listener serves metrics, and loading the metrics library takes a tenth of the startup time.
  const metrics = config.http.enabled ? new (await import('./observability/metrics.ts')).Metrics() : undefined
  const keys = new ApiKeys(live)

  await using broker = await openBroker(config, log.child({ part: 'broker' }))
  const access = brokerAccess(config.mqtt, broker.urls, log.child({ part: 'mqtt' }))
  const current = () => withLogin(access, live.value.mqtt)
  const cluster = await openCluster({ live, topics, broker: current, clock, log, random }, membership)
  const { fleet, rollouts } = cluster
  const linked = {
    ...linkOptions(live, { access, instance: broker.instance }, topics, fleet?.memberStates ?? [], fleet?.mayAct),
    redact: keys.redact,
  }
  await using link = new MqttLink(linked, { clock, log: log.child({ part: 'mqtt' }), random })
  const limits = { mayAct: fleet?.mayAct, isBusy: () => link.isBusy }
  await using hubs = new Hubs({ live, keys, ...limits, onCall: metrics?.called, clock, log, random })
  const common = { topics, live, hubs: hubs.all, version, clock, random, log: log.child({ part: 'bridge' }) }
  const guardian = new Guard({ ...common, isConnected: () => link.status().protocol !== null })
  const isHidden = config.discovery.format === 'off'
  const homeAssistant = isHidden ? undefined : new HomeAssistant({ ...common, isShared: fleet !== undefined }, link)
  const bridge = new Bridge({ ...common, log, startedAt, rollouts, fleet, guardian, homeAssistant }, link)
  const served = { version, live, topics, bridge, fleet }
  const health = bridgeHealth({
    version,
    startedAt,
    link,
    bridge,
    hubs: hubs.all,
    mayBeIdle: fleet !== undefined,
    mayAct: () => fleet?.mayAct() ?? true,
    clock,
  })
  await using store = new Store({
    url: options.storeUrl ?? STORE_URL,
    isOn: () => live.value.updates.store,
    isActive: () => bridge.role === 'active',
    clock,
    log: log.child({ part: 'store' }),
    random,
  })
  await using _cluster = cluster

  metrics?.add({ ...served, link, hubs: hubs.all, health })
  const pages = { ...options, ...served, hubs, health: health.report, clean: keys.redact, onSecret: keys.add }
  await using listener = metrics && (await openListener({ ...pages, metrics, retries: true }))
  const feed = listener?.feed

  health.subscribe((report) => {
    bridge.healthChanged(report)
    // Pass the bridge's state to the feed here, because the link publishes it without notifying the observer.
    feed?.held(topics.of('bridgeState', {}), health.isOnline ? 'online' : 'offline')
  })
  void health.ready.then(options.onReady)
  const followRole = () => {
    cluster.roleChanged(health.isOnline)
    health.changed()
  }
  bridge.start({
    onPresence: followRole,
    onAnswer: (end) => {
      metrics?.answered(end.command, end.outcome, end.ms)
      const summary = () => keys.redact(end.summary())
      rollouts.client?.answered(end.result, summary)
      // Render the summary of a failure now, so that its length counts towards the feed's limit.
      feed?.record(end.result, end.outcome === 'ok' ? summary : summary())
    },
    observer: feed,
    onReadBack: (topic, payload) => {
      cluster.readBack(topic, payload)
      const own = live.value.updates.store ? topics.parse(topic) : undefined
      const hasRelease = own?.name === 'app' || own?.name === 'appUpdate'
      if (hasRelease && own.owner.kind === 'app') store.recall(own.owner.hub, own.owner.app, payload)
    },
    onTouched: (topic, payload) => fleet?.touched(topic, payload),
    onStatus: followRole,
  })
  const openHub = (name: string, hubConfig: HubConfig) => {
    const hub = hubs.open(name, hubConfig)
    hub.subscribe(health.changed)
    const state = bridge.addHub(name, hub)
    metrics?.follow(name, state)
    store.follow(name, hub.apps, (id) => state.appChanged(id))
    hub.start()
  }
  store.reconfigured()
  cluster.start({ hubs, link, linked, bridge, feed, openHub, onChange: followRole }, config.hubs)

  live.start((reloaded) => {
    metrics?.reloaded(reloaded === undefined ? 'refused' : 'ok')
    if (reloaded !== undefined) applyChanges(reloaded, { hubs, bridge, openHub, fleet, store })
    listener?.reconfigured?.()
    followRole()
  })
  options.onReload(live.reload)
  void watchFolder({ folder: () => live.value.hubs_dir, readAt: options.readAt }, live.reload, clock, signal)
  log.info({ version, base_topic: topics.base, hubs: [...hubs.all.keys()] }, 'hub2mqtt started')

  await health.watch(signal)
  live.stop()
  log.info('stopping')
  await bridge.stop()
}

/** Loads the setup page, which only a daemon without a configured hub needs. */
export const importFirstRun = () => import('./web/server/first-run.ts')
