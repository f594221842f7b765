import { randomBytes } from 'node:crypto'
import type { IPublishPacket } from 'mqtt'
import { type Clock, within } from '../../base/clock.ts'
import { membershipOf } from '../../cluster/fleet.ts'
import { brokerAccess, brokerUrls } from '../../config/broker.ts'
import { readFailure } from '../../config/file.ts'
import type { Config } from '../../config/options.ts'
import { createTopics } from '../../contract/topics.ts'
import { shownUrl } from '../../mqtt/addresses.ts'
import { adviceOn, type Failure } from '../../mqtt/failure.ts'
import { SessionError, withSession } from '../../mqtt/session.ts'
import { about, type Finding } from './finding.ts'
import { checkForListeners, examineFleet, examineListeners, examineOther } from './retained.ts'
import { examineRules, examineSize } from './rules.ts'
import { protocolAt } from './spoken.ts'

const { ok, note, problem } = about('broker')

const TIMEOUT_MS = 20_000
/** Time limit for a message to arrive. Messages take longer between the nodes of a cluster than within one node. */
const ARRIVAL_MS = 5_000

export async function examineBroker(config: Config, clock: Clock): Promise<Finding[]> {
  const urls = brokerUrls(config.mqtt)
  if (urls.length === 0) return [note('embedded; it chooses its port when it starts')]
  try {
    brokerAccess(config.mqtt, urls)
  } catch (error) {
    // The files could be read when the configuration was loaded. A running bridge keeps what it has read.
    const files = 'a file of mqtt.ca_file, mqtt.cert_file or mqtt.key_file'
    return [problem(`${files} can no longer be read: ${readFailure(error)}`, 'restore the file or its permissions')]
  }
  const findings: Finding[] = []
  for (const url of urls) findings.push(...(await examineAddress(url, config, clock)))
  return [...findings, ...(await examineSharing(urls, config, clock))]
}

type Message = Pick<IPublishPacket, 'topic' | 'payload' | 'retain'>

const sessionAt = (url: string, { mqtt }: Config) => ({
  broker: brokerAccess(mqtt, [url]),
  // Do not use the configured client id: the broker would close the bridge's connection.
  clientId: `hub2mqtt-doctor-${randomBytes(8).toString('hex')}`,
  timeoutMs: TIMEOUT_MS,
})

async function examineAddress(url: string, config: Config, clock: Clock): Promise<Finding[]> {
  const { mqtt, discovery } = config
  const membership = membershipOf(config)
  const topics = createTopics(mqtt.base_topic, membership?.member)
  const echoes = new Map<string, () => void>()
  const messages = new Map<string, string>()
  let isReceived = true
  const session = () => ({
    ...sessionAt(url, config),
    onPublish: ({ topic, payload, retain }: Message) => {
      if (retain) messages.set(topic, payload.toString())
      else echoes.get(topic)?.()
    },
    onNoSubscribers: () => {
      isReceived = false
    },
  })
  const at = shownUrl(url)
  try {
    const findings = await withSession(session(), clock, async (connection) => {
      const { protocol, lack } = connection
      const found = [ok(`connected to ${at} with MQTT ${protocol}`)]
      if (lack !== undefined) found.push(problem(`the broker lacks ${lack}`, 'use another broker, such as Mosquitto'))
      await checkForListeners(connection, discovery, clock)
      const hasListeners = protocol === '5' ? isReceived : undefined
      // Ignore denied subscriptions: a bridge works even if it is not allowed to read the topics of other members.
      for (const filter of topics.memberFilters) await connection.subscribe(filter, { qos: 1 })
      found.push(...(await examineRules(connection, topics, config, { echoes, clock })))
      found.push(...examineListeners(messages, discovery, hasListeners))
      if (mqtt.url === null && messages.get(topics.of('bridgeState', {})) !== 'online') {
        const remedy = `to use that broker, set mqtt.url: ${at}; otherwise choose another mqtt.embedded.port`
        found.push(problem(`the embedded broker cannot start: another broker listens at ${at}`, remedy))
      }
      return [
        ...found,
        ...(membership
          ? examineFleet(messages, topics, membership, config.hubs)
          : examineOther(messages, topics, config)),
      ]
    })
    const topic = topics.of('bridgeProbe', {})
    return [...findings, ...(await examineSize(session(), topic, { echoes, clock }))]
  } catch (error) {
    if (!(error instanceof SessionError)) throw error
    const { failure } = error
    if (mqtt.url === null && failure?.code === 'unreachable') {
      return [note(`embedded: runs at ${at} while hub2mqtt runs`)]
    }
    return [failure === undefined ? problem(`${at} did not answer in time`) : await explain(url, failure)]
  }
}

