/** Publishes `online` for a whole fleet, on a separate connection whose will is `offline`. */
import { CLOSED_BY_US, type Connection } from '../mqtt/connection.ts'
import { ConnectionLoop, type ConnectionLoopOptions } from '../mqtt/connection-loop.ts'
import { Journal } from '../mqtt/journal.ts'

const END_MS = 1_000
/** Minimum time before `online` is published again. */
const REPEAT_MS = 1_000

const RETAINED = { qos: 1, retain: true } as const

/** @param options the options of a link with the state topic of the whole fleet */
export function fleetLeader(options: Pick<ConnectionLoopOptions, 'link' | 'clock' | 'log' | 'random'>) {
  const { link, clock, log } = options
  let running: ConnectionLoop | undefined

  function start(): void {
    if (running !== undefined) return
    let publishedAt = Number.NEGATIVE_INFINITY
    const publish = (connection: Connection) => {
      publishedAt = clock.elapsed()
      connection.publish(link.stateTopic, 'online', RETAINED, () => {})
    }
    const loop = new ConnectionLoop({
      ...options,
      journal: new Journal(clock, log),
      onAccepted: async (connection) => {
        await connection.subscribe(link.stateTopic, { qos: 1 })
        publish(connection)
        loop.ready(connection.protocol)
      },
      onPublish: ({ payload }) => {
        const { connection } = loop
        if (payload.toString() === 'online' || connection === undefined) return
        // The broker may publish the `offline` will of a former leader late, so publish `online` again.
        clock.after(Math.max(0, publishedAt + REPEAT_MS - clock.elapsed()), () => {
          if (loop.connection === connection && !loop.stopped) publish(connection)
        })
      },
    })
    running = loop
    void loop.run()
  }

  /**
   * Stops publishing. With `handover`, another member publishes the state next. With `lost`, it is unknown whether
   * another member leads, so the broker publishes the will, and the next leader corrects the state.
   */
  async function stop(how: 'handover' | 'lost'): Promise<void> {
    const loop = running
    running = undefined
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
