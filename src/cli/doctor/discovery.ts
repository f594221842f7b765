/** Whether anything listens where Home Assistant looks for devices. */
import type { Clock } from '../../base/clock.ts'
import { type Config, options } from '../../config/options.ts'
import { parseDiscoveryTopic } from '../../contract/discovery.ts'
import type { Connection } from '../../mqtt/connection.ts'
import { about, type Finding } from './finding.ts'

const { note } = about('broker')

const ANSWER_MS = 2_000

const REMEDY =
  'if Home Assistant shows no devices: give discovery.prefix the one of its MQTT integration; without Home Assistant: discovery.format: off'

/**
 * Call it before anything is subscribed to. Home Assistant listens to sensors, and no bridge does. An empty message
 * removes a sensor, here one that does not exist; under MQTT 5 the broker says whether a client gets it.
 */
export async function askForListeners(connection: Connection, { format, prefix }: Config['discovery'], clock: Clock) {
  if (format === 'off') return
  if (connection.protocol === '5') {
    const { promise: answered, resolve } = Promise.withResolvers<void>()
    connection.publish(`${prefix}/sensor/hub2mqtt--doctor/config`, '', { qos: 1 }, () => resolve())
    const cancel = clock.after(ANSWER_MS, resolve)
    return await answered.finally(cancel)
  }
  // The broker cannot say so: what others retain there has to show it.
  for (const filter of [`${prefix}/+/+/config`, `${prefix}/+/+/+/config`])
    await connection.subscribe(filter, { qos: 1 })
}

/**
 * @param held - What is retained, by topic.
 * @param isHeard - Whether the broker had a client for the message; `undefined`: it cannot say so.
 */
export function examineListeners(
  held: ReadonlyMap<string, string>,
  { format, prefix, birth_topic }: Config['discovery'],
  isHeard: boolean | undefined,
): Finding[] {
  if (format === 'off' || held.has(birth_topic) || isHeard) return []
  if (isHeard === false) return [note(`nobody listens to what Home Assistant is told below ${prefix}`, REMEDY)]
  // The default prefix is right more often than such a sign is there.
  if (prefix === options['discovery.prefix'].default) return []
  const isOther = (topic: string) => topic.startsWith(`${prefix}/`) && parseDiscoveryTopic(topic) === undefined
  if (held.keys().some(isOther)) return []
  const text = `nothing shows that Home Assistant listens below ${prefix}: no birth message, no other device`
  return [note(text, REMEDY)]
}
