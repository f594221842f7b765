/**
 * Looks up the newest version and the changelog of each installed app in the public app store, once a day, if enabled.
 * Sends only the app's id: no API key, no version, and nothing about the hub.
 */
import type { Logger } from 'pino'
import { type Clock, sleep } from '../base/clock.ts'
import { isRecord, type Json, parseJson } from '../base/json.ts'
import { tidy } from '../base/text.ts'
import { compareVersions, VERSION } from '../base/versions.ts'
import { type Answer, parse } from './answer.ts'
import type { App } from './app.ts'
import type { AppManager } from './app-manager.ts'
import { asItIs, shortText } from './decode.ts'
import { asHubError } from './errors.ts'
import { HttpClient } from './http-client.ts'
import { retryAfter } from './refusal.ts'
import { newerThan, type Release } from './releases.ts'

export const STORE_URL = 'https://apps-api.athom.com/api/v1'

interface StoreEntry {
  /** The app's releases; `null` if the store was unreachable for days, `undefined` before the store's first answer. */
  readonly releases: Offers | null | undefined
  /** When the store last answered, in `clock.elapsed()` milliseconds, like `dueAt`. */
  readonly answeredAt: number
  readonly dueAt: number
}

interface Followed {
  readonly apps: Pick<AppManager, 'all' | 'ended' | 'learn' | 'releases'>
  readonly onRelease: (id: string) => void
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** How long a response is valid while the store is unreachable. */
const VALID_MS = 2 * DAY_MS
const APART_MS = 2_000
const TIMEOUT_MS = 15_000
/** Maximum size of a response, which contains the app's whole manifest. */
const MAX_BYTES = 1024 * 1024
const MAX_APPS = 5_000

interface StoreAccess {
  readonly url: string
  readonly isOn: () => boolean
  /** Returns whether this process is active and not on standby. */
  readonly isActive: () => boolean
  readonly clock: Clock
  readonly log: Logger
  readonly random: () => number
}

export class Store implements AsyncDisposable {
  readonly #options: StoreAccess
  readonly #client: HttpClient
  readonly #followed = new Map<string, Followed>()
  readonly #entries = new Map<string, StoreEntry>()
  /** Set while look-ups are enabled. */
  #running: AbortController | undefined
  #failing = false

  constructor(options: StoreAccess) {
    this.#options = options
    const { url, clock } = options
    this.#client = new HttpClient({ url, apiKey: () => '', timeoutMs: TIMEOUT_MS, maxRequests: 1 }, clock)
  }

  follow(hub: string, apps: Followed['apps'], onRelease: Followed['onRelease']): void {
    this.#followed.set(hub, { apps, onRelease })
  }

