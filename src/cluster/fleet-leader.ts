/** Says `online` for a whole fleet, on a connection of its own whose will says `offline`. */
import { CLOSED_BY_US, type Connection } from '../mqtt/connection.ts'
import { ConnectionLoop, type ConnectionLoopOptions } from '../mqtt/connection-loop.ts'
import { Journal } from '../mqtt/journal.ts'

/** How long the broker may take at the end. */
const END_MS = 1_000
/** A word against it is answered so often at most. */
const REPEAT_MS = 1_000

const RETAINED = { qos: 1, retain: true } as const

export class FleetLeader {
  readonly #options: Pick<ConnectionLoopOptions, 'link' | 'clock' | 'log' | 'random'>
  #loop: ConnectionLoop | undefined

  /** Its state topic is the one that all readers of the fleet look at. */
  constructor(options: Pick<ConnectionLoopOptions, 'link' | 'clock' | 'log' | 'random'>) {
    this.#options = options
  }

  start(): void {
    if (this.#loop !== undefined) return
    const { link, clock, log, random } = this.#options
    let saidAt = Number.NEGATIVE_INFINITY
    const say = (connection: Connection) => {
      saidAt = clock.elapsed()
      connection.publish(link.stateTopic, 'online', RETAINED, () => {})
    }
    const loop = new ConnectionLoop({
      link,
      clock,
      log,
      journal: new Journal(clock, log),
      random,
      onAccepted: async (connection) => {
        await connection.subscribe(link.stateTopic, { qos: 1 })
        say(connection)
        loop.ready(connection.protocol)
      },
      onPublish: ({ payload }) => {
        const { connection } = loop
        if (payload.toString() === 'online' || connection === undefined) return
        // A former speaker's will may come late.
        clock.after(Math.max(0, saidAt + REPEAT_MS - clock.elapsed()), () => {
          if (loop.connection === connection && !loop.stopped) say(connection)
        })
      },
    })
    this.#loop = loop
    void loop.run()
  }

  /**
   * Ends. `handover`: what comes next is others' to say; `lost`: it is not known whether anybody speaks, so the broker
   * publishes the will, which whoever speaks contradicts.
   */
  async stop(how: 'handover' | 'lost'): Promise<void> {
    const loop = this.#loop
    if (loop === undefined) return
    this.#loop = undefined
    loop.stop()
    const { connection } = loop
    if (connection?.isAccepted && how === 'handover') {
      const cancel = this.#options.clock.after(END_MS, () => connection.drop(CLOSED_BY_US))
      await connection.end()
      cancel()
    } else connection?.drop(CLOSED_BY_US)
  }
}
