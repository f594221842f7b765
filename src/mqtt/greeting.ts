/** What is asked of a broker at the start of each connection: the commands, what it holds, and whether we may. */
import type { IClientSubscribeOptions, IPublishPacket } from 'mqtt'
import type { Clock } from '../base/clock.ts'
import type { Connection } from './connection.ts'
import type { Journal } from './journal.ts'
import { ReadBack, type ReadBackResult, repeatMs } from './readback.ts'
import type { LinkOptions } from './types.ts'

export interface GreetingContext {
  readonly options: LinkOptions
  readonly clock: Clock
  readonly journal: Journal
  /** Whether the self-test failed on the connection before: then it is not worth the whole wait again. */
  readonly deniedBefore: boolean
  readonly onFound: (topic: string, text: string) => void
}

export interface GreetingResult extends ReadBackResult {
  readonly deniedFilters: readonly string[]
}

// Stored commands are wanted, to be refused and cleared; our own clearing is not, hence no local ones.
const command: IClientSubscribeOptions = { qos: 1, nl: true, rap: true, rh: 0 }

export class Greeting {
  readonly #connection: Connection
  readonly #context: GreetingContext
  readonly #readBack: ReadBack

  constructor(connection: Connection, context: GreetingContext) {
    const { options, clock, deniedBefore, onFound } = context
    const { heldFilters, watchedFilters = [], furtherFilters = () => [], probeTopic, stateTopic } = options
    const { probeTimeoutMs = 10_000 } = options
    this.#connection = connection
    this.#context = context
    this.#readBack = new ReadBack(connection, {
      heldFilters,
      watchedFilters,
      furtherFilters,
      probeTopic,
      clock,
      timeoutMs: deniedBefore ? probeTimeoutMs / 5 : probeTimeoutMs,
      subscribe: (filter, qos) => this.#subscribe(filter, { qos }, repeatMs),
      onFound: (topic, text) => {
        if (topic !== stateTopic) onFound(topic, text)
      },
    })
  }

  /** A message that is no command. */
  received(packet: IPublishPacket): void {
    this.#readBack.received(packet)
  }

  /** Stays pending when the connection goes down meanwhile. */
  async run(): Promise<GreetingResult> {
    const { subscriptions } = this.#context.options
    // One SUBSCRIBE each: brokers differ on what becomes of the others when one is denied.
    const granted = await Promise.all(subscriptions.map((filter) => this.#subscribe(filter, command)))
    const deniedFilters = subscriptions.filter((_, i) => !granted[i])
    const found = await this.#readBack.run()
    if (!this.#connection.isDown) this.#tell(deniedFilters, found.probe)
    return { ...found, deniedFilters }
  }

  /** Drops the connection when no SUBACK comes; with `againMs`, asks that often until then. */
  async #subscribe(filter: string, options: IClientSubscribeOptions, againMs?: number): Promise<boolean> {
    const { clock, options: link } = this.#context
    const ms = link.ackTimeoutMs ?? 30_000
    const deadline = clock.elapsed() + ms
    const { promise: granted, resolve } = Promise.withResolvers<boolean>()
    let cancel = () => {}
    const ask = () => {
      const left = deadline - clock.elapsed()
      if (left <= 0) return this.#connection.drop({ code: 'timeout', detail: `no SUBACK within ${ms} ms` })
      void this.#connection.subscribe(filter, options).then(resolve)
      cancel = clock.after(Math.min(left, againMs ?? left), ask)
    }
    ask()
    void this.#connection.down.then(() => cancel())
    const answer = await granted
    cancel()
    return answer
  }

  #tell(deniedFilters: readonly string[], probe: ReadBackResult['probe']): void {
    const { journal, options } = this.#context
    for (const filter of options.subscriptions) {
      const key = `filter ${filter}`
      if (!deniedFilters.includes(filter)) journal.forget(key)
      else journal.warnOnce(key, `the MQTT broker denies the subscription to ${filter}: no commands from there`)
    }
    if (probe === 'ok') journal.forget('probe')
    else {
      journal.warnOnce(
        'probe',
        `what is published to ${options.probeTopic} does not come back: the MQTT broker's access rules keep this user from writing or reading there; allow it both for everything under the base topic`,
      )
    }
  }
}
