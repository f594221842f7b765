import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { fromHere, isLoopback } from '../../base/hosts.ts'
import { readPlainText } from '../../base/read-plain.ts'
import type { Signals } from '../../cli/signals.ts'
import { openEmbeddedBroker } from '../../config/broker.ts'
import type { ReadFile } from '../../config/file.ts'
import { type Loaded, type LoadOptions, loadConfig, loadWithoutHub } from '../../config/load.ts'
import { ConfigError } from '../../config/mistakes.ts'
import type { Config } from '../../config/options.ts'
import { createTopics } from '../../contract/topics.ts'
import { EmbeddedBrokerError } from '../../mqtt/embedded.ts'
import type { Log } from '../../observability/log.ts'
import { Sessions } from './access.ts'
import { type ListenerOptions, openListener } from './listener.ts'
import { findHubs } from './setup/search.ts'
import { Setup } from './setup/setup.ts'

function isReachable({ host, password, tokens, ingress, trusted_proxies }: Config['http']): boolean {
  const hasToken = tokens.values().some(({ access }) => access === 'full')
  return isLoopback(host) || password !== null || hasToken || (ingress && trusted_proxies.length > 0)
}

const NO_ACCESS =
  'http.password: missing; set it (HUB2MQTT_HTTP_PASSWORD) to set up hub2mqtt in a browser, also from other machines'

/** Loads a configuration that lacks only hubs or its file. @throws ConfigError if the setup page cannot complete it */
export function loadUnfinished(error: ConfigError, request: LoadOptions): Loaded {
  const loaded = loadWithoutHub(request)
  if (loaded === undefined) throw error
  const { config, path } = loaded
  const { enabled, page } = config.http
  if (!enabled || !page || (path !== null && !existsSync(dirname(path)))) throw error
  if (!isReachable(config.http)) throw new ConfigError([...error.mistakes, NO_ACCESS])
  return loaded
}

/**
 * Serves the setup page. Resolves to the page's sessions when the configuration is complete, or to `undefined` when
 * the signal aborts. @throws `problem` if the listener cannot be opened
 */
export async function firstRun(
  request: LoadOptions,
  { loaded, problem }: { readonly loaded: Loaded; readonly problem: ConfigError },
  world: Pick<ListenerOptions, 'version' | 'clock' | 'log' | 'onPage'> & Signals,
): Promise<Sessions | undefined> {
  const { onReload, onPage, version, clock, log, signal } = world
  const { config, path } = loaded
  const sessions = new Sessions(clock)
  const end = Promise.withResolvers<Sessions | undefined>()
  signal.addEventListener('abort', () => end.resolve(undefined))
  if (signal.aborted) return undefined
  const setup = new Setup({
    config,
    path,
    check(text) {
      const readFile: ReadFile = (name, lenient) => (name === path ? text : readPlainText(name, lenient))
      return loadConfig({ ...request, requireHub: false, readFile })
    },
    search: () => findHubs({ clock }),
    tryEmbedded: (wanted) => tryEmbedded(wanted, log),
    log,
    clock,
    onWritten: () => end.resolve(sessions),
  })
  const startedAt = new Date(clock.now()).toISOString()
  await using listener = await openListener({
    live: { value: config },
    log,
    topics: createTopics(config.mqtt.base_topic),
    bridge: {
      role: 'undecided',
      command: () => false,
      retained: () => [],
      evidence: {
        samples: { all: () => [] },
        history: () => ({ resolution_seconds: 60, cpu_percent: [], memory_bytes: [], source: 'bridge' }),
      },
    },
    version,
    clean: (payload) => payload,
    hubs: { all: new Map(), refusals: () => ({}) },
    path,
    setup,
    health: () => ({
      live: true,
      ready: false,
      problems: ['no hub is configured yet: finish the setup on the page'],
      version,
      started_at: startedAt,
      mqtt: { state: 'waiting', protocol: null, reason: null, probe: 'unknown' },
      hubs: {},
    }),
    metrics: { print: async () => ({ contentType: 'text/plain; charset=utf-8', text: '' }) },
    sessions,
    onPage,
    clock,
  })
  if (listener?.url === undefined) throw problem
  const url = fromHere(listener.url)
  log.info({ url }, `no hub is configured yet: set it up at ${url}`)
  onReload(() => {
    try {
      loadConfig(request)
      end.resolve(sessions)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      for (const mistake of error.mistakes) log.error(`configuration: ${mistake}`)
    }
  })
  return await end.promise
}

async function tryEmbedded(config: Config, log: Log): Promise<{ readonly url: string } | { readonly why: string }> {
  try {
    await using broker = await openEmbeddedBroker(config, log.child({ part: 'broker' }, { level: 'silent' }))
    return { url: broker.url }
  } catch (error) {
    if (error instanceof EmbeddedBrokerError) return { why: error.message }
    throw error
  }
}
