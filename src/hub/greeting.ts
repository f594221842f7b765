/** What is read from a hub before its apps: its identity, what the key may do, and which operations it lacks. */
import type { HubClient } from './client.ts'
import { asHubError, unless } from './errors.ts'
import type { OperationName } from './operations.ts'
import type { Identity } from './proven-hub.ts'
import type { HubStatus } from './status.ts'

export interface Greeting extends Identity {
  /** The key's scopes as `hub.…`; `undefined` if the hub does not say. */
  readonly scopes: readonly string[] | undefined
  /** Operations that this hub was found not to have. */
  readonly missing: ReadonlySet<OperationName>
}

/** @param known what was found missing on the hub before; it holds for the same hub with the same firmware. @throws HubError */
export async function greet(client: HubClient, known: Greeting | undefined): Promise<Greeting> {
  const identity = await client.hub.identify()
  const { id, firmware } = identity
  const scopes = await unless(['unsupported', 'forbidden'], client.call('getSessionMe', {}))
  // A hub that does not say its firmware may have another one each time.
  const isSame = firmware !== null && firmware === known?.firmware && id === known.id
  const missing = new Set(isSame ? known.missing : [])
  if (isNewer(identity)) {
    // A hub of the newer kind has no garbage collection. Its list of voices shows whether it speaks; no other request
    // for that is harmless. Nothing counts as missing without evidence.
    missing.add('garbageCollectApp')
    if (!missing.has('speak') && (await lacksVoices(client))) missing.add('speak').add('getVoices')
  }
  return { ...identity, scopes, missing }
}

const NEWER_FIRMWARE = 10

/** Whether a hub is of the newer kind, which installs a version that is named. */
export function isNewer({ api, firmware }: Pick<HubStatus, 'api' | 'firmware'>): boolean {
  return api === 'manager' && Number.parseInt(firmware ?? '', 10) >= NEWER_FIRMWARE
}

async function lacksVoices(client: HubClient): Promise<boolean> {
  const failure = await client.call('getVoices', {}).then(() => undefined, asHubError)
  return failure?.code === 'unsupported' && !failure.foreign
}