/** Checks that a message to the first address arrives at the other addresses. Skips addresses that do not answer. */
async function examineSharing(urls: readonly string[], config: Config, clock: Clock): Promise<Finding[]> {
  const [first = '', ...others] = urls
  const findings: Finding[] = []
  for (const other of others) {
    const [from, to] = [shownUrl(first), shownUrl(other)]
    const arrives = await passesOn(first, other, config, clock)
    if (arrives === true) findings.push(ok(`messages published at ${from} arrive at ${to}`))
    if (arrives === false) {
      const remedy = 'list only addresses of one cluster or of bridged brokers'
      findings.push(problem(`messages published at ${from} do not arrive at ${to}`, remedy))
    }
  }
  return findings
}

/** Tests whether a message sent to one address arrives at another. Resolves to `undefined` if that remains unknown. */
async function passesOn(from: string, to: string, config: Config, clock: Clock): Promise<boolean | undefined> {
  // Use the probe topic, because a running bridge ignores probe messages that it has not sent.
  const topic = createTopics(config.mqtt.base_topic, membershipOf(config)?.member).of('bridgeProbe', {})
  const mark = JSON.stringify({ doctor: randomBytes(8).toString('hex') })
  const { promise: arrived, resolve } = Promise.withResolvers<boolean>()
  const onPublish = ({ payload }: Message) => payload.toString() === mark && resolve(true)
  try {
    return await withSession({ ...sessionAt(to, config), onPublish }, clock, async (reader) => {
      if (!(await reader.subscribe(topic, { qos: 1 }))) return undefined
      return await withSession(sessionAt(from, config), clock, async (writer) => {
        writer.publish(topic, mark, { qos: 1 }, () => {})
        return (await within(clock, ARRIVAL_MS, arrived)) ?? false
      })
    })
  } catch (error) {
    if (error instanceof SessionError) return undefined
    throw error
  }
}

const NOTHING_THERE: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'])

/** Detected protocol and configured scheme → the finding and the right scheme. */
const SCHEMES: Readonly<Record<string, readonly [string, string]>> = {
  'TLS mqtt:': ['speaks TLS', 'mqtts:'],
  'TLS ws:': ['speaks TLS', 'wss:'],
  'MQTT mqtts:': ['speaks MQTT without TLS', 'mqtt:'],
  'MQTT wss:': ['speaks MQTT without TLS and WebSocket', 'mqtt:'],
  'HTTP wss:': ['speaks HTTP without TLS', 'ws:'],
  'MQTT ws:': ['speaks MQTT without WebSocket', 'mqtt:'],
}

async function explain(url: string, failure: Failure): Promise<Finding> {
  const { protocol } = new URL(url)
  const at = shownUrl(url)
  const detected = NOTHING_THERE.has(failure.cause ?? '') ? undefined : await protocolAt(url)
  const other = SCHEMES[`${detected} ${protocol}`]
  if (other !== undefined) {
    const [what, scheme] = other
    const safe = protocol === 'mqtts:' || protocol === 'wss:' ? ', or the broker’s port for TLS, usually 8883' : ''
    return problem(`no connection to ${at}: the port ${what}`, `use ${at.replace(protocol, scheme)}${safe}`)
  }
  const { cause, remedy } = adviceOn(failure)
  return problem(`no connection to ${at}: ${cause}`, remedy, failure.names)
}
