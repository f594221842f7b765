/** The bridge's broker: the configured one, or one inside this process. */
import type { Logger } from 'pino'
import { createTopics } from '../contract/topics.ts'
import type { EmbeddedBroker } from '../mqtt/embedded.ts'
import { camelKeys } from './camel-keys.ts'
import { claimInstance } from './instance.ts'
import type { Config } from './options.ts'

export interface Broker extends AsyncDisposable {
  readonly urls: readonly string[]
  /** Counts the processes of this machine that use the same base topic there, from 0. */
  readonly instance: number
}

/** @throws EmbeddedBrokerError if the embedded broker cannot listen */
export async function openBroker(config: Config, log: Logger): Promise<Broker> {
  await using opening = new AsyncDisposableStack()
  const { url, base_topic } = config.mqtt
  const urls = url ?? [opening.use(await openEmbeddedBroker(config, log)).url]
  const instances: number[] = []
  for (const one of urls) instances.push(opening.use(await claimInstance(`${one}\n${base_topic}`)).number)
  const opened = opening.move()
  return { urls, instance: Math.max(...instances), [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

/** @throws EmbeddedBrokerError */
export async function openEmbeddedBroker({ mqtt, discovery }: Config, log: Logger): Promise<EmbeddedBroker> {
  // Loaded on demand: most installations have their own broker.
  const { startEmbeddedBroker } = await import('../mqtt/embedded.ts')
  const { username, password } = camelKeys(mqtt)
  const { commandFilters } = createTopics(mqtt.base_topic)
  const watched = { commandFilters, birthTopic: discovery.birth_topic }
  return startEmbeddedBroker({ ...camelKeys(mqtt.embedded), ...watched, username, password }, log)
}
