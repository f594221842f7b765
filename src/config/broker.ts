import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { systemCode } from '../base/failures.ts'
import { inUrl, reachable } from '../base/hosts.ts'
import { readPlain } from '../base/read-plain.ts'
import { discoveryFilters } from '../contract/discovery.ts'
import { createTopics, type Topics } from '../contract/topics.ts'
import type { EmbeddedBroker } from '../mqtt/embedded.ts'
import type { BrokerOptions, LinkOptions } from '../mqtt/types.ts'
import type { Config, Live } from './options.ts'
import { camelKeys } from './table.ts'

/** @throws EmbeddedBrokerError if the embedded broker cannot listen */
export async function openBroker(config: Config, log: Logger) {
  await using opening = new AsyncDisposableStack()
  const { url, base_topic } = config.mqtt
  const urls = url ?? [opening.use(await openEmbeddedBroker(config, log)).url]
  const instances: number[] = []
  for (const one of urls) instances.push(opening.use(await claimInstance(`${one}\n${base_topic}`)).number)
  const opened = opening.move()
  return { urls, instance: Math.max(...instances), [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

export async function openEmbeddedBroker({ mqtt, discovery }: Config, log: Logger): Promise<EmbeddedBroker> {
  // Load the embedded broker on demand, because most installations have a broker of their own.
  const { startEmbeddedBroker } = await import('../mqtt/embedded.ts')
  const { username, password } = camelKeys(mqtt)
  const { commandFilters } = createTopics(mqtt.base_topic)
  const watched = { commandFilters, birthTopic: discovery.birth_topic }
  return startEmbeddedBroker({ ...camelKeys(mqtt.embedded), ...watched, username, password }, log)
}

type Mqtt = Config['mqtt']

/** @param log where a certificate or key that can no longer be read is reported */
export function brokerAccess(mqtt: Mqtt, urls: readonly string[], log?: Pick<Logger, 'warn'>): BrokerOptions {
  const { username, password, protocol, caFile, certFile, keyFile, rejectUnauthorized, keepalive } = camelKeys(mqtt)
  return {
    ...{ urls, username, password, rejectUnauthorized, keepaliveMs: keepalive },
    // The embedded broker supports only MQTT 3.1.1.
    protocol: mqtt.url === null && protocol === 'auto' ? '3.1.1' : protocol,
    ca: pem(caFile, log),
    cert: pem(certFile, log),
    key: pem(keyFile, log),
  }
}

export function withLogin(access: BrokerOptions, mqtt: Mqtt): BrokerOptions {
  const { username, password } = camelKeys(mqtt)
  return { ...access, username, password }
}

/** Reads the file now, and again for each connection. If a later read fails, uses the previous content. */
function pem(path: string | undefined, log: Pick<Logger, 'warn'> | undefined): (() => Buffer) | undefined {
  if (path === undefined) return undefined
  let content = readPlain(path)
  let isReadable = true
  return () => {
    try {
      content = readPlain(path)
      isReadable = true
    } catch (error) {
      const reason = systemCode(error)
      if (isReadable) log?.warn({ file: path, reason }, 'a file cannot be read again: its former content stays in use')
      isReadable = false
    }
    return content
  }
}

/** Returns the addresses of the broker, the preferred address first; empty for an embedded broker on a random port. */
export function brokerUrls({
  url,
  embedded: { host, port },
}: Pick<Mqtt, 'url'> & { readonly embedded: Pick<Mqtt['embedded'], 'host' | 'port'> }): readonly string[] {
  if (url !== null) return url
  if (port === 0) return []
  return [`mqtt://${inUrl(reachable(host))}:${port}`]
}

/**
 * @param others filters of topics of other clients, which the link also reads
 * @param mayAct whether the bridge may publish more than its own state; default: always
 */
export function linkOptions(
  live: Live & Pick<LinkOptions, 'credentials'>,
  { access, instance }: { readonly access: BrokerOptions; readonly instance: number },
  topics: Topics,
  others: readonly string[],
  mayAct: (() => boolean) | undefined,
): LinkOptions {
  const { mqtt, discovery } = live.value
  const filters = [...topics.retainedFilters, ...others, ...discoveryFilters(discovery.prefix)]
  return {
    ...access,
    clientId: clientIdOf(mqtt, topics, instance),
    stateTopic: topics.of('bridgeState', {}),
    probeTopic: topics.of('bridgeProbe', {}),
    subscriptions: [...topics.commandFilters, topics.of('bridgePresence', {}), discovery.birth_topic],
    // Other bridges wait only a second for an answer.
    urgentTopic: topics.of('bridgePresence', {}),
    retainedFilters: filters,
    watchedFilters: filters,
    transientFilters: topics.transientFilters,
    delaysOnline: (topic) => topic.startsWith(`${topics.base}/`),
    // If a setting is too large for the broker, clear its topic, because no value is better than an outdated one.
    clearIfTooLarge: (topic) => topics.parse(topic)?.name === 'setting',
    credentials: live.credentials,
    mayPublish: mayAct && ((topic) => topic.startsWith(`${topics.base}/bridge/`) || mayAct()),
    maximumPacketSize: mqtt.url === null ? mqtt.embedded.max_payload : undefined,
  }
}

/**
 * Returns an id that stays the same after a restart, so that the broker closes a connection that a crash left half
 * open. Each process of each machine has a different id, because clients with the same id disconnect each other. If two
 * members of a fleet have the same name, the broker disconnects the older client.
 */
function clientIdOf({ client_id }: Mqtt, { base, member }: Topics, instance: number): string {
  if (member !== null) return `${client_id ?? `hub2mqtt-${digestOf(base)}`}-${member}`
  if (client_id !== null) return client_id
  const own = `hub2mqtt-${digestOf(`${hostname()}\n${base}`)}`
  return instance === 0 ? own : `${own}-${instance}`
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 12)

/** Number of instances that have a number of their own. All further instances share the next number. */
const MAX_INSTANCES = 64

/** `number` is 0 for the first process, 1 for a process that starts while the first is running, and so on. */
const instance = (number: number, server?: Server) => ({
  number,
  [Symbol.asyncDispose]: async () => void server?.close(),
})

/**
 * Claims the lowest number under `name` that no other process of this machine has; 0 if the system does not allow
 * local sockets. The system releases the number when the process ends, even after a crash.
 */
export async function claimInstance(name: string, platform: NodeJS.Platform = process.platform) {
  const mark = createHash('sha256').update(name).digest('hex').slice(0, 24)
  for (let number = 0; number < MAX_INSTANCES; number += 1) {
    const server = await hold(pathOf(`hub2mqtt-${mark}-${number}`, platform))
    if (server === 'refused') return instance(0)
    if (server !== 'taken') return instance(number, server)
  }
  return instance(MAX_INSTANCES)
}

/** Returns the path of a socket. On systems other than Linux and Windows, a crash leaves the socket's file behind. */
function pathOf(name: string, platform: NodeJS.Platform): string {
  if (platform === 'linux') return `\0${name}`
  return platform === 'win32' ? `\\\\.\\pipe\\${name}` : join(tmpdir(), `${name}.sock`)
}

async function hold(path: string): Promise<Server | 'taken' | 'refused'> {
  const server = await listen(path)
  if (server !== 'taken' || !path.startsWith('/') || (await isAlive(path))) return server
  try {
    rmSync(path, { force: true })
  } catch {
    // Another user may have created the file.
    return 'taken'
  }
  return await listen(path)
}

async function listen(path: string): Promise<Server | 'taken' | 'refused'> {
  const server = createServer((socket) => socket.destroy()).unref()
  const failed = await once(server.listen({ path, exclusive: true }), 'listening').then(() => undefined, systemCode)
  return failed === undefined ? server : failed === 'EADDRINUSE' ? 'taken' : 'refused'
}

async function isAlive(path: string): Promise<boolean> {
  const socket = connect(path)
  const failed = await once(socket, 'connect').then(() => undefined, systemCode)
  socket.destroy()
  return failed === undefined
}
