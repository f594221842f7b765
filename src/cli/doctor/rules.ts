/**
 * Tests the broker's access rules with messages that are not retained. If a bridge is running, it receives the test
 * messages, but rejects the commands among them, because their names are unknown.
 */
import type { Clock } from '../../base/clock.ts'
import type { Config } from '../../config/options.ts'
import { discoveryFilters } from '../../contract/discovery.ts'
import type { Topics } from '../../contract/topics.ts'
import type { Connection } from '../../mqtt/connection.ts'
import { SessionError, type SessionOptions, withSession } from '../../mqtt/session.ts'
import { about, type Finding } from './finding.ts'

const { ok, problem } = about('broker')

/** Time within which a permitted message arrives. */
const ECHO_MS = 2_000
/** Size of the test message. It exceeds an app's discovery message, the longest that the bridge cannot shorten. */
const LONG_KIB = 16
/** Number of bytes to allow for the header of the packet and the topic. */
const OVERHEAD = 512

interface Echoing {
  /** The functions to call when a message arrives, by topic. */
  readonly echoes: Map<string, () => void>
  readonly clock: Clock
}

/** Subscribes to all topics of the bridge, and sends messages on one topic of each kind. */
export async function examineRules(connection: Connection, topics: Topics, config: Config, echoing: Echoing) {
  const { discovery } = config
  const [hub = 'home'] = Object.keys(config.hubs)
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
  const answers = [`${topics.base}/${hub}/result/doctor`, `${topics.base}/${hub}/app/doctor/result/doctor`]
  const messages = [topics.of('bridgeProbe', {}), ...answers].map((topic) => [topic, '{}'] as const)
  // Send an empty message, which Home Assistant ignores because no such device exists. Other texts would be invalid.
  const removal = [`${discovery.prefix}/device/hub2mqtt--doctor/config`, ''] as const
  for (const [topic, payload] of discovery.format === 'off' ? messages : [...messages, removal]) {
    const lacking = await sendToItself(connection, topic, payload, echoing)
    if (lacking !== undefined) refused.push(`${lacking} ${topic}`)
  }
  // A bridge publishes no commands, so its rules may forbid that. If they do, reading commands cannot be tested.
  const commands = await Promise.all(
    [`${topics.base}/${hub}/cmd/doctor`, topics.appCommand(hub, 'doctor', 'doctor')].map(async (topic) => ({
      topic,
      lacking: await sendToItself(connection, topic, '', echoing),
    })),
  )
  refused.push(...commands.filter(({ lacking }) => lacking === 'read').map(({ topic }) => `read ${topic}`))
  if (refused.length === 0) {
    const untested = '; commands could not be tested, as this user may not publish them'
    const isTested = commands.every(({ lacking }) => lacking === undefined)
    return [ok(`its rules permit ${isTested ? 'commands, ' : ''}answers and discovery${isTested ? '' : untested}`)]
  }
  const remedy = 'let the bridge’s user read and write its topics, as config/mosquitto/acl shows'
  return refused.map((what) => problem(`its rules do not let this user ${what}`, remedy))
}

/** Sends a message through the broker to this client. If it does not arrive, resolves to the forbidden action. */
async function sendToItself(connection: Connection, topic: string, payload: string, { echoes, clock }: Echoing) {
  if (!(await connection.subscribe(topic, { qos: 1 }))) return 'read'
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  echoes.set(topic, () => resolve(undefined))
  // With MQTT 3.1.1, the broker does not report a refused publish, so either publishing or reading may be forbidden.
  const cancel = clock.after(ECHO_MS, () => resolve(connection.protocol === '5' ? 'read' : 'publish or read'))
  connection.publish(topic, payload, { qos: 1 }, (reason) => reason !== 0 && resolve('publish'))
  return await promise.finally(cancel)
}

/**
 * Tests whether the broker accepts long messages. Returns no findings if it does, or if its rules prevent the test.
 * Uses a separate connection, because the broker may close the connection when a message is too long.
 */
export async function examineSize(session: SessionOptions, topic: string, echoing: Echoing): Promise<Finding[]> {
  const long = LONG_KIB * 1024
  let isTried = false
  const isAccepted = withSession(session, echoing.clock, async (connection) => {
    if ((await sendToItself(connection, topic, '{}', echoing)) !== undefined) return true
    isTried = true
    if (connection.maximumPacketSize < long + OVERHEAD) return false
    return (await sendToItself(connection, topic, JSON.stringify(' '.repeat(long)), echoing)) === undefined
  }).catch((error: unknown) => {
    if (error instanceof SessionError) return !isTried
    throw error
  })
  if (await isAccepted) return []
  const remedy = 'raise its limit (Mosquitto: message_size_limit, max_packet_size; embedded: mqtt.embedded.max_payload)'
  return [problem(`the broker refuses a message of ${LONG_KIB} KiB: longer states and answers will be missing`, remedy)]
}