  reconfigured(): void {
    const { isOn, log } = this.#options
    if (isOn() === (this.#running !== undefined)) return
    this.#running?.abort()
    this.#running = undefined
    if (!isOn()) {
      this.#forget()
      return
    }
    log.info('looking up each installed app in the public store, once a day (updates.store)')
    this.#running = new AbortController()
    void this.#run(this.#running.signal)
  }

  /** Restores an app's release from the previous run's message. The release is valid until the store responds. */
  recall(hub: string, id: string, payload: string): void {
    const followed = this.#followed.get(hub)
    if (this.#running === undefined || followed === undefined || this.#entries.has(id)) return
    const published = parseJson(payload)
    const { latest_version, release_summary } = isRecord(published) ? published : {}
    const release = releaseOf(latest_version, release_summary)
    // Two topics contain the version. The one without a changelog must not replace a complete release.
    const isLessComplete = release?.changelog === null && followed.apps.releases.all.has(id)
    if (release !== undefined && !isLessComplete && followed.apps.learn(id, release)) followed.onRelease(id)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#running?.abort()
    await this.#client.close()
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, isActive, random } = this.#options
    let pause = MINUTE_MS * (0.1 + 0.9 * random())
    for (;;) {
      await sleep(clock, pause, signal)
      pause = MINUTE_MS
      for (const id of signal.aborted || !isActive() ? [] : this.#due()) {
        pause = Math.max(pause, await this.#lookUp(id, signal))
        if (pause > MINUTE_MS) break
        await sleep(clock, APART_MS, signal)
        if (signal.aborted || !isActive()) break
      }
      if (signal.aborted) return
    }
  }

  /** Returns the apps to look up, longest overdue first. Passes known releases to hubs, and drops unused releases. */
  #due(): string[] {
    const wanted = new Set<string>()
    for (const [hub, { apps }] of this.#followed) {
      if (apps.ended.aborted) this.#followed.delete(hub)
      for (const app of apps.all.values()) {
        if (isInStore(app) && wanted.size < MAX_APPS) wanted.add(app.id)
        this.#share(hub, app)
      }
    }
    for (const id of this.#entries.keys()) if (!wanted.has(id)) this.#entries.delete(id)
    const now = this.#options.clock.elapsed()
    const dueAt = (id: string) => this.#entries.get(id)?.dueAt ?? 0
    return [...wanted].filter((id) => dueAt(id) <= now).sort((one, other) => dueAt(one) - dueAt(other))
  }

  #share(hub: string, app: App): void {
    const { releases } = this.#entries.get(app.id) ?? {}
    if (releases === undefined && isInStore(app)) return
    const release = releases && isInStore(app) ? releaseFor(app, releases) : undefined
    const { apps, onRelease } = this.#followed.get(hub) ?? {}
    if (apps?.learn(app.id, release)) onRelease?.(app.id)
  }

  /** Looks up one app. Resolves to the pause that the store requires afterwards, in milliseconds; 0 for none. */
  async #lookUp(id: string, signal: AbortSignal): Promise<number> {
    const { clock, log, random } = this.#options
    const { releases, ...failure } = await this.#fetch(id, signal)
    if (signal.aborted) return 0
    const now = clock.elapsed()
    const before = this.#entries.get(id) ?? { releases: undefined, answeredAt: now }
    const cached = { ...before, ...(now - before.answeredAt > VALID_MS && { releases: null }) }
    const { pause = 0 } = failure
    const wait = releases === undefined ? Math.max(HOUR_MS, pause) : DAY_MS
    const dueAt = now + wait * (1 + 0.1 * random())
    this.#entries.set(id, releases === undefined ? { ...cached, dueAt } : { releases, answeredAt: now, dueAt })
    if (releases === undefined && !this.#failing)
      log.warn({ app: id, ...failure }, 'a look-up in the public store failed')
    this.#failing = releases === undefined
    for (const [hub, { apps }] of this.#followed) {
      const app = apps.all.get(id)
      if (app !== undefined) this.#share(hub, app)
    }
    return pause
  }

  async #fetch(
    id: string,
    signal: AbortSignal,
  ): Promise<{ releases?: Offers; code?: string | number; pause?: number }> {
    const path = `/app/${encodeURIComponent(id)}`
    try {
      const answer = await this.#get(path)
      if (answer.status === 404) return { releases: { live: undefined, test: undefined } }
      const releases = answer.status === 200 ? offersIn(id, parse(answer)) : undefined
      if (releases === undefined) return { code: answer.status, ...this.#pauseOf(answer) }
      if (!this.#lacksChangelog(id, releases)) return { releases }
      await sleep(this.#options.clock, APART_MS, signal)
      const changelog = signal.aborted ? undefined : await this.#get(`${path}/changelog`)
      const log = changelog?.status === 200 ? parse(changelog) : undefined
      return { releases: { live: withChangelog(releases.live, log), test: withChangelog(releases.test, log) } }
    } catch (error) {
      const { code } = asHubError(error)
      return { code, ...(code !== 'nonsense' && { pause: HOUR_MS }) }
    }
  }

  #get(path: string): Promise<Answer> {
    return this.#client.request('GET', path, { key: false, maxBytes: MAX_BYTES })
  }

  /** Returns a pause of an hour or more if the store is overloaded or fails. */
  #pauseOf(answer: Answer): { pause?: number } {
    if (answer.status !== 429 && answer.status < 500) return {}
    return { pause: Math.max(HOUR_MS, retryAfter(answer, this.#options.clock.now(), DAY_MS) ?? 0) }
  }

  #lacksChangelog(id: string, releases: Offers): boolean {
    return this.#followed.values().some(({ apps }) => {
      const app = apps.all.get(id)
      if (app === undefined) return false
      const release = releaseFor(app, releases)
      return release?.changelog === null && newerThan(app, release) !== null
    })
  }

  #forget(): void {
    this.#entries.clear()
    for (const { apps, onRelease } of this.#followed.values()) {
      for (const id of [...apps.releases.all.keys()]) if (apps.learn(id, undefined)) onRelease(id)
    }
  }
}

/** Home Assistant's limit for a release summary. */
const MAX_CHANGELOG = 255
const MAX_VERSION = 64

type Offers = { readonly [C in 'live' | 'test']: Release | undefined }

/** Maps an app's channel to the release that a hub would install. Without a channel, this is the live release. */
const CHANNELS: ReadonlyMap<string | null, keyof Offers> = new Map([
  [null, 'live'],
  ['stable', 'live'],
  ['live', 'live'],
  ['beta', 'test'],
  ['test', 'test'],
])

/** Returns whether the store may list an app. The store lists no apps under development, and only ids of this form. */
const isInStore = ({ id, origin, channel }: App) =>
  origin === 'appstore' && CHANNELS.has(channel) && /^[a-z0-9][\w.-]{0,127}$/i.test(id)

function releaseFor({ channel }: App, { live, test }: Offers): Release | undefined {
  if (CHANNELS.get(channel) === 'live' || test === undefined) return live
  return live !== undefined && compareVersions(test.version, live.version) < 0 ? live : test
}

/** Returns `undefined` if the response is not about the app. */
function offersIn(id: string, answer: Json | undefined): Offers | undefined {
  if (!isRecord(answer) || answer['id'] !== id) return undefined
  const { liveVersion, liveBuild, testVersion, testBuild } = answer
  const changelog = (build: unknown) => (isRecord(build) ? build['changelog'] : undefined)
  return { live: releaseOf(liveVersion, changelog(liveBuild)), test: releaseOf(testVersion, changelog(testBuild)) }
}

function releaseOf(version: unknown, changelog: unknown): Release | undefined {
  const isVersion = typeof version === 'string' && version.length <= MAX_VERSION && VERSION.test(version)
  return isVersion ? { version, changelog: lineOf(changelog) } : undefined
}

/** Adds the changelog from `log`. In this undocumented format, the versions are keys of an object, or in an array. */
function withChangelog(release: Release | undefined, log: Json | undefined): Release | undefined {
  if (release === undefined || release.changelog !== null) return release
  const isMatch = (one: Json) => isRecord(one) && one['version'] === release.version
  const entry: unknown = Array.isArray(log) ? log.find(isMatch) : isRecord(log) ? log[release.version] : undefined
  return releaseOf(release.version, isRecord(entry) ? (entry['changelog'] ?? entry) : entry)
}

/** Returns one line, in English if available, without HTML, links or images, which Home Assistant would render. */
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
