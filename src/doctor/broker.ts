/** Examines the configured broker: the login, what the broker can do, and what its rules let this user do. */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { discoveryFilters } from '../bridge/home-assistant/discovery-topics.ts'
import { brokerAccess, brokerUrls } from '../config/broker-access.ts'
import type { Config } from '../config/options.ts'
import { createTopics, type Topics } from '../contract/topics.ts'
import { membershipOf } from '../fleet/membership.ts'
import { shownUrl } from '../mqtt/addresses.ts'
import type { Connection } from '../mqtt/connection.ts'
import { adviceOn } from '../mqtt/failure.ts'
import { SessionError, withSession } from '../mqtt/session.ts'
import { about, type Finding } from './finding.ts'
import { examineFleet } from './fleet.ts'
import { examineSharing } from './sharing.ts'

const { ok, note, problem } = about('broker')

const TIMEOUT_MS = 20_000
/** A message that the broker's rules let pass is back sooner. */
const ECHO_MS = 2_000

export interface BrokerExamination {
  readonly config: Config
  readonly clock: Clock
}

/** Each of its addresses, and whether they belong together. */
export async function examineBroker({ config, clock }: BrokerExamination): Promise<Finding[]> {
  const urls = brokerUrls(config.mqtt)
  if (urls.length === 0) return [note('embedded, on a port that is chosen when it starts')]
  const findings: Finding[] = []
  for (const url of urls) findings.push(...(await examineAddress(url, { config, clock })))
  return [...findings, ...(await examineSharing(urls, config, clock))]
}

async function examineAddress(url: string, { config, clock }: BrokerExamination): Promise<Finding[]> {
  const { mqtt } = config
  const membership = membershipOf(config)
  const topics = createTopics(mqtt.base_topic, membership?.member)
  const echoes = new Map<string, () => void>()
  const held = new Map<string, string>()
  const session = {
    broker: brokerAccess(mqtt, [url]),
    // Never the configured client id: the broker would end the bridge's connection.
    clientId: `hub2mqtt-doctor-${randomBytes(8).toString('hex')}`,
    timeoutMs: TIMEOUT_MS,
    onPublish: ({ topic, payload, retain }: { topic: string; payload: Buffer | string; retain: boolean }) => {
      if (retain) held.set(topic, payload.toString())
      else echoes.get(topic)?.()
    },
  }
  const at = shownUrl(url)
  try {
    return await withSession(session, clock, async (connection) => {
      const { protocol, lack } = connection
      const findings = [ok(`connected to ${at} with MQTT ${protocol}`)]
      if (lack !== undefined)
        findings.push(problem(`it lacks ${lack}`, 'use a broker that has them, such as Mosquitto'))
      findings.push(...(await examineRules(connection, { topics, config, echoes, clock })))
      if (membership !== undefined) return [...findings, ...examineFleet(held, topics, membership)]
      const state = held.get(topics.of('bridgeState', {}))
      if (state !== undefined) findings.push(ok(`a bridge with the base topic ${topics.base} is ${state}`))
      return findings
    })
  } catch (error) {
    if (!(error instanceof SessionError)) throw error
    const { failure } = error
    if (mqtt.url === null && failure?.code === 'unreachable') {
      return [note(`embedded: it runs while hub2mqtt runs, at ${at}`)]
    }
    if (failure === undefined) return [problem(`${at} does not answer in time`)]
    const { cause, remedy } = adviceOn(failure)
    return [problem(`no connection to ${at}: ${cause}`, remedy)]
  }
}

interface Rules {
  readonly topics: Topics
  readonly config: Config
  /** Topic → to be called when a message comes back on it. */
  readonly echoes: Map<string, () => void>
  readonly clock: Clock
}

/** What is subscribed to and published, one class of topics after the other, by messages that say nothing to anybody. */
async function examineRules(connection: Connection, { topics, config, echoes, clock }: Rules): Promise<Finding[]> {
  const { discovery } = config
  const refused: string[] = []
  const subscriptions = [
    ...topics.commandFilters,
    ...topics.retainedFilters,
    ...topics.transientFilters,
    ...(discovery.format === 'off' ? [] : [discovery.birth_topic, ...discoveryFilters(discovery.prefix)]),
  ]
  for (const filter of subscriptions) {
    if (!(await connection.subscribe(filter, { qos: 1 }))) refused.push(`read ${filter}`)
  }
  for (const topic of testTopics(topics, config)) {
    const { promise: back, resolve } = Promise.withResolvers<boolean>()
    echoes.set(topic, () => resolve(true))
    const cancel = clock.after(ECHO_MS, () => resolve(false))
    const readable = await connection.subscribe(topic, { qos: 1 })
    // Nothing is retained, so nothing stays.
    connection.publish(topic, '{}', { qos: 1 }, (reason) => reason !== 0 && resolve(false))
    if (!readable || !(await back)) refused.push(`publish ${topic}`)
    cancel()
  }
  if (refused.length === 0) return [ok('its rules permit everything that the bridge publishes and reads')]
  const remedy = 'let the bridge’s user read and write its topics, as config/mosquitto/acl shows'
  return refused.map((what) => problem(`its rules do not let this user ${what}`, remedy))
}

/** One topic of each kind that is published, in places that nobody uses. */
function testTopics(topics: Topics, { hubs, discovery }: Config): string[] {
  const [hub = 'home'] = Object.keys(hubs)
  const inDiscovery = discovery.format === 'off' ? [] : [`${discovery.prefix}/device/hub2mqtt--doctor/config`]
  return [
    topics.of('bridgeProbe', {}),
    `${topics.base}/${hub}/result/doctor`,
    `${topics.base}/${hub}/app/doctor/result/doctor`,
    ...inDiscovery,
  ]
}
