/** The status of a hub, apart from its apps, and its listeners. */
import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Advice } from '../base/failures.ts'
import type { HubErrorCode } from './errors.ts'
import type { OperationName } from './operations.ts'
import type { ApiPrefix, Identity } from './proven-hub.ts'

/** The status of a hub. Replaced as a whole, never changed in place. */
export interface HubStatus extends Omit<Identity, 'api'> {
  readonly api: ApiPrefix | null
  readonly online: boolean
  /** Why it is not (wholly) usable: an error's code, or `connecting` before the first answer. */
  readonly reason: HubErrorCode | 'connecting' | null
  readonly realtime: 'connected' | 'polling'
  /** The key's scopes as `hub.…`; `undefined` if the hub does not say. */
  readonly scopes: readonly string[] | undefined
  /** Operations that this hub has been found not to have. */
  readonly missing: ReadonlySet<OperationName>
}

export const UNKNOWN_STATUS: HubStatus = {
  online: false,
  reason: 'connecting',
  id: null,
  firmware: null,
  api: null,
  realtime: 'polling',
  scopes: undefined,
  missing: new Set(),
}

/** Holds the present status, notifies listeners of each change, and logs when the hub is lost or regained. */
export class StatusTracker {
  /** Changed by `update` alone. */
  current = UNKNOWN_STATUS
  readonly #clock: Clock
  readonly #log: Logger
  readonly #listeners = new Set<(status: HubStatus) => void>()
  /** When the hub was last lost or regained, in `clock.elapsed()` milliseconds. */
  #turnedAt: number
  #ended = false

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = clock
    this.#log = log
    this.#turnedAt = clock.elapsed()
  }

  /** Calls `listener` after each change; the returned function ends that. */
  subscribe(listener: (status: HubStatus) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** @param why for people, if the hub is lost */
  update(change: Partial<HubStatus>, why?: Advice): void {
    const before = this.current
    const after = { ...before, ...change }
    if (this.#ended || isDeepStrictEqual(comparable(after), comparable(before))) return
    this.current = after
    this.#logChange(before, after, why)
    for (const listener of this.#listeners) listener(after)
  }

  /** From now on the status stays as it is, and no listener is called. */
  end(): void {
    this.#ended = true
    this.#listeners.clear()
  }

  /** Once when the hub is regained; when it is lost, and again when it stays offline for another reason. */
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

/** The same scopes in another order are no change. */
const comparable = ({ scopes, ...others }: HubStatus) => ({ ...others, scopes: scopes && new Set(scopes) })

/**
 * Whether a key with `granted` scopes has `needed`: a scope grants what it prefixes, part by part.
 * `undefined` (the hub did not say) grants everything: the hub itself will refuse.
 */
export function grants(granted: readonly string[] | undefined, needed: string | undefined): boolean {
  if (granted === undefined || needed === undefined) return true
  return granted.some((scope) => needed === scope || needed.startsWith(`${scope}.`))
}

/** Codes of a hub's failure in the words of the MQTT contract: the commands' `hub_` prefix would say nothing here. */
const REASONS: Readonly<Record<string, string>> = {
  no_answer: 'unreachable',
  nonsense: 'failed',
  unsupported: 'failed',
}

/** Why a hub is not (wholly) usable, in the words of the MQTT contract; `null` if it is. */
export function reasonOf({ reason }: HubStatus): string | null {
  return reason === null ? null : (REASONS[reason] ?? reason)
}
