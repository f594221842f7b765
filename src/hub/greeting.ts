/** Reads a hub's identity, the API key's permissions, and which operations the hub lacks. */
import type { HubClient } from './client.ts'
import { asHubError, type HubErrorCode, unless } from './errors.ts'
import type { Identity } from './proven-hub.ts'
import type { HubStatus } from './status.ts'

export type Greeting = Identity & Pick<HubStatus, 'scopes' | 'missing'>

/** Failures that may be temporary. The hub is still usable, because it checks the permissions of each request. */
const TEMPORARY: ReadonlySet<HubErrorCode> = new Set(['failed', 'nonsense'])

/**
 * Reads the greeting. `isPartial` is `true` if the permissions could not be read, but may be readable later.
 * @param previous returns the last result; on the same hub and firmware, its missing operations are kept
 * @throws HubError
 */
export async function greet(client: HubClient, previous: () => Greeting | undefined) {
  const identity = await client.hub.identify()
  const { id, firmware } = identity
  let isPartial = false
  const reading = unless(['unsupported', 'forbidden', 'rejected'], client.call('getSessionMe', {}))
  const scopes = await reading.catch((error: unknown) => {
    if (!TEMPORARY.has(asHubError(error).code)) throw error
    isPartial = true
    const known = previous()
    return known?.id === id ? known.scopes : undefined
  })
  // A hub that does not report its firmware may have been updated, so check its operations again.
  const before = previous()
  const isSame = firmware !== null && firmware === before?.firmware && id === before.id
  const missing = new Set(isSame ? before.missing : [])
  if (isNewer(identity)) {
    // Newer hubs have no garbage collection. Reading the voices shows, without a side effect, whether a hub can speak.
    missing.add('garbageCollectApp')
    if (!missing.has('speak') && (await lacksVoices(client))) missing.add('speak').add('getVoices')
  }
  const greeting: Greeting = { ...identity, scopes, missing }
  return { greeting, isPartial }
}

const NEWER_FIRMWARE = 10

/** Returns whether a hub has the firmware that can install a given version of an app. */
export function isNewer({ api, firmware }: Pick<HubStatus, 'api' | 'firmware'>): boolean {
  return api === 'manager' && Number.parseInt(firmware ?? '', 10) >= NEWER_FIRMWARE
}

async function lacksVoices(client: HubClient): Promise<boolean> {
  const failure = await client.call('getVoices', {}).then(() => undefined, asHubError)
  return failure?.code === 'unsupported' && !failure.foreign
}
