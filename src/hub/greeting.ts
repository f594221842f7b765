/** What is asked of a hub before its apps: who it is, what the key may do, and which operations it lacks. */
import type { HubClient, Identity } from './client.ts'
import { asHubError } from './errors.ts'
import { OPTIONAL_OPERATIONS, type OperationName } from './operations.ts'

export interface Greeting extends Identity {
  /** The key's scopes as `hub.…`; `undefined` if the hub does not tell. */
  readonly scopes: readonly string[] | undefined
  /** Operations that this hub does not have. */
  readonly missing: ReadonlySet<OperationName>
}

/** @throws HubError */
export async function greet(client: HubClient): Promise<Greeting> {
  const identity = await client.identify()
  const scopes = await readScopes(client)
  const missing = await findMissing(client)
  return { ...identity, scopes, missing }
}

async function readScopes(client: HubClient): Promise<readonly string[] | undefined> {
  try {
    return await client.call('getSessionMe', {})
  } catch (error) {
    const { code } = asHubError(error)
    if (code !== 'unsupported' && code !== 'forbidden') throw error
    return undefined
  }
}

/** A hub has all optional operations or none, and the list of voices is the only one that can be asked for harmlessly. */
async function findMissing(client: HubClient): Promise<ReadonlySet<OperationName>> {
  try {
    await client.call('getVoices', {})
  } catch (error) {
    if (asHubError(error).code === 'unsupported') return new Set(OPTIONAL_OPERATIONS)
  }
  return new Set()
}
