/** The log's lines about commands: one for each that may change something. A flood of refusals is told as a number. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { ErrorCode } from '../contract/errors.ts'

const REFUSALS_A_MINUTE = 60
const MINUTE_MS = 60_000

export class Audit {
  readonly #clock: Clock
  readonly #log: Logger
  /** Refusals of the present minute. */
  #refused = 0
  #endMinute: () => void = () => {}

  /** @param log writes whatever the level of the others is */
  constructor(clock: Clock, log: Logger) {
    this.#clock = clock
    this.#log = log
  }

  /**
   * Writes the line, but not of one refusal too many: one in which the hub was asked for nothing. Returns whether it
   * was written.
   */
  write(line: { readonly outcome: 'ok' | ErrorCode }, asked: boolean): boolean {
    if (line.outcome !== 'ok' && !asked && !this.#mayTell()) return false
    this.#log.info(line, 'command')
    return true
  }

  /** Tells what was left out so far. */
  stop(): void {
    this.#endMinute()
    const untold = this.#refused - REFUSALS_A_MINUTE
    if (untold > 0)
      this.#log.warn({ refused: untold }, 'more commands were refused within a minute than are told one by one')
    this.#refused = 0
  }

  #mayTell(): boolean {
    if (this.#refused === 0) this.#endMinute = this.#clock.after(MINUTE_MS, () => this.stop())
    this.#refused += 1
    return this.#refused <= REFUSALS_A_MINUTE
  }
}
