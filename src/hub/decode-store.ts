/** Decodes responses of the public app store, which are untrusted input. */
import { isRecord, type Json } from '../base/json.ts'
import { tidy } from '../base/text.ts'
import { compareVersions, VERSION } from '../base/versions.ts'
import type { App } from './app.ts'
import { asItIs, shortText } from './decode.ts'
import type { Release } from './releases.ts'

/** Home Assistant's limit. */
const MAX_CHANGELOG = 255
const MAX_VERSION = 64

/** The releases of an app in the store, by channel. */
export type Offers = { readonly [C in 'live' | 'test']: Release | undefined }

/** The release that a hub would install, by the app's channel; without a channel, it installs the live one. */
const CHANNELS: ReadonlyMap<string | null, keyof Offers> = new Map([
  [null, 'live'],
  ['stable', 'live'],
  ['live', 'live'],
  ['beta', 'test'],
  ['test', 'test'],
])

/** Whether the store can have an app: it has no apps under development, and only ids of this form. */
export const isInStore = ({ id, origin, channel }: App) =>
  origin === 'appstore' && CHANNELS.has(channel) && /^[a-z0-9][\w.-]{0,127}$/i.test(id)

export function releaseFor({ channel }: App, { live, test }: Offers): Release | undefined {
  if (CHANNELS.get(channel) === 'live' || test === undefined) return live
  return live !== undefined && compareVersions(test.version, live.version) < 0 ? live : test
}

function isVersion(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_VERSION && VERSION.test(value)
}

/** Returns `undefined` if the response is not about the app. */
export function offersIn(id: string, answer: Json | undefined): Offers | undefined {
  if (!isRecord(answer) || answer['id'] !== id) return undefined
  const { liveVersion, liveBuild, testVersion, testBuild } = answer
  const changelog = (build: unknown) => (isRecord(build) ? build['changelog'] : undefined)
  return { live: releaseOf(liveVersion, changelog(liveBuild)), test: releaseOf(testVersion, changelog(testBuild)) }
}

export function releaseOf(version: unknown, changelog: unknown): Release | undefined {
  return isVersion(version) ? { version, changelog: lineOf(changelog) } : undefined
}

/** Adds the changelog. `log` has those of all versions: keyed by version, or a list, as its form is not documented. */
export function withChangelog(release: Release | undefined, log: Json | undefined): Release | undefined {
  if (release === undefined || release.changelog !== null) return release
  const isIt = (one: Json) => isRecord(one) && one['version'] === release.version
  const entry: unknown = Array.isArray(log) ? log.find(isIt) : isRecord(log) ? log[release.version] : undefined
  return releaseOf(release.version, isRecord(entry) ? (entry['changelog'] ?? entry) : entry)
}

/** Converts a text, or texts by language, to a line without HTML, links and images: Home Assistant renders Markdown. */
function lineOf(changelog: unknown): string | null {
  const text = isRecord(changelog) ? (changelog['en'] ?? Object.values(changelog)[0]) : changelog
  if (typeof text !== 'string') return null
  const plain = text
    .slice(0, 16 * MAX_CHANGELOG)
    .replaceAll('<', '‹')
    .replaceAll('>', '›')
  const line = tidy(plain.replaceAll('[', '(').replaceAll(']', ')'), MAX_CHANGELOG)
  return line === undefined ? null : shortText(line, MAX_CHANGELOG, asItIs)
}
