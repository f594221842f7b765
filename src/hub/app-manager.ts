/** The apps of one hub, which are read over REST and kept current by realtime events. */
import { setImmediate as turn } from 'node:timers/promises'
import { type Clock, sleep } from '../base/clock.ts'
import {
  type App,
  type AppEvent,
  type AppList,
  type Apps,
  type Change,
  patchApp,
  reduceEvent,
  reduceList,
} from './app.ts'
import type { HubClient } from './client.ts'
import { HubError } from './errors.ts'
import type { ProvenHub } from './proven-hub.ts'
import { type Release, Releases } from './releases.ts'

/** A list that lacks a known app is read again after this pause. */
const REREAD_DELAY_MS = 2000
/** After this many reads, counting the first, the latest list is accepted even if it differs from the one before it. */
const MAX_READS = 5
/** Number of changes to apply in one turn of the event loop, because thousands of changes would block it. */
const AT_ONCE = 500
/** Maximum delay of an event. On a slow channel, an event may arrive after a newer list. */
const OVERTAKEN_MS = 60_000

export interface AppsUpdate {
  /** The changed apps; empty if a read of the list has found no changes. */
  readonly changes: readonly Change[]
  /** Whether to send no events, because existing apps have only become known, or because the filter has changed. */
  readonly silent: boolean
  /** Whether these changes complete a read of the list. */
  readonly read: boolean
}

export type AppsListener = (update: AppsUpdate) => void

interface ListClient extends Pick<HubClient, 'call'> {
  readonly hub: Pick<ProvenHub, 'confirm' | 'listSigned'>
}

export class AppManager {
  readonly #client: ListClient
  readonly #onUnknownApp: () => void
  readonly #clock: Clock
  /** Returns whether the configuration shows an app; hidden apps are ignored. Changed only by `setFilter`. */
  shows: (id: string) => boolean
  /** The filter with which the list was last read; `undefined` if the filter has not changed since. */
  #formerlyShown: ((id: string) => boolean) | undefined
  readonly #hidden = new Set<string>()
  readonly #apps = new Map<string, App>()
  readonly all: Apps = this.#apps
  readonly #listeners = new Set<AppsListener>()
  readonly #destroyed = new AbortController()
  readonly ended = this.#destroyed.signal
  /** Whether the list has been read. Before that, an app missing from `all` may exist. Set only by this class. */
  complete = false
  /** Set by `Upkeep` if the first list lacks apps that an earlier run published: in the next list, they are not new. */
  firstIsPartial = false
  /** Whether the realtime channel keeps the list current, so that reads need no request. Set by `Session`. */
  live = false
  #eventsDuringRead: AppEvent[] | undefined
  /** When each app disappeared from the list. A `create` event soon afterwards may be older than the list. */
  readonly #unlisted = new Map<string, number>()
  readonly releases = new Releases()
  /** Apps that the hub has confirmed as uninstalled. A list without them is accepted immediately. */
  readonly #uninstalled = new Set<string>()
  #reading: Promise<void> | undefined
  #nextRead: Promise<void> | undefined

  /** Set while the known apps belong to the previous hub. Called after their removal, before the new apps appear. */
  #onReplaced: (() => void) | undefined
  /** Increases when a different hub answers at this address, and when the known hub answers there again. */
  generation = 0

  /** @param onUnknownApp called when an event is about an unlisted app, so that the list is read again */
  constructor(client: ListClient, clock: Clock, shows: (id: string) => boolean, onUnknownApp: () => void) {
    this.#client = client
    this.#clock = clock
    this.shows = shows
    this.#onUnknownApp = onUnknownApp
  }

  /** Removes newly hidden apps immediately; newly shown apps appear with the next read. Both changes are `silent`. */
  setFilter(shows: (id: string) => boolean): void {
    this.#formerlyShown ??= this.shows
    this.shows = shows
    this.hideUnshown()
  }

