/** Changes the log level, permanently or for a limited time. */
import type { LogLevel } from '../contract/log-levels.ts'
import type { BridgeOptions } from './bridge-options.ts'

export class LogLevels {
  readonly #options: Pick<BridgeOptions, 'log' | 'clock'>
  readonly #onChange: (logLevel: LogLevel) => void
  #level: LogLevel
  /** The level to restore, and the time to restore it, in `clock.elapsed()` milliseconds. */
  #fallback: { readonly level: LogLevel; readonly at: number } | undefined
  #cancel = () => {}

  constructor(level: LogLevel, options: Pick<BridgeOptions, 'log' | 'clock'>, onChange: (level: LogLevel) => void) {
    this.#level = level
    this.#options = options
    this.#onChange = onChange
  }

  /** The level that will be restored; `undefined` if the current level is permanent. */
  get fallback(): { readonly level: LogLevel; readonly remainingMs: number } | undefined {
    if (this.#fallback === undefined) return undefined
    const { level, at } = this.#fallback
    return { level, remainingMs: Math.max(0, at - this.#options.clock.elapsed()) }
  }

  /** @param forMs how long the level applies, in milliseconds; default: permanently */
  set(level: LogLevel, forMs?: number): void {
    const { clock, log } = this.#options
    this.stop()
    // A second temporary level does not change the level that is restored.
    const next = this.#fallback?.level ?? this.#level
    this.#fallback = forMs === undefined ? undefined : { level: next, at: clock.elapsed() + forMs }
    this.#level = level
    log.setLevel(level)
    const limit = forMs === undefined ? {} : { for_ms: forMs, falls_back_to: next }
    log.audit.info({ log_level: level, ...limit }, 'log level changed')
    this.#onChange(level)
    if (forMs !== undefined) this.#cancel = clock.after(forMs, () => this.set(next))
  }

  stop(): void {
    this.#cancel()
  }
}
