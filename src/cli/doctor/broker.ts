/** Examines the configured broker: the login, what the broker can do, what its rules permit, and who else uses it. */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { membershipOf } from '../../cluster/membership.ts'
import { brokerAccess, brokerUrls } from '../../config/broker-access.ts'
import type { Config } from '../../config/options.ts'
import { createTopics } from '../../contract/topics.ts'
import { shownUrl } from '../../mqtt/addresses.ts'
import { adviceOn, type Failure } from '../../mqtt/failure.ts'
import { SessionError, withSession } from '../../mqtt/session.ts'
import { DiscoveryListeners } from './discovery.ts'
import { about, type Finding } from './finding.ts'
import { examineFleet } from './fleet.ts'
import { examineOther } from './other.ts'
import { examineRules, examineSize } from './rules.ts'
import { examineSharing } from './sharing.ts'
import { spokenAt } from './spoken.ts'

const { ok, note, problem } = about('broker')

const TIMEOUT_MS = 20_000

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
  const { mqtt, discovery } = config
  const membership = membershipOf(config)
  const topics = createTopics(mqtt.base_topic, membership?.member)
  const echoes = new Map<string, () => void>()
  const held = new Map<string, string>()
  const listeners = new DiscoveryListeners(discovery)
  const session = () => ({
    broker: brokerAccess(mqtt, [url]),
    // Never the configured client id: the broker would end the bridge's connection.
    clientId: `hub2mqtt-doctor-${randomBytes(8).toString('hex')}`,
    timeoutMs: TIMEOUT_MS,
    onPublish: ({ topic, payload, retain }: { topic: string; payload: Buffer | string; retain: boolean }) => {
      if (retain) held.set(topic, payload.toString())
      else echoes.get(topic)?.()
    },
    onNoSubscribers: () => listeners.noSubscribers(),
  })
  const at = shownUrl(url)
  try {
    const findings = await withSession(session(), clock, async (connection) => {
      const { protocol, lack } = connection
      const found = [ok(`connected to ${at} with MQTT ${protocol}`)]
      if (lack !== undefined) found.push(problem(`it lacks ${lack}`, 'use a broker that has them, such as Mosquitto'))
      await listeners.ask(connection, clock)
      found.push(...(await examineRules({ connection, topics, config, echoes, clock })), ...listeners.findings(held))
      return [...found, ...(membership ? examineFleet(held, topics, membership) : examineOther(held, topics, config))]
    })
    const topic = topics.of('bridgeProbe', {})
    return [...findings, ...(await examineSize({ session: session(), topic, echoes, clock }))]
  } catch (error) {
    if (!(error instanceof SessionError)) throw error
    const { failure } = error
    if (mqtt.url === null && failure?.code === 'unreachable') {
      return [note(`embedded: it runs while hub2mqtt runs, at ${at}`)]
    }
    return [failure === undefined ? problem(`${at} does not answer in time`) : await explain(url, failure)]
  }
}

const NOTHING_THERE: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'])

/** By what is spoken at an address, and its scheme: what that lacks, and the scheme that fits. */
const SCHEMES: Readonly<Record<string, readonly [string, string]>> = {
  'TLS mqtt:': ['speaks TLS', 'mqtts:'],
  'TLS ws:': ['speaks TLS', 'wss:'],
  'MQTT mqtts:': ['speaks MQTT without TLS', 'mqtt:'],
  'MQTT wss:': ['speaks MQTT without TLS and WebSocket', 'mqtt:'],
  'MQTT ws:': ['speaks MQTT without WebSocket', 'mqtt:'],
}

async function explain(url: string, failure: Failure): Promise<Finding> {
  const { protocol } = new URL(url)
  const at = shownUrl(url)
  const spoken = NOTHING_THERE.has(failure.cause ?? '') ? undefined : await spokenAt(url)
  const other = SCHEMES[`${spoken} ${protocol}`]
  if (other !== undefined) {
    const [what, scheme] = other
    const safe = protocol === 'mqtts:' || protocol === 'wss:' ? ', or the broker’s port for TLS, mostly 8883' : ''
    return problem(`no connection to ${at}: what answers there ${what}`, `use ${at.replace(protocol, scheme)}${safe}`)
  }
  const { cause, remedy } = adviceOn(failure)
  return problem(`no connection to ${at}: ${cause}`, remedy, failure.names)
}
