/** Whether anybody listens where Home Assistant is told of devices. */
import type { Clock } from '../../base/clock.ts'
import { type Config, options } from '../../config/options.ts'
import { parseDiscoveryTopic } from '../../contract/discovery.ts'
import type { Connection } from '../../mqtt/connection.ts'
import type { Protocol } from '../../mqtt/types.ts'
import { about, type Finding } from './finding.ts'

const { note } = about('broker')

const ANSWER_MS = 2_000

const REMEDY =
  'if Home Assistant shows no devices: give discovery.prefix the one of its MQTT integration; without Home Assistant: discovery.format: off'

export class DiscoveryListeners {
  readonly #discovery: Config['discovery']
  #protocol: Protocol = '5'
  #isAsking = false
  #isNobody = false

  constructor(discovery: Config['discovery']) {
    this.#discovery = discovery
  }

  /** The broker says that no client gets a message (MQTT 5). */
  noSubscribers(): void {
    this.#isNobody ||= this.#isAsking
  }

  /**
   * Call it before anything is subscribed to. Home Assistant listens to sensors, and no bridge does. An empty message
   * removes a sensor, here one that does not exist.
   */
  async ask(connection: Connection, clock: Clock): Promise<void> {
    const { format, prefix } = this.#discovery
    if (format === 'off') return
    this.#protocol = connection.protocol
    if (this.#protocol === '5') {
      const { promise: answered, resolve } = Promise.withResolvers<void>()
      this.#isAsking = true
      connection.publish(`${prefix}/sensor/hub2mqtt--doctor/config`, '', { qos: 1 }, () => resolve())
      const cancel = clock.after(ANSWER_MS, resolve)
      await answered.finally(cancel)
      this.#isAsking = false
    } else {
      // The broker cannot say so: what others retain there has to show it.
      for (const filter of [`${prefix}/+/+/config`, `${prefix}/+/+/+/config`])
        await connection.subscribe(filter, { qos: 1 })
    }
  }

  /** `held`: what is retained, by topic. */
  findings(held: ReadonlyMap<string, string>): Finding[] {
    const { format, prefix, birth_topic } = this.#discovery
    if (format === 'off' || held.has(birth_topic)) return []
    if (this.#isNobody) return [note(`nobody listens to what Home Assistant is told below ${prefix}`, REMEDY)]
    // The default prefix is right more often than such a sign is there.
    if (this.#protocol === '5' || prefix === options['discovery.prefix'].default) return []
    const isOther = (topic: string) => topic.startsWith(`${prefix}/`) && parseDiscoveryTopic(topic) === undefined
    if (held.keys().some(isOther)) return []
    const text = `nothing shows that Home Assistant listens below ${prefix}: no birth message, no other device`
    return [note(text, REMEDY)]
  }
}
