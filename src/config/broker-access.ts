/** Address and credentials of the configured broker, the same for every connection. */
import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { reachable } from '../base/hosts.ts'
import { readPlain } from '../base/read-plain.ts'
import { discoveryFilters } from '../contract/discovery.ts'
import type { Topics } from '../contract/topics.ts'
import type { LinkOptions } from '../mqtt/types.ts'
import { camelKeys } from './camel-keys.ts'
import type { Config, Live } from './options.ts'

type Mqtt = Config['mqtt']
export type BrokerAccess = Pick<
  LinkOptions,
  'urls' | 'username' | 'password' | 'protocol' | 'ca' | 'cert' | 'key' | 'rejectUnauthorized' | 'keepaliveMs'
>

export function brokerAccess(mqtt: Mqtt, urls: readonly string[]): BrokerAccess {
  const { username, password, protocol, caFile, certFile, keyFile, rejectUnauthorized, keepalive } = camelKeys(mqtt)
  const pem = (path: string | undefined) => (path === undefined ? undefined : readPlain(path))
  return {
    urls,
    username,
    password,
    // Without a configured broker it is the embedded one, which supports no other version.
    protocol: mqtt.url === null && protocol === 'auto' ? '3.1.1' : protocol,
    ca: pem(caFile),
    cert: pem(certFile),
    key: pem(keyFile),
    rejectUnauthorized,
    keepaliveMs: keepalive,
  }
}

/** The addresses of a running bridge's broker, the preferred one first; none for an embedded one with a random port. */
export function brokerUrls({
  url,
  embedded: { host, port },
}: {
  readonly url: readonly string[] | null
  readonly embedded: Pick<Mqtt['embedded'], 'host' | 'port'>
}): readonly string[] {
  if (url !== null) return url
  if (port === 0) return []
  const name = reachable(host)
  return [`mqtt://${name.includes(':') ? `[${name}]` : name}:${port}`]
}

/**
 * How the bridge uses the broker.
 * @param instance counts the bridges of this machine with the same base topic there
 * @param further topics of others that it reads, besides its own
 * @param mayAct whether it may publish more than its own state; default: always
 */
export function linkOptions(
  live: Live & Pick<LinkOptions, 'credentials'>,
  { urls, instance }: { readonly urls: readonly string[]; readonly instance: number },
  topics: Topics,
  further: readonly string[],
  mayAct: (() => boolean) | undefined,
): LinkOptions {
  const { mqtt, discovery } = live.value
  const held = [...topics.retainedFilters, ...further, ...discoveryFilters(discovery.prefix)]
  return {
    ...brokerAccess(mqtt, urls),
    clientId: clientIdOf(mqtt, topics, instance),
    stateTopic: topics.of('bridgeState', {}),
    probeTopic: topics.of('bridgeProbe', {}),
    subscriptions: [...topics.commandFilters, topics.of('bridgePresence', {}), discovery.birth_topic],
    heldFilters: held,
    watchedFilters: held,
    transientFilters: topics.transientFilters,
    delaysOnline: (topic) => topic.startsWith(`${topics.base}/`),
    credentials: live.credentials,
    mayPublish: mayAct && ((topic) => topic.startsWith(`${topics.base}/bridge/`) || mayAct()),
    maximumPacketSize: mqtt.url === null ? mqtt.embedded.max_payload : undefined,
  }
}

/** Two members of a fleet with one name cannot be connected at once: the broker disconnects the first. */
function clientIdOf({ client_id }: Mqtt, { base, member }: Topics, instance: number): string {
  if (member === null) return client_id ?? stableClientId(base, instance)
  return `${client_id ?? `hub2mqtt-${markOf(base)}`}-${member}`
}

/**
 * The same after a restart, so that the broker closes a connection that a crash left half open. It differs between
 * machines, and between processes on one machine, because clients with the same id disconnect each other.
 */
function stableClientId(base: string, instance: number): string {
  const mark = markOf(`${hostname()}\n${base}`)
  return instance === 0 ? `hub2mqtt-${mark}` : `hub2mqtt-${mark}-${instance}`
}

const markOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 12)
