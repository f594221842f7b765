/** The command `hub/call`, and the effects that it shares with other commands. */
import * as v from 'valibot'
import { DROPPED_KEYS, hasDroppedKey, isRecord, type Json } from '../base/json.ts'
import { type Endpoint, readEndpoint, SECTIONS } from '../hub/endpoints.ts'
import { asHubError } from '../hub/errors.ts'
import type { OperationName } from '../hub/operations.ts'
import { effectOfEndpoint, writeCheck } from '../hub/written.ts'
import type { Capability, Target } from './command.ts'
import { CommandError } from './errors.ts'
import { enveloped, noArray } from './payload.ts'
import { confirmed } from './writes.ts'

export { SECTIONS }
export const METHODS = ['GET', 'POST', 'PUT', 'DELETE'] as const

const QUERY_VALUE = v.union([v.string(), v.pipe(v.number(), v.finite()), v.boolean()])
const KEPT_KEYS = v.check(
  (value: unknown) => !isRecord(value) || !hasDroppedKey(value),
  `expected other keys than ${DROPPED_KEYS.join(', ')}.`,
)

export const called = enveloped(
  v.strictObject({
    section: v.optional(v.picklist(SECTIONS), 'manager'),
    item: v.pipe(v.string(), v.nonEmpty(), v.maxLength(256)),
    method: v.optional(v.picklist(METHODS), 'GET'),
    path: v.optional(v.string()),
    query: v.optional(v.pipe(v.unknown(), noArray, KEPT_KEYS, v.record(v.string(), QUERY_VALUE))),
    body: v.optional(v.any()),
  }),
  ({ query = {}, ...rest }): Endpoint => {
    const texts = Object.entries(query).map(([key, value]) => [key, String(value)])
    try {
      return readEndpoint({ ...rest, query: Object.fromEntries(texts) })
    } catch (error) {
      throw new CommandError('invalid_payload', asHubError(error).message, { cause: error })
    }
  },
)

/** The effects that an operation shares with commands. Includes effects that are only possible, to be safe. */
const CAPABILITIES: Partial<Record<OperationName, readonly Capability[]>> = {
  getApps: ['read-app'],
  getAppSettings: ['read-settings'],
  getAppSetting: ['read-settings'],
  disableApp: ['disable'],
  installFromAppStore: ['channel'],
}

/** Hubs are known to accept only `autoupdate` in an app's record. Other keys are assumed to have all these effects. */
const WHOLE_APP: readonly Capability[] = ['enable', 'disable', 'update-app']

export function capabilitiesOfCall({ operation, query, body }: Endpoint): readonly Capability[] {
  if (operation === null) return []
  if (operation !== 'updateApp') return CAPABILITIES[operation] ?? []
  // A hub may also read the keys from the query.
  const keys = isRecord(body) ? Object.keys({ ...query, ...body }) : ['?']
  return keys.every((key) => key === 'autoupdate' || key === 'id') ? [] : WHOLE_APP
}

/** Calls an endpoint. Omits hidden apps if the response is the list of apps. */
export async function callEndpoint({ hub, callEndpoint: send }: Target, endpoint: Endpoint): Promise<Json> {
  const answer = await confirmed(send(endpoint), writeCheck(hub, effectOfEndpoint(endpoint)))
  if (endpoint.operation !== 'getApps' || typeof answer !== 'object' || answer === null) return answer
  return Object.fromEntries(Object.entries(answer).filter(([id]) => hub.apps.shows(id)))
}
