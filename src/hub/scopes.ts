/** Permissions of an API key: `hub.app.control` and the wire's `homey.app.control` are the same one. */

/** The form in which scopes are compared and shown: with `hub.` in front. */
export function normaliseScope(scope: string): string {
  return scope.replace(/^homey(?=\.|$)/, 'hub')
}

/**
 * Whether a key with `granted` scopes has `needed`: a scope grants what it prefixes, part by part.
 * `undefined` (the hub did not tell) grants everything: the hub itself will refuse.
 */
export function grants(granted: readonly string[] | undefined, needed: string | undefined): boolean {
  if (granted === undefined || needed === undefined) return true
  return granted.some((scope) => needed === scope || needed.startsWith(`${scope}.`))
}
