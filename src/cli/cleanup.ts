/** `hub2mqtt cleanup`: removes the retained messages that a bridge has left on a broker. */
import { randomBytes } from 'node:crypto'
import type { IPublishPacket } from 'mqtt'
import { type Clock, systemClock } from '../base/clock.ts'
import { ExpectedError } from '../base/errors.ts'
import { FormerHubs, memberIn, Prefixes } from '../bridge/former.ts'
import { ownership } from '../bridge/ownership.ts'
import { brokerAccess } from '../config/broker.ts'
import { loadConfig } from '../config/load.ts'
import type { Config } from '../config/options.ts'
import { discoveryFilters } from '../contract/discovery.ts'
import { createTopics, type Topics } from '../contract/topics.ts'
import { ENTITIES } from '../home-assistant/entities.ts'
import type { Connection } from '../mqtt/connection.ts'
import { topicMatcher } from '../mqtt/names.ts'
import { CERTAIN, ReadBack } from '../mqtt/readback.ts'
import { SessionError, withSession } from '../mqtt/session.ts'
import type { BrokerOptions } from '../mqtt/types.ts'
import { shownText } from '../observability/controls.ts'
import { call } from './call.ts'
import { type Body, exitCodes, type Io, type Values } from './command.ts'
import type { cleanupFlags } from './commands.ts'
import { progress } from './progress.ts'

type Flags = Values<typeof cleanupFlags>

export const cleanupCommand: Body<Flags> = async (io, flags) => {
  const { config } = loadConfig({ file: flags.config, env: io.env, requireHub: false })
  return await clean(config, io, flags)
}

const CLEANUP_MS = 120_000

/** Runs the cleanup. The flags override the values in the configuration. */
export async function clean(
  { mqtt, discovery, hubs }: Config,
  { print, warn }: Io,
  { yes = false, 'base-topic': base = mqtt.base_topic, prefix = discovery.prefix, hub = [] }: Partial<Flags>,
): Promise<number> {
  if (mqtt.url === null) {
    print('nothing to clear: the embedded broker keeps its messages only while hub2mqtt runs')
    return exitCodes.ok.code
  }
  const { found, left, isComplete } = await cleanup({
    broker: brokerAccess(mqtt, mqtt.url),
    topics: createTopics(base),
    prefix,
    hubs: [...Object.keys(hubs), ...hub],
    timeoutMs: CLEANUP_MS,
    clock: systemClock,
    clear: yes,
    onProgress: progress('cleared'),
  })
  for (const topic of yes ? left : found) print(shownText(topic))
  if (found.length === 0) print(`this broker has no messages of a bridge with the base topic ${base}`)
  else if (!yes) print(`\n${found.length} retained messages; hub2mqtt cleanup --yes clears them`)
  else if (left.length === 0) print(`cleared ${found.length} retained messages`)
  else warn(`hub2mqtt: the broker refused to clear these ${left.length} of ${found.length} retained messages`)
  if (!isComplete) warn('hub2mqtt: there may be more messages: brokers omit some if many are read at once')
  return left.length === 0 ? exitCodes.ok.code : exitCodes.failed.code
}

export interface CleanupOptions {
  readonly broker: BrokerOptions
  readonly topics: Topics
  /** The discovery prefix to search, in addition to the prefixes that the bridge has recorded on the broker. */
  readonly prefix: string
  /** The hubs to search, in addition to those in the bridge's retained information. */
  readonly hubs: readonly string[]
  readonly clear: boolean
  readonly onProgress?: (cleared: number, of: number) => void
  readonly timeoutMs: number
  readonly clock: Clock
}

/** Maximum number of reads. Several are needed if the broker has very many topics, because each may miss some. */
const MAX_READS = 20
/** Time within which a running bridge answers a ping. */
const PING_MS = 3_000

type Messages = ReadonlyMap<string, string>
type Read = (filters: readonly string[]) => Promise<Messages>

