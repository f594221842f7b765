/** Permissions of API keys: the spelling of scopes, and what each scope grants. */
import * as v from 'valibot'
import { UsageError } from '../base/errors.ts'
import { HubError } from './hub-error.ts'

/** Keys may spell scopes `hub.…` or `homey.…`; internally and in answers, they are spelled `homey.…`. */
const KNOWN = [
  'homey',
  'homey.app',
  'homey.app.readonly',
  'homey.app.control',
  'homey.speech',
  'homey.system',
  'homey.system.readonly',
  'homey.notifications',
  'homey.notifications.readonly',
  'homey.device.readonly',
  'homey.flow.readonly',
  'homey.insights.readonly',
  'homey.updates.readonly',
] as const

/** Returns a scope in the spelling of the API documentation. This is the inverse of `normaliseScope`. */
export const writtenScope = (scope: string): string => scope.replace(/^homey(?=\.|$)/, 'hub')

const WRITTEN = KNOWN.map(writtenScope).join(', ')

export const ScopeText = v.picklist(
  KNOWN.flatMap((scope) => [writtenScope(scope), scope]),
  `must be one of ${WRITTEN} ("homey" is accepted instead of "hub")`,
)

/** A key is sent in a header, so it may contain only characters that are valid there. */
export const VISIBLE = /^[\x21-\x7e]+$/

type Scope = Exclude<(typeof KNOWN)[number], 'homey'>

export const normaliseScope = (scope: string): string => scope.replace(/^hub(?=\.|$)/, 'homey')

/** Whether a scope includes `wanted`. For example, `homey.app` includes `homey.app.control`, but not `homey.apps`. */
export function grants(scopes: readonly string[], wanted: Scope): boolean {
  return scopes.some((scope) => wanted === scope || wanted.startsWith(`${scope}.`))
}

/** The requirement of a route: nothing, any valid key, or a key with this scope. */
export type Needs = 'nothing' | 'key' | Scope

/** Checks permissions. @throws HubError 403 if the scopes are not sufficient */
export function permits(scopes: readonly string[], needs: Needs): void {
  if (needs === 'nothing' || needs === 'key' || grants(scopes, needs)) return
  throw new HubError(403, 'missing_scopes', `Missing Scopes: ${needs}`)
}

/** Returns the scopes of a key, spelled `homey.…`; `undefined` for an unknown key. */
export type Keys = (key: string) => readonly string[] | undefined

/** Returns the caller's scopes. @throws HubError 401 for an unknown key, 403 for a key without the permission */
export function admit(keys: Keys, key: string | undefined, needs: Needs): readonly string[] {
  if (needs === 'nothing') return []
  const scopes = key === undefined ? undefined : keys(key)
  if (scopes === undefined) throw new HubError(401, 'unauthorized', 'Missing or unknown API key')
  permits(scopes, needs)
  return scopes
}

/** Thrown if an option or a file is invalid. The message is for the user and never contains a key. */
export class EmulatorOptionError extends UsageError {
  override readonly name = 'EmulatorOptionError'
}

/** Reads `KEY=SCOPE,SCOPE`. The last `=` ends the key, because a key may be base64, and scopes contain no `=`. */
export function parseApiKey(text: string): { key: string; scopes: string[] } {
  const divide = text.lastIndexOf('=')
  if (divide < 1)
    throw new EmulatorOptionError('--api-key: expected KEY=SCOPE,SCOPE, for example secret=hub.app,hub.speech')
  const key = text.slice(0, divide)
  if (!VISIBLE.test(key)) throw new EmulatorOptionError('--api-key: a key must be visible ASCII characters')
  const scopes = text
    .slice(divide + 1)
    .split(',')
    .map((scope) => scope.trim())
    .filter((scope) => scope !== '')
  if (scopes.length === 0) throw new EmulatorOptionError('--api-key: expected a scope after "=", for example hub.app')
  checkScopes('--api-key', scopes)
  return { key, scopes }
}

/** Checks that all scopes are known. @throws EmulatorOptionError that names the option and the unknown scope */
export function checkScopes(option: string, scopes: readonly string[]): void {
  const wrong = scopes.find((scope) => !v.is(ScopeText, scope))
  if (wrong === undefined) return
  throw new EmulatorOptionError(`${option}: unknown scope "${wrong}"; expected one of ${WRITTEN}`)
}
