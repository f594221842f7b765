/** By which names the listener may be reached: a page whose own name leads here must not read what is answered. */
import { isIP } from 'node:net'

/**
 * Whether a `Host` header names this listener: any IP address, `localhost`, or one of `names`. A request without the
 * header comes from no browser.
 */
export function mayAsk(header: string | undefined, names: readonly string[]): boolean {
  if (header === undefined) return true
  const [, address, name = ''] = /^(?:\[([^\]]*)\]|([^\s:/?#@[\]]+))(?::\d*)?$/.exec(header) ?? []
  if (address !== undefined) return isIP(address) === 6
  const asked = name.toLowerCase()
  return isIP(asked) === 4 || asked === 'localhost' || names.some((allowed) => allowed.toLowerCase() === asked)
}
