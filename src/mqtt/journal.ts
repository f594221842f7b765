/** What the log hears of the connection: each thing once, however often it happens meanwhile. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Failure } from './failure.ts'
import type { FailureCode, Protocol } from './types.ts'

export class Journal {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #told = new Set<string>()
  #outage: { readonly since: number; readonly codes: Set<FailureCode> } | undefined

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock
    this.#log = log
  }

  connected(protocol: Protocol): void {
    this.forget('outbox')
    const outage = this.#outage
    this.#outage = undefined
    const outageSeconds = outage === undefined ? undefined : inSeconds(this.#clock.elapsed() - outage.since)
    const again = outageSeconds === undefined ? '' : ` again after ${outageSeconds} s`
    this.#log.info(
      { protocol, outage_seconds: outageSeconds },
      `connected to the MQTT broker${again} (MQTT ${protocol})`,
    )
  }

  /** `livedMs`: undefined for a connection that was never accepted. Told once per outage and kind of failure. */
  failed({ code, detail }: Failure, livedMs: number | undefined): void {
    const known = this.#outage?.codes.has(code) ?? false
    this.#outage ??= { since: this.#clock.elapsed(), codes: new Set() }
    this.#outage.codes.add(code)
    const fields = { reason: code, detail, ...(livedMs === undefined ? {} : { connected_seconds: inSeconds(livedMs) }) }
    if (known) this.#log.debug(fields, `still no MQTT broker: ${detail}`)
    else if (livedMs !== undefined) this.#log.warn(fields, `connection to the MQTT broker lost: ${detail}`)
    else this.#log.warn(fields, `no connection to the MQTT broker: ${ADVICE[code] ?? ''}${detail}`)
  }

  /** Warns of `key` once, until it is forgotten. */
  warnOnce(key: string, message: string): void {
    if (this.#told.has(key)) return
    this.#told.add(key)
    this.#log.warn({}, message)
  }

  /** What `key` stands for is over: it is news when it comes again. */
  forget(key: string): void {
    this.#told.delete(key)
  }
}

const ADVICE: Partial<Record<FailureCode, string>> = {
  unauthorized: 'it refuses the user name or password, next try in a minute: ',
  protocol: 'it speaks neither MQTT 5 nor the version asked for: ',
  tls: 'its certificate or the TLS settings are not right: ',
  taken_over: 'another client uses the same client id: ',
}

const inSeconds = (ms: number) => Math.round(ms / 100) / 10