/**
 * Finds the retained topics of a bridge and, with `clear`, clears them. `left`: the topics that the broker refused to
 * clear. `isComplete`: all topics were found. @throws ExpectedError if access rules or a running bridge prevent this
 */
export async function cleanup(options: CleanupOptions) {
  const { broker, topics, prefix, clear, timeoutMs, clock } = options
  // Do not use the configured client id, or the broker would close the bridge's connection.
  const clientId = `hub2mqtt-cleanup-${randomBytes(8).toString('hex')}`
  let reading: ReadBack | undefined
  const onPublish = (packet: IPublishPacket) => reading?.received(packet)
  return await withSession({ broker, clientId, timeoutMs, onPublish }, clock, async (connection) => {
    const { retainedFilters, transientFilters, memberFilters } = topics
    const filters = [...retainedFilters, ...transientFilters, ...memberFilters, ...discoveryFilters(prefix)]
    const memory = topics.of('bridgeDiscovery', {})
    const prefixes = new Prefixes(prefix, memory)
    const additionalFilters = (topic: string, text: string) =>
      prefixes.learn(topics.parseMember(topic)?.name === 'bridgeDiscovery' ? memory : topic, text)
    // Remember cleared messages, because they name the hubs and prefixes to which the remaining messages belong.
    const seen = new Map<string, string>()
    const probeTopic = topics.of('bridgeProbe', {})
    const read = async (readFilters: readonly string[]) => {
      const messages = new Map<string, string>()
      reading = new ReadBack(connection, {
        ...{ retainedFilters: readFilters, additionalFilters, probeTopic, clock, timeoutMs },
        subscribe: (filter, qos) => connection.subscribe(filter, { qos }),
        onFound(topic, text) {
          messages.set(topic, text)
          seen.set(topic, text)
          filters.push(...additionalFilters(topic, text).filter((filter) => !filters.includes(filter)))
        },
      })
      if ((await reading.run()).probe === 'ok') return messages
      throw new ExpectedError(`the broker does not let this user publish and read ${probeTopic}`)
    }
    const readAll = async () => {
      const messages = await read(filters)
      const running = await runningIn(messages, options)
      if (running !== undefined) throw new ExpectedError(running)
      return messages
    }
    if (!clear) {
      const isComplete = (await readAll()).size <= CERTAIN || (await readInParts(read, filters, seen))
      return { found: ownTopics(seen, seen, options).sort(), left: [], isComplete }
    }
    const found = new Set<string>()
    const refused = new Set<string>()
    let isComplete = false
    for (let reads = 0; reads < MAX_READS && !isComplete; reads += 1) {
      const fresh = ownTopics(await readAll(), seen, options).filter((topic) => !refused.has(topic))
      for (const topic of fresh) found.add(topic)
      for (const topic of await cleared(connection, fresh, options.onProgress)) refused.add(topic)
      isComplete = fresh.length === 0
    }
    return { found: [...found].sort(), left: [...refused].sort(), isComplete }
  })
}

/** Reads filters one at a time until no new message arrives. Resolves to `false` if some may be missing. */
async function readInParts(read: Read, filters: readonly string[], seen: Messages): Promise<boolean> {
  let isComplete = false
  for (let reads = 0, before = -1; reads < MAX_READS && seen.size > before; reads += 1) {
    before = seen.size
    isComplete = true
    const parts = [...filters]
    for (const filter of parts) {
      const isPart = topicMatcher([filter])
      if ([...(await read([filter])).keys()].filter(isPart).length <= CERTAIN) continue
      const moreParts = partsOf(filter, [...seen.keys()].filter(isPart))
      isComplete &&= moreParts.length > 0
      parts.push(...moreParts)
    }
  }
  return isComplete
}

const PLATFORMS = ['device_automation', ...ENTITIES.map(({ platform }) => platform)]

