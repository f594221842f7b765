/** The icons of apps, which a hub gives to everybody who asks for the path that the app's record names. */
import { isRecord } from '../base/json.ts'
import type { AppRecord } from './records.ts'

const COLOUR = /^#[0-9a-f]{6}$/i

/** SVG of the app whose record names this path; `undefined` for none. */
export function iconAt(path: string, records: ReadonlyMap<string, AppRecord>): string | undefined {
  for (const record of records.values()) {
    const { icon, iconObj, name, brandColor } = record
    const paths = [isRecord(iconObj) ? iconObj['url'] : undefined, icon]
    if (!paths.includes(path)) continue
    const colour = typeof brandColor === 'string' && COLOUR.test(brandColor) ? brandColor : '#4A6572'
    const initial = typeof name === 'string' ? (/[a-z]/i.exec(name)?.[0] ?? '') : ''
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 960"><circle cx="480" cy="480" r="440" fill="${colour}"/><text x="480" y="660" font-family="sans-serif" font-size="520" text-anchor="middle" fill="#fff">${initial}</text></svg>`
  }
  return undefined
}