  /** Removes apps that the filter hides, because the filter's result may change without a call to `setFilter`. */
  hideUnshown(): void {
    const hidden = [...this.#apps.values()].filter(({ id }) => !this.shows(id))
    for (const { id } of hidden) this.#hidden.add(id)
    const changes = hidden.map((before) => ({ id: before.id, before, after: undefined }))
    if (changes.length > 0) this.#apply({ changes, silent: true, read: false })
  }

  subscribe(listener: AppsListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Returns the apps by id. With a filter, even an empty one, always reads the list.
   * @param filter maps keys to required values
   * @throws HubError `unreachable` after `destroy`
   */
  async getApps(filter?: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, App>>> {
    this.#refuseIfDestroyed()
    if (filter !== undefined || !this.live || !this.complete) await this.refresh()
    const wanted = Object.entries(filter ?? {})
    const isWanted = (app: App) => wanted.every(([key, value]) => Reflect.get(app, key) === value)
    return Object.fromEntries([...this.#apps].filter(([, app]) => isWanted(app)))
  }

  /** Reads the app if the list is not `live`. @throws HubError `unknown_app`, or `unreachable` after `destroy` */
  async getApp(id: string): Promise<App> {
    this.#refuseIfDestroyed()
    const known = this.#apps.get(id)
    return this.live && known !== undefined ? known : await this.readApp(id)
  }

  /** Reads one app from the hub, even if the list is `live`. @throws the errors of `getApp` */
  async readApp(id: string): Promise<App> {
    for (let reads = 1; ; reads += 1) {
      this.#refuseIfDestroyed()
      if (!this.shows(id)) throw new HubError('unknown_app', 'The hub knows no such app.')
      const known = this.#apps.get(id)
      const patch = await this.#client.call('getApp', { id })
      // Read again if an event arrived during the request, because the event is newer, but may be partial.
      const isOvertaken = this.complete && this.#apps.get(id) !== known
      if (isOvertaken && reads < MAX_READS) continue
      if (this.complete && !isOvertaken) this.receive({ type: 'update', id, patch })
      return this.#apps.get(id) ?? patchApp(undefined, id, patch)
    }
  }

  /** Accepts the app's next `create` event, even if the app has just disappeared, because an install was requested. */
  expect(id: string): void {
    this.#unlisted.delete(id)
  }

  /** Accepts lists without the app, because the hub has confirmed its uninstallation. */
  expectRemoved(id: string): void {
    this.#uninstalled.add(id)
  }

  /** Records an app's release. Returns whether it changed. The first release is `silent`, because it may be old. */
  learn(id: string, release: Release | undefined): boolean {
    const silent = !this.releases.all.has(id)
    const before = this.#apps.get(id)
    const patch = this.releases.learn(id, release, before)
    const after = before && patch && patchApp(before, id, patch)
    if (after !== before && after !== undefined) {
      this.#apply({ changes: [{ id, before, after }], silent, read: false })
    }
    return patch !== undefined
  }

  receive(event: AppEvent): void {
    const { type, id } = event
    const isFilled = event.type !== 'delete' && this.releases.all.size > 0
    const filled = isFilled ? { ...event, patch: this.releases.fill(id, event.patch, this.#apps.get(id)) } : event
    // Hidden apps are removed from `#apps`, so a known app is not hidden.
    const isKnown = this.#apps.has(id)
    if (!isKnown && (this.ended.aborted || !this.shows(id))) return
    if (type === 'delete') this.#unlisted.delete(id)
    if (type === 'create' && this.#mayBeOvertaken(id)) return void this.#onUnknownApp()
    this.#eventsDuringRead?.push(filled)
    // Do not apply the event here, because the current or next read of the list includes the change.
    if (!this.complete || (!isKnown && this.#newlyShown(id))) return
    if (type === 'update' && !isKnown) return void this.#onUnknownApp()
    const change = reduceEvent(this.#apps, filled)
    if (change !== undefined) this.#apply({ changes: [change], silent: false, read: false })
  }

  /**
   * Reads the list. A call during a read starts another read, which reflects everything that happened before the call.
   * @throws HubError
   */
  refresh(): Promise<void> {
    if (this.ended.aborted) return Promise.resolve()
    if (this.#reading === undefined) return this.#startRead()
    this.#nextRead ??= this.#reading.catch(() => {}).then(() => this.#startRead())
    return this.#nextRead
  }

  /** Clears all caches, removes all listeners without notifying them, and stops reading. Safe to call twice. */
  destroy(): void {
    this.#destroyed.abort()
    this.#listeners.clear()
    this.#eventsDuringRead = undefined
    this.#onReplaced = undefined
    this.#formerlyShown = undefined
    this.#forget()
  }

  #refuseIfDestroyed(): void {
    if (this.ended.aborted) throw new HubError('unreachable', 'The hub is no longer in use.')
  }

  /**
   * Prepares for a different hub at this address. After its list has been read, the known apps are removed,
   * `onReplaced` is called, and the new apps appear, all as `silent` changes.
   */
  expectOther(onReplaced: () => void): void {
    this.#onReplaced = onReplaced
    this.live = false
    this.generation += 1
    // Drop these events, because they are from the previous hub.
    if (this.#eventsDuringRead !== undefined) this.#eventsDuringRead = []
  }

  /** Cancels `expectOther`, because the known hub answers again. */
  expectSame(): void {
    if (this.#onReplaced === undefined) return
    this.#onReplaced = undefined
    this.generation += 1
  }

  /** If another hub is expected (see `expectOther`), removes the previous hub's apps and calls `onReplaced`. */
  replaceNow(): void {
    const onReplaced = this.#onReplaced
    if (onReplaced === undefined) return
    this.#onReplaced = undefined
    const changes = [...this.#apps.values()].map((before) => ({ id: before.id, before, after: undefined }))
    this.#apply({ changes, silent: true, read: false })
    this.#forget()
    onReplaced()
  }

  #forget(): void {
    this.#apps.clear()
    this.#unlisted.clear()
    this.#uninstalled.clear()
    this.#hidden.clear()
    this.releases.all.clear()
    this.complete = false
    this.firstIsPartial = false
    this.live = false
  }

  #startRead(): Promise<void> {
    this.#nextRead = undefined
    this.#reading = this.#read().finally(() => {
      this.#reading = undefined
      this.#eventsDuringRead = undefined
    })
    return this.#reading
  }

  #newlyShown(id: string): boolean {
    return this.#hidden.has(id) || this.#formerlyShown?.(id) === false
  }

  #filterApplied(): void {
    this.#formerlyShown = undefined
    for (const id of this.#hidden) if (this.shows(id)) this.#hidden.delete(id)
  }

  async #read(): Promise<void> {
    const shows = this.shows
    this.#eventsDuringRead = []
    const records = await this.#readConfirmed()
    if (this.ended.aborted) return
    this.replaceNow()
    const silent = !this.complete
    const generation = this.generation
    this.#rememberUnlisted(records)
    this.#uninstalled.clear()
    for (;;) {
      const eventsDuringRead = this.#eventsDuringRead.filter(({ id }) => this.shows(id))
      const list = this.releases.all.size > 0 ? this.releases.fillAll(records, this.#apps) : records
      const changes = reduceList(this.#apps, list, eventsDuringRead)
      const read = changes.length <= AT_ONCE
      this.complete ||= read
      const { newlyShown = [], others = [] } = Object.groupBy(changes.slice(0, AT_ONCE), ({ id, before }) =>
        before === undefined && (this.firstIsPartial || this.#newlyShown(id)) ? 'newlyShown' : 'others',
      )
      if (newlyShown.length > 0) this.#apply({ changes: newlyShown, silent: true, read: false })
      if (read) this.firstIsPartial = false
      if (read && shows === this.shows) this.#filterApplied()
      this.#apply({ changes: others, silent, read })
      if (read) return
      await turn()
      if (this.ended.aborted) return
      // Read again if the remaining changes are from a different hub, or were selected by a different filter.
      if (generation !== this.generation || shows !== this.shows) return await this.#read()
    }
  }

  #mayBeOvertaken(id: string): boolean {
    const at = this.#unlisted.get(id)
    return at !== undefined && this.#clock.elapsed() - at < OVERTAKEN_MS
  }

  #rememberUnlisted(records: AppList): void {
    const now = this.#clock.elapsed()
    for (const id of this.#unlisted.keys()) {
      if (records.has(id) || !this.#mayBeOvertaken(id)) this.#unlisted.delete(id)
    }
    for (const id of this.#apps.keys()) if (!records.has(id)) this.#unlisted.set(id, now)
  }

  /**
   * Reads the list. If it lacks known apps, reads it again until two consecutive lists have the same apps: a hub may
   * omit apps, for example while starting. Only apps that both lists lack are removed. An empty list in place of known
   * apps is accepted only after `MAX_READS` reads.
   */
  async #readConfirmed(): Promise<AppList> {
    let before: AppList = new Map()
    let list = await this.#readVerified()
    for (let reads = 1; reads < MAX_READS && this.#isDoubtful(list); reads += 1) {
      await sleep(this.#clock, REREAD_DELAY_MS, this.ended)
      before = list
      list = await this.#readVerified()
      if (list.size > 0 && sameKeys(before, list)) break
    }
    const missedOnce = [...before.keys()].filter((id) => !list.has(id) && !this.#uninstalled.has(id))
    return new Map([...list, ...missedOnce.map((id) => [id, undefined] as const)])
  }

  #isDoubtful(list: AppList): boolean {
    if (this.#onReplaced !== undefined) return false
    if (this.firstIsPartial && list.size === 0) return true
    return [...this.#apps.keys()].some((id) => !list.has(id) && !this.#uninstalled.has(id))
  }

  /** Returns a list that is verified: it has the hub's id or the known apps, or a ping confirms the hub. */
  async #readVerified(): Promise<AppList> {
    for (;;) {
      const generation = this.generation
      const list = await this.#client.call('getApps', {})
      for (const id of list.keys()) if (!this.shows(id)) list.delete(id)
      if (!this.#client.hub.listSigned && this.#isUnexpected(list)) await this.#client.hub.confirm()
      if (generation === this.generation) return list
    }
  }

  #isUnexpected(list: AppList): boolean {
    return !this.complete || this.#onReplaced !== undefined || !sameKeys(list, this.#apps)
  }

  #apply(update: AppsUpdate): void {
    for (const { id, after } of update.changes) {
      if (after !== undefined) this.#apps.set(id, after)
      else {
        this.#apps.delete(id)
        this.releases.all.delete(id)
      }
    }
    for (const listener of this.#listeners) listener(update)
  }
}

function sameKeys(one: ReadonlyMap<string, unknown>, other: ReadonlyMap<string, unknown>): boolean {
  return one.size === other.size && [...one.keys()].every((id) => other.has(id))
}