/** Splits a filter with several wildcards: returns one filter for each known value of its first wildcard. */
function partsOf(filter: string, topics: readonly string[]): string[] {
  const levels = filter.split('/')
  const at = levels.indexOf('+')
  if (at === levels.lastIndexOf('+')) return []
  const known = topics.map((topic) => topic.split('/')[at] ?? '')
  const values = new Set(filter.endsWith('/+/hub2mqtt/+/config') ? [...known, ...PLATFORMS] : known)
  return [...values].map((value) => levels.with(at, value).join('/'))
}

/**
 * Returns the topics of the bridge and of a fleet's members. Includes a hub's topics only if the hub is configured, is
 * listed in `bridge/info`, or belongs to a fleet according to its own `info`.
 */
function ownTopics(messages: Messages, seen: Messages, { topics, hubs }: CleanupOptions): string[] {
  const known = new Set(hubs)
  const former = [...seen].flatMap(([topic, payload]) => {
    const own = topics.parse(topic)
    if (own?.name === 'hubInfo' && own.owner.kind === 'hub' && memberIn(payload) !== undefined) known.add(own.owner.hub)
    const found = own ?? topics.parseMember(topic)
    return found?.name === 'bridgeInfo' ? [new FormerHubs().learn(payload)] : []
  })
  const none = new Map<string, never>()
  const state = {
    topics,
    ...{ hubs: none, byId: none, states: none, pendingReads: none, fresh: none, rollouts: { held: none } },
    live: { value: { hubs: {} } },
    isShared: true,
    former: { has: (hub: string) => known.has(hub) || former.some((one) => one.has(hub)) },
    prefixes: { includes: () => true },
    homeAssistant: undefined,
  }
  return [...messages].flatMap(([topic, payload]) =>
    ownership(topic, payload, state).whose === 'foreign' ? [] : [topic],
  )
}

/** If a bridge is running, returns what the user must do before the cleanup. */
async function runningIn(messages: Messages, options: CleanupOptions): Promise<string | undefined> {
  const { topics } = options
  const members = [...messages].flatMap(([topic, state]) =>
    topics.parseMember(topic)?.name === 'bridgeState' ? [{ topic, state }] : [],
  )
  const online = members.find(({ state }) => state === 'online')
  if (online !== undefined) {
    return `according to ${online.topic}, this member of a fleet is running: stop it first; if it no longer exists, clear that topic`
  }
  if (messages.get(topics.availability) !== 'online') return undefined
  if (await isAnswered(options)) return `a bridge is running with the base topic ${topics.base}: stop it first`
  // The fleet may have stopped: members that stop at the same time may rely on each other to publish `offline`.
  if (members.length > 0) return undefined
  return `according to ${topics.availability}, a bridge is running, but none answers: stop it; if it no longer exists, clear that topic`
}

async function isAnswered({ broker, topics: { base }, clock }: CleanupOptions): Promise<boolean> {
  try {
    await call({ broker, base, topic: 'bridge/cmd/ping', payload: '', timeoutMs: PING_MS, clock })
    return true
  } catch (error) {
    if (error instanceof SessionError && ['no_subscribers', 'timeout'].includes(error.code)) return false
    throw error
  }
}

/** Clears topics. Resolves to those that the broker refused to clear. */
async function cleared(connection: Connection, topics: readonly string[], onProgress: CleanupOptions['onProgress']) {
  const refused: string[] = []
  const remaining = topics.values()
  let done = 0
  const work = async () => {
    for (const topic of remaining) {
      const { promise, resolve } = Promise.withResolvers<number>()
      connection.publish(topic, '', { qos: 1, retain: true }, resolve)
      if ((await promise) !== 0) refused.push(topic)
      done += 1
      onProgress?.(done, topics.length)
    }
  }
  await Promise.all(Array.from({ length: Math.min(WINDOW, connection.receiveMaximum) }, work))
  return refused
}

const WINDOW = 32
