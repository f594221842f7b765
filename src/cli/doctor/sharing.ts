/** Whether the addresses of a broker belong together: what is published at one of them has to arrive at the others. */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { membershipOf } from '../../cluster/membership.ts'
import { brokerAccess } from '../../config/broker-access.ts'
import type { Config } from '../../config/options.ts'
import { createTopics } from '../../contract/topics.ts'
import { shownUrl } from '../../mqtt/addresses.ts'
import { SessionError, withSession } from '../../mqtt/session.ts'
import { about, type Finding } from './finding.ts'

const { ok, problem } = about('broker')

const TIMEOUT_MS = 20_000
/** Between the nodes of a cluster it takes longer than within one. */
const ARRIVAL_MS = 5_000

/** One finding for each address but the first; none for one that cannot be asked, which is told elsewhere. */
export async function examineSharing(urls: readonly string[], config: Config, clock: Clock): Promise<Finding[]> {
  const [first = '', ...others] = urls
  const findings: Finding[] = []
  for (const other of others) {
    const [from, to] = [shownUrl(first), shownUrl(other)]
    const arrives = await passesOn(first, other, { config, clock })
    if (arrives === true) findings.push(ok(`what is published at ${from} arrives at ${to}`))
    if (arrives === false) {
      const remedy = 'list only addresses of one cluster, or of brokers that are bridged'
      findings.push(problem(`what is published at ${from} does not arrive at ${to}`, remedy))
    }
  }
  return findings
}

interface Examination {
  readonly config: Config
  readonly clock: Clock
}

/** `undefined` where that cannot be found out. */
async function passesOn(from: string, to: string, { config, clock }: Examination): Promise<boolean | undefined> {
  const { mqtt } = config
  // Nobody minds what is published there.
  const topic = createTopics(mqtt.base_topic, membershipOf(config)?.member).of('bridgeProbe', {})
  const mark = JSON.stringify({ doctor: randomBytes(8).toString('hex') })
  const { promise: arrived, resolve } = Promise.withResolvers<boolean>()
  const session = (url: string) => ({
    broker: brokerAccess(mqtt, [url]),
    clientId: `hub2mqtt-doctor-${randomBytes(8).toString('hex')}`,
    timeoutMs: TIMEOUT_MS,
    onPublish: ({ payload }: { payload: Buffer | string }) => payload.toString() === mark && resolve(true),
  })
  try {
    return await withSession(session(to), clock, async (reader) => {
      if (!(await reader.subscribe(topic, { qos: 1 }))) return undefined
      return await withSession({ ...session(from), onPublish: undefined }, clock, async (writer) => {
        writer.publish(topic, mark, { qos: 1 }, () => {})
        const cancel = clock.after(ARRIVAL_MS, () => resolve(false))
        return await arrived.finally(cancel)
      })
    })
  } catch (error) {
    if (error instanceof SessionError) return undefined
    throw error
  }
}
