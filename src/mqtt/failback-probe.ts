/** Tests whether the preferred address accepts connections again, while the link uses another one. */
import { sleep } from '../base/clock.ts'
import type { ConnectionLoopOptions } from './connection-loop.ts'
import { withSession } from './session.ts'

const INTERVAL_MS = 5 * 60_000
/** An address that is lost soon after each return is tested less and less often, up to this many intervals. */
const MOST_INTERVALS = 16
const TIMEOUT_MS = 10_000
/** How long to wait for running commands, and how often to check them. */
const BUSY_MS = { most: 60_000, step: 250 }

export class FailbackProbe {
  readonly #options: Pick<ConnectionLoopOptions, 'link' | 'clock' | 'random' | 'isBusy'>
  readonly #onOpen: () => void
  #stop = new AbortController()
  /** How many intervals to wait. */
  #intervals = 1
  #openedAt = Number.NEGATIVE_INFINITY

  /** @param onOpen called when the preferred address accepts connections: the link may return to it */
  constructor(options: Pick<ConnectionLoopOptions, 'link' | 'clock' | 'random' | 'isBusy'>, onOpen: () => void) {
    this.#options = options
    this.#onOpen = onOpen
  }

  /** Starts testing the preferred address, because the link is connected to another one. */
  start(url: string): void {
    const { clock, link } = this.#options
    const { preferredAfterMs = INTERVAL_MS } = link
    this.stop()
    this.#stop = new AbortController()
    const wasInVain = clock.elapsed() - this.#openedAt < preferredAfterMs
    this.#intervals = wasInVain ? Math.min(MOST_INTERVALS, this.#intervals * 2) : 1
    void this.#run(url, this.#intervals * preferredAfterMs, this.#stop.signal)
  }

  /** Stops testing, because the connection has ended. */
  stop(): void {
    this.#stop.abort()
  }

  async #run(url: string, intervalMs: number, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options
    while (!signal.aborted) {
      // Vary the interval, so that the bridges of a house do not all return to a restarted broker at the same time.
      await sleep(clock, intervalMs * (0.75 + 0.5 * random()), signal)
      if (signal.aborted || !(await this.#takesConnections(url, signal))) continue
      await this.#untilQuiet(signal)
      if (signal.aborted) return
      this.#openedAt = clock.elapsed()
      return this.#onOpen()
    }
  }

  async #takesConnections(url: string, signal: AbortSignal): Promise<boolean> {
    const { clock, link } = this.#options
    const broker = { ...link, urls: [url] }
    // With the bridge's own client id, a cluster would end the current connection.
    const session = { broker, clientId: `${link.clientId}-look`, timeoutMs: TIMEOUT_MS, signal }
    return await withSession(session, clock, async ({ lack }) => lack === undefined).catch(() => false)
  }

  async #untilQuiet(signal: AbortSignal): Promise<void> {
    const { clock, isBusy } = this.#options
    const until = clock.elapsed() + BUSY_MS.most
    while (isBusy?.() && clock.elapsed() < until && !signal.aborted) await sleep(clock, BUSY_MS.step, signal)
  }
}
