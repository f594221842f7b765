/** Sets up each connection: subscribes to the commands, reads back the broker's messages, and checks access. */
import type { IClientSubscribeOptions } from 'mqtt'
import { Backoff } from '../base/backoff.ts'
import { type Clock, sleep } from '../base/clock.ts'
import type { Connection } from './connection.ts'
import type { ConnectionLoopOptions } from './connection-loop.ts'
import { ReadBack, type ReadBackOptions, type ReadBackResult, retryUntilAnswered } from './readback.ts'
import { ACK_TIMEOUT_MS } from './sender.ts'
import type { LinkOptions } from './types.ts'

interface SessionSetupOptions
  extends Pick<ConnectionLoopOptions, 'link' | 'clock' | 'journal'>,
    Pick<ReadBackOptions, 'onFound' | 'onLive' | 'additionalFilters'> {
  /** Whether the self-test failed on the previous connection. If so, this self-test has a fifth of the time limit. */
  readonly deniedBefore: boolean
}

// Receives retained commands (`rh: 0`), to refuse and clear them. Excludes this link's own clearing publishes (`nl`).
const COMMAND: IClientSubscribeOptions = { qos: 1, nl: true, rap: true, rh: 0 }
// Receives this link's markers; `rap` distinguishes them from other clients' retained messages. Stays subscribed.
const PROBE: IClientSubscribeOptions = { qos: 1, rap: true }
// Receives only new publishes (`rh: 2`) by other clients (`nl`), with their retain flags (`rap`).
const WATCH: IClientSubscribeOptions = { qos: 1, nl: true, rap: true, rh: 2 }

/** Pass each message that is not a command to `readBack`. `done` stays pending if the connection ends first. */
export function setUpSession(connection: Connection, options: SessionSetupOptions) {
  const { link, clock, journal } = options
  const { retainedFilters, watchedFilters = [], transientFilters = [], subscriptions, probeTopic } = link
  const { probeTimeoutMs = 30_000, ackTimeoutMs = ACK_TIMEOUT_MS } = link
  /** Transient filters that no other subscription reads. */
  const transient = transientFilters.filter((one) => one !== probeTopic && !subscriptions.includes(one))
  const readBack: ReadBack = new ReadBack(connection, {
    ...options,
    retainedFilters: [...retainedFilters, ...transient],
    lastingFilters: connection.protocol === '5' ? [] : watchedFilters,
    probeTopic,
    timeoutMs: options.deniedBefore ? probeTimeoutMs / 5 : probeTimeoutMs,
    subscribe: (filter, qos) =>
      subscribe(filter, filter === probeTopic ? PROBE : { qos, rap: transient.includes(filter) }, true),
  })

  async function run() {
    // Send one SUBSCRIBE per filter, because brokers differ in how they treat other filters if they deny one filter.
    const granted = await Promise.all(subscriptions.map((filter) => subscribe(filter, COMMAND, false)))
    const deniedFilters = subscriptions.filter((_, i) => !granted[i])
    const found = await readBack.run()
    if (!connection.isDown) {
      watch()
      report(deniedFilters, found.probe)
    }
    return { ...found, deniedFilters }
  }

  /**
   * Subscribes again after the read-back has unsubscribed, because Mosquitto 2.0 does not change the options of a
   * subscription, and with `nl` during the read-back, a broker may withhold this client's own retained messages.
   */
  function watch(): void {
    if (connection.protocol !== '5') return
    for (const filter of [...watchedFilters, ...transient]) void connection.subscribe(filter, WATCH)
  }

  /**
   * Drops the connection and stays pending if no SUBACK arrives in time. Mosquitto always drops the SUBACK if a filter
   * has more retained messages than it queues. In that case, the received messages prove that the subscription was
   * granted.
   */
  async function subscribe(filter: string, how: IClientSubscribeOptions, repeats: boolean): Promise<boolean> {
    const startedAt = clock.elapsed()
    const { promise: granted, resolve } = Promise.withResolvers<boolean>()
    const attempts = await retryUntilAnswered({
      clock,
      request: () => void connection.subscribe(filter, how).then(resolve),
      answered: granted,
      repeats,
      deadline: () => Math.max(startedAt, readBack.foundAt) + ackTimeoutMs,
      foundAt: () => readBack.foundAt,
      isEvident: () => readBack.hasFound(filter),
      signal: connection.ended,
    })
    // The SUBACK may arrive together with the end of the connection.
    if (attempts === undefined && !connection.isDown) {
      connection.drop({ code: 'timeout', detail: `no SUBACK within ${ackTimeoutMs} ms` })
    }
    return attempts === undefined ? granted : Promise.race([granted, true])
  }

  function report(deniedFilters: readonly string[], probe: ReadBackResult['probe']): void {
    for (const filter of subscriptions) {
      if (deniedFilters.includes(filter)) journal.denied(filter)
      else journal.granted(filter)
    }
    if (probe === 'ok') journal.forget('probe')
    else {
      journal.warnOnce(
        'probe',
        `messages published to ${probeTopic} do not come back: the MQTT broker's access rules forbid this user to write or read there; allow both for everything under the base topic`,
      )
    }
  }

  return { readBack, done: run() }
}

const REREAD_TIMEOUT_MS = 10_000

/**
 * Makes the broker send retained messages again. If the probe is `ok`, all messages from before the call have arrived.
 * @param publish sends to the probe topic, in turn with all other messages
 */
export function reread(
  connection: Connection,
  retainedFilters: readonly string[],
  { probeTopic, subscriptions }: LinkOptions,
  { clock, publish }: { readonly clock: Clock; readonly publish: ReadBackOptions['publish'] },
): ReadBack {
  return new ReadBack(connection, {
    retainedFilters,
    lastingFilters: subscriptions,
    probeTopic,
    clock,
    timeoutMs: REREAD_TIMEOUT_MS,
    subscribe: (filter, qos) =>
      connection.subscribe(filter, filter === probeTopic ? PROBE : subscriptions.includes(filter) ? COMMAND : { qos }),
    publish,
  })
}

const WAIT_MS = { min: 1_000, max: 5 * 60_000 }

/**
 * Repeats denied subscriptions until all are granted or the connection ends. A broker cluster that has just lost a node
 * temporarily denies subscriptions, and access rules may change during a connection.
 */
export async function resubscribe(
  connection: Pick<Connection, 'subscribe' | 'ended'>,
  denied: readonly string[],
  { clock, random }: Pick<ConnectionLoopOptions, 'clock' | 'random'>,
  onGranted: (filter: string) => void,
): Promise<void> {
  const { ended } = connection
  const backoff = new Backoff({ ...WAIT_MS, random })
  const pending = new Set(denied)
  const retry = async (filter: string) => {
    // `subscribe` stays pending if the connection ends first.
    if (!(await connection.subscribe(filter, COMMAND)) || ended.aborted) return
    pending.delete(filter)
    onGranted(filter)
  }
  while (pending.size > 0) {
    await sleep(clock, backoff.next(), ended)
    if (ended.aborted) return
    // Retry in parallel, because a broker cluster without a leader takes seconds to deny each filter.
    await Promise.all([...pending].map(retry))
  }
}
