/** Paths of requests and the templates that they are held against. */
import { withoutSlashes } from '../base/text.ts'
import { HubError } from './hub-error.ts'

/** The segments of a path that begins with a slash; those at the end do not count. */
export const split = (path: string): string[] => withoutSlashes(path).split('/').slice(1)

/** The parameters of a path that fits the template, where `:name` stands for one; `undefined` for one that does not. */
export function fill(
  template: readonly string[],
  segments: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (template.length !== segments.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, part] of template.entries()) {
    const segment = segments[index] ?? ''
    if (part.startsWith(':')) params[part.slice(1)] = decode(segment)
    else if (part !== segment) return undefined
  }
  return params
}

/** @throws HubError 400 */
export function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new HubError(400, 'invalid_path', 'Malformed percent encoding')
  }
}
