/**
 * Runs at the start of each connection: subscribes to the commands, reads back what the broker holds, and checks
 * access. Parts of this can be repeated later.
 */
import type { IClientSubscribeOptions } from 'mqtt'
import { Backoff } from '../base/backoff.ts'
import { type Clock, sleep } from '../base/clock.ts'
import type { Connection } from './connection.ts'
import type { ConnectionLoopOptions } from './connection-loop.ts'
import type { Journal } from './journal.ts'
import { ReadBack, type ReadBackOptions, type ReadBackResult, retryUntilAnswered } from './readback.ts'
import { ACK_TIMEOUT_MS } from './sender.ts'
import type { LinkOptions } from './types.ts'

interface SessionSetupOptions extends Pick<ReadBackOptions, 'onFound' | 'onLive' | 'additionalFilters'> {
  readonly link: LinkOptions
  readonly clock: Clock
  readonly journal: Journal
  /** Whether the self-test failed on the previous connection. If so, it gets a fifth of the time. */
  readonly deniedBefore: boolean
}

// Receives retained commands (`rh: 0`), to refuse and clear them. Excludes own publishes (`nl`), which only clear.
const COMMAND: IClientSubscribeOptions = { qos: 1, nl: true, rap: true, rh: 0 }
// Receives own markers; `rap` distinguishes them from messages that others retain there. Stays subscribed.
const PROBE: IClientSubscribeOptions = { qos: 1, rap: true }
// Receives only new publishes (`rh: 2`) of other clients (`nl`), with their retain flags (`rap`).
const WATCH: IClientSubscribeOptions = { qos: 1, nl: true, rap: true, rh: 2 }

export class SessionSetup {
  readonly #connection: Connection
  readonly #options: SessionSetupOptions
  /** Gets each message that is not a command. */
  readonly readBack: ReadBack
  /** Transient filters that nothing else reads: nothing may be retained on their topics. */
  readonly #transient: readonly string[]

