/** What is known of a hub besides its apps. */
import type { ApiPrefix, Identity } from './client.ts'
import type { HubErrorCode } from './errors.ts'
import type { OperationName } from './operations.ts'

/** Replaced as a whole, never changed in place. */
export interface HubStatus extends Omit<Identity, 'api'> {
  readonly api: ApiPrefix | null
  readonly online: boolean
  /** Why it is not (wholly) usable: an error's code, or `connecting` before the first answer. */
  readonly reason: HubErrorCode | 'connecting' | null
  readonly realtime: 'connected' | 'polling'
  /** The key's scopes as `hub.…`; `undefined` if the hub does not tell. */
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

/** The status after a change; the same reference if it says nothing new. */
export function changeStatus(before: HubStatus, change: Partial<HubStatus>): HubStatus {
  const after = { ...before, ...change }
  const same =
    before.online === after.online &&
    before.reason === after.reason &&
    before.id === after.id &&
    before.firmware === after.firmware &&
    before.api === after.api &&
    before.realtime === after.realtime &&
    sameMembers(before.scopes, after.scopes) &&
    sameMembers([...before.missing], [...after.missing])
  return same ? before : after
}

function sameMembers(one: readonly string[] | undefined, other: readonly string[] | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return one.length === other.length && one.every((member) => other.includes(member))
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
