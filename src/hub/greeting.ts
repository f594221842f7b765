/** Reads a hub's identity, the API key's permissions, and which operations the hub lacks. */
import type { HubClient } from './client.ts'
import { asHubError, unless } from './errors.ts'
import type { Identity } from './proven-hub.ts'
import type { HubStatus } from './status.ts'

export type Greeting = Identity & Pick<HubStatus, 'scopes' | 'missing'>

/**
 * @param previous returns the previous result, whose missing operations are kept for the same hub and firmware
 * @throws HubError
 */
export async function greet(client: HubClient, previous: () => Greeting | undefined): Promise<Greeting> {
  const identity = await client.hub.identify()
  const { id, firmware } = identity
  const scopes = await unless(['unsupported', 'forbidden', 'rejected'], client.call('getSessionMe', {}))
  // A hub that does not report its firmware may have been updated, so check its operations again.
  const before = previous()
  const isSame = firmware !== null && firmware === before?.firmware && id === before.id
  const missing = new Set(isSame ? before.missing : [])
  if (isNewer(identity)) {
    // Newer hubs have no garbage collection. Reading the voices shows, without a side effect, whether a hub can speak.
    missing.add('garbageCollectApp')
    if (!missing.has('speak') && (await lacksVoices(client))) missing.add('speak').add('getVoices')
  }
  return { ...identity, scopes, missing }
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