  constructor(connection: Connection, options: SessionSetupOptions) {
    const { heldFilters, watchedFilters = [], transientFilters = [], subscriptions, probeTopic } = options.link
    const { probeTimeoutMs = 30_000 } = options.link
    this.#connection = connection
    this.#options = options
    this.#transient = transientFilters.filter((one) => one !== probeTopic && !subscriptions.includes(one))
    this.readBack = new ReadBack(connection, {
      ...options,
      heldFilters: [...heldFilters, ...this.#transient],
      lastingFilters: connection.protocol === '5' ? [] : watchedFilters,
      probeTopic,
      timeoutMs: options.deniedBefore ? probeTimeoutMs / 5 : probeTimeoutMs,
      subscribe: (filter, qos) =>
        this.#subscribe(filter, filter === probeTopic ? PROBE : { qos, rap: this.#transient.includes(filter) }, true),
    })
  }

  /** Stays pending if the connection ends first. */
  async run() {
    const { subscriptions } = this.#options.link
    // One SUBSCRIBE for each: if one of several filters is denied, brokers differ in how they treat the rest.
    const granted = await Promise.all(subscriptions.map((filter) => this.#subscribe(filter, COMMAND, false)))
    const deniedFilters = subscriptions.filter((_, i) => !granted[i])
    const found = await this.readBack.run()
    if (!this.#connection.isDown) {
      this.#watch()
      this.#report(deniedFilters, found.probe)
    }
    return { ...found, deniedFilters }
  }

  /**
   * Subscribes to the watched filters again, after the read-back has unsubscribed from them: Mosquitto 2.0 does not
   * change the options of an existing subscription. The read-back subscribes without `nl`, because with it a broker may
   * withhold retained messages of this client. The broker handles the SUBSCRIBE before any later publish.
   */
  #watch(): void {
    if (this.#connection.protocol !== '5') return
    const { watchedFilters = [] } = this.#options.link
    for (const filter of [...watchedFilters, ...this.#transient]) void this.#connection.subscribe(filter, WATCH)
  }

  /**
   * Drops the connection if no SUBACK arrives in time, and stays pending. Mosquitto always drops the SUBACK if a filter
   * has more retained messages than it queues: then the received messages prove the grant.
   */
  async #subscribe(filter: string, options: IClientSubscribeOptions, repeats: boolean): Promise<boolean> {
    const { clock, link } = this.#options
    const ms = link.ackTimeoutMs ?? ACK_TIMEOUT_MS
    const began = clock.elapsed()
    const { promise: granted, resolve } = Promise.withResolvers<boolean>()
    const asked = await retryUntilAnswered({
      clock,
      ask: () => void this.#connection.subscribe(filter, options).then(resolve),
      answered: granted,
      repeats,
      deadline: () => Math.max(began, this.readBack.foundAt) + ms,
      foundAt: () => this.readBack.foundAt,
      isEvident: () => this.readBack.hasFound(filter),
      signal: this.#connection.ended,
    })
    // A grant may arrive together with the end of the connection.
    if (asked === undefined && !this.#connection.isDown) {
      this.#connection.drop({ code: 'timeout', detail: `no SUBACK within ${ms} ms` })
    }
    return asked === undefined ? granted : Promise.race([granted, true])
  }

  #report(deniedFilters: readonly string[], probe: ReadBackResult['probe']): void {
    const { journal, link } = this.#options
    for (const filter of link.subscriptions) {
      if (deniedFilters.includes(filter)) journal.denied(filter)
      else journal.granted(filter)
    }
    if (probe === 'ok') journal.forget('probe')
    else {
      journal.warnOnce(
        'probe',
        `messages published to ${link.probeTopic} do not come back: the MQTT broker's access rules forbid this user to write or read there; allow both for everything under the base topic`,
      )
    }
  }
}

/** How long the probe may take. */
const PROOF_MS = 10_000

/**
 * Makes the broker send the retained messages under these filters again, later on a connection. Once the probe is `ok`,
 * everything that the broker had before has been received.
 * @param publish sends to the probe topic, in turn with everything else
 */
export function reread(
  connection: Connection,
  heldFilters: readonly string[],
  { probeTopic, subscriptions }: LinkOptions,
  { clock, publish }: { readonly clock: Clock; readonly publish: ReadBackOptions['publish'] },
): ReadBack {
  return new ReadBack(connection, {
    heldFilters,
    lastingFilters: subscriptions,
    probeTopic,
    clock,
    timeoutMs: PROOF_MS,
    subscribe: (filter, qos) =>
      connection.subscribe(filter, filter === probeTopic ? PROBE : subscriptions.includes(filter) ? COMMAND : { qos }),
    publish,
  })
}

const WAIT_MS = { min: 1_000, max: 5 * 60_000 }

/**
 * Repeats subscriptions that the broker denied, until all are granted or the connection ends. A cluster that has just
 * lost a node temporarily denies subscriptions, and access rules may change during a connection.
 * @param onGranted called with each filter that was denied before
 */
export async function resubscribe(
  connection: Pick<Connection, 'subscribe' | 'ended'>,
  denied: readonly string[],
  { clock, random }: Pick<ConnectionLoopOptions, 'clock' | 'random'>,
  onGranted: (filter: string) => void,
): Promise<void> {
  const { ended } = connection
  const backoff = new Backoff({ ...WAIT_MS, random })
  const left = new Set(denied)
  const askFor = async (filter: string) => {
    // Stays pending if the connection ends first.
    if (!(await connection.subscribe(filter, COMMAND)) || ended.aborted) return
    left.delete(filter)
    onGranted(filter)
  }
  while (left.size > 0) {
    await sleep(clock, backoff.next(), ended)
    if (ended.aborted) return
    // All at once: a cluster without a leader takes seconds to deny each.
    await Promise.all([...left].map(askFor))
  }
}
