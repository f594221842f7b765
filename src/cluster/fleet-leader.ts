/**
 * Publishes `online` for a whole fleet, on a separate connection whose will is `offline`. Makes a bridge without a fleet
 * on the same base topic stand by, and clears the topics that only such a bridge publishes.
 */
import { Presence } from '../bridge/presence.ts'
import { createTopics } from '../contract/topics.ts'
import { CLOSED_BY_US, type Connection } from '../mqtt/connection.ts'
import { ConnectionLoop, type ConnectionLoopOptions } from '../mqtt/connection-loop.ts'
import { Journal } from '../mqtt/journal.ts'

const END_MS = 1_000
/** Minimum time before `online` is published again. */
const REPEAT_MS = 1_000

const RETAINED = { qos: 1, retain: true } as const
/** Earlier than the start of any bridge, because the bridge that started first is active. */
const STARTED_AT = new Date(0).toISOString()
/** All leaders of a fleet have this name, so that they do not count each other as other bridges. */
const INSTANCE = 'fleet'

type LoopOptions = Pick<ConnectionLoopOptions, 'link' | 'clock' | 'log' | 'random'>

/** @param options `link`: the options of a link with the state topic of the whole fleet; `base`: the base topic */
export function fleetLeader({ base, ...options }: LoopOptions & { readonly base: string }) {
  const { link, clock, log } = options
  const topics = createTopics(base)
  const rows = ['bridgeInfo', 'bridgeHealth', 'bridgeLogLevel', 'bridgeDiscovery'] as const
  const obsolete = new Set(rows.map((row) => topics.of(row, {})))
  const presenceTopic = topics.of('bridgePresence', {})
  let running: { readonly loop: ConnectionLoop; readonly presence: Presence } | undefined

  function start(): void {
    if (running !== undefined) return
    let publishedAt = Number.NEGATIVE_INFINITY
    const publish = (connection: Connection) => {
      publishedAt = clock.elapsed()
      connection.publish(link.stateTopic, 'online', RETAINED, () => {})
    }
    const presence = new Presence({
      ...{ topic: presenceTopic, startedAt: STARTED_AT, instance: INSTANCE, hubs: new Map(), clock, log },
      link: { send: (topic, text) => running?.loop.connection?.publish(topic, text, { qos: 1 }, () => {}) },
      onChange: () => {},
      onOtherActive: () => {},
      upkeep: { former: { add: () => {} } },
    })
    const loop = new ConnectionLoop({
      ...options,
      journal: new Journal(clock, log),
      onAccepted: async (connection) => {
        await connection.subscribe(link.stateTopic, { qos: 1 })
        publish(connection)
        loop.ready(connection.protocol)
        for (const topic of [presenceTopic, ...obsolete]) await connection.subscribe(topic, { qos: 1 })
        presence.connected(false)
      },
      onPublish: ({ topic, payload, retain }) => {
        const { connection } = loop
        if (topic === presenceTopic) presence.receive({ payload: Buffer.from(payload), retain })
        else if (obsolete.has(topic) && retain) connection?.publish(topic, '', RETAINED, () => {})
        if (topic !== link.stateTopic || payload.toString() === 'online' || connection === undefined) return
        // The broker may publish the `offline` will of a previous leader late, so publish `online` again.
        clock.after(Math.max(0, publishedAt + REPEAT_MS - clock.elapsed()), () => {
          if (loop.connection === connection && !loop.stopped) publish(connection)
        })
      },
    })
    running = { loop, presence }
    void loop.run()
  }

  /**
   * Stops publishing. With `handover`, another member publishes the state next. With `lost`, it is unknown whether
   * another member leads, so the broker publishes the will, and the next leader corrects the state.
   */
  async function stop(how: 'handover' | 'lost'): Promise<void> {
    const { loop, presence } = running ?? {}
    running = undefined
    // The next leader has the same name, so send no goodbye.
    presence?.stop()
    loop?.stop()
    const connection = loop?.connection
    if (connection?.isAccepted && how === 'handover') {
      const cancel = clock.after(END_MS, () => connection.drop(CLOSED_BY_US))
      await connection.end()
      cancel()
    } else connection?.drop(CLOSED_BY_US)
  }

  return { start, stop }
}
