import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Advice } from '../base/failures.ts'
import type { HubErrorCode } from './errors.ts'
import type { OperationName } from './operations.ts'
import type { ApiPrefix, Identity } from './proven-hub.ts'

class Unknown {
  readonly id: Identity['id'] = null
  readonly firmware: Identity['firmware'] = null
  readonly api: ApiPrefix | null = null
  readonly online: boolean = false
  /** An error code if the hub is unusable or only partly usable; `connecting` before the first response. */
  readonly reason: HubErrorCode | 'connecting' | null = 'connecting'
  readonly realtime: 'connected' | 'polling' = 'polling'
  /** The API key's scopes as `hub.…`; `undefined` if the hub does not report them. */
  readonly scopes: readonly string[] | undefined = undefined
  readonly missing: ReadonlySet<OperationName> = new Set()
}

/** A status is never mutated; each change creates a new object. */
export type HubStatus = Unknown

export const UNKNOWN_STATUS: HubStatus = { ...new Unknown() }

export class StatusTracker {
  /** Changed only by `update`. */
  current = UNKNOWN_STATUS
  readonly #clock: Clock
  readonly #log: Logger
  readonly #listeners = new Set<(status: HubStatus) => void>()
  /** When the hub last went offline or online, in `clock.elapsed()` milliseconds. */
  #turnedAt: number
  #ended = false

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = clock
    this.#log = log
    this.#turnedAt = clock.elapsed()
  }

  subscribe(listener: (status: HubStatus) => void): void {
    this.#listeners.add(listener)
  }

  /** @param why explains in the log why the hub is offline */
  update(change: Partial<HubStatus>, why?: Advice): void {
    const before = this.current
    const after = { ...before, ...change }
    if (this.#ended || isDeepStrictEqual(comparable(after), comparable(before))) return
    this.current = after
    this.#logChange(before, after, why)
    for (const listener of this.#listeners) listener(after)
  }

  end(): void {
    this.#ended = true
    this.#listeners.clear()
  }

  #logChange(before: HubStatus, after: HubStatus, why: Advice | undefined): void {
    if (before.online === after.online && (after.online || before.reason === after.reason)) return
    const seconds = Math.round((this.#clock.elapsed() - this.#turnedAt) / 1000)
    if (before.online !== after.online) this.#turnedAt = this.#clock.elapsed()
    if (after.online) {
      this.#log.info({ id: after.id, firmware: after.firmware, offline_seconds: seconds }, 'hub online')
    } else {
      const { cause = 'no answer', remedy = '' } = why ?? {}
      this.#log.warn({ reason: after.reason, ...(remedy !== '' && { remedy }) }, `hub offline: ${cause}`)
    }
  }
}

/** Prepares a status for comparison. A different order of scopes is not a change. */
const comparable = ({ scopes, ...others }: HubStatus) => ({ ...others, scopes: scopes && new Set(scopes) })

/**
 * A granted scope includes all scopes below it: `hub.app` includes `hub.app.control`. `undefined` (not reported) grants
 * everything, because the hub itself checks each request.
 */
export function grants(granted: readonly string[] | undefined, needed: string | undefined): boolean {
  if (granted === undefined || needed === undefined) return true
  return granted.some((scope) => needed === scope || needed.startsWith(`${scope}.`))
}

const REASONS: Readonly<Record<string, string>> = {
  no_answer: 'unreachable',
  nonsense: 'failed',
  unsupported: 'failed',
}

/** Returns the reason as an error code of the MQTT contract; `null` if the hub is usable. */
export function reasonOf({ reason }: HubStatus): string | null {
  return reason === null ? null : (REASONS[reason] ?? reason)
}
