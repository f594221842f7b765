/** The apps of one hub as they are known: read over REST, kept true by the realtime events. */
import { type Clock, sleep } from '../base/clock.ts'
import { type App, type AppPatch, patchApp } from '../model/app.ts'
import { type AppEvent, type Apps, type Change, reduce } from '../model/reduce.ts'
import type { HubClient } from './client.ts'
import { HubError } from './errors.ts'

/** How long to wait before a list that is suddenly empty is read again and believed. */
const SECOND_LOOK_MS = 2000

export interface AppsNews {
  /** May be empty after a read. */
  readonly changes: readonly Change[]
  /** No events follow: nothing happened to the apps, they became known or configuration shows others. */
  readonly silent: boolean
  /** The whole list has just been read. */
  readonly read: boolean
}

export type AppsListener = (news: AppsNews) => void

export class AppManager {
  readonly #client: Pick<HubClient, 'call'>
  readonly #clock: Clock
  #shows: (id: string) => boolean
  /** The filter before `setFilter`, until the list has been read with the new one. */
  #formerlyShown: ((id: string) => boolean) | undefined
  readonly #apps = new Map<string, App>()
  readonly #listeners = new Set<AppsListener>()
  readonly #destroyed = new AbortController()
  #complete = false
  /** Whether the realtime channel keeps the list true. */
  #live = false
  /** Events that arrive during a read; they are laid over its list. */
  #meanwhile: AppEvent[] | undefined
  #reading: Promise<void> | undefined
  /** The read that begins when the present one has ended. */
  #nextRead: Promise<void> | undefined

  constructor(client: Pick<HubClient, 'call'>, clock: Clock, shows: (id: string) => boolean) {
    this.#client = client
    this.#clock = clock
    this.#shows = shows
  }

  get all(): Apps {
    return this.#apps
  }

  /** Whether the list has been read: before that, an app that is missing in `all` may exist all the same. */
  get complete(): boolean {
    return this.#complete
  }

  /** Whether configuration shows an app; what it hides is never known here. */
  shows(id: string): boolean {
    return this.#shows(id)
  }

  /**
   * Shows other apps from now on. Those left out are gone at once; those that come in arrive with the next read of the
   * list. Listeners are told of both as `silent`.
   */
  setFilter(shows: (id: string) => boolean): void {
    this.#formerlyShown ??= this.#shows
    this.#shows = shows
    const hidden = [...this.#apps.values()].filter(({ id }) => !shows(id))
    const changes = hidden.map((before) => ({ id: before.id, before, after: undefined }))
    if (changes.length > 0) this.#apply({ changes, silent: true, read: false })
  }

  /** Calls `listener` after each change and each read of the list; the returned function ends that. */
  subscribe(listener: AppsListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** While live, `getApps` and `getApp` answer from memory. Call with `true` only after a `refresh`. */
  setLive(live: boolean): void {
    this.#live = live
  }

  /** All apps: from memory while live, else read anew. A `filter` (the keys that must be equal) always reads anew. */
  async getApps(filter?: Readonly<Record<string, unknown>>): Promise<App[]> {
    if (filter !== undefined || !this.#live) await this.refresh()
    const apps = [...this.#apps.values()]
    if (filter === undefined) return apps
    const wanted = Object.entries(filter)
    return apps.filter((app) => wanted.every(([key, value]) => Reflect.get(app, key) === value))
  }

  /** One app: from memory while live, else read anew. @throws HubError `unknown_app` */
  async getApp(id: string): Promise<App> {
    const known = this.#apps.get(id)
    if (this.#live && known !== undefined) return known
    if (!this.#shows(id)) throw new HubError('unknown_app', 'The hub knows no such app.')
    const patch = await this.#client.call('getApp', { id })
    if (this.#complete) this.receive({ type: 'update', id, patch })
    return this.#apps.get(id) ?? patchApp(undefined, id, patch)
  }

  /** Takes in one realtime event. */
  receive(event: AppEvent): void {
    if (this.#destroyed.signal.aborted || !this.#shows(event.id)) return
    this.#meanwhile?.push(event)
    // Before the first list an event tells of one app only; it is laid over the list when that comes.
    if (!this.#complete || (this.#newlyShown(event.id) && !this.#apps.has(event.id))) return
    const changes = reduce(this.#apps, event)
    if (changes.length > 0) this.#apply({ changes, silent: false, read: false })
  }

  /**
   * Reads the list anew. A call during a read waits for another one that begins after it: the list then holds what the
   * caller knows of, such as the effect of a command or all events before a session. @throws HubError
   */
  refresh(): Promise<void> {
    if (this.#reading === undefined) return this.#startRead()
    this.#nextRead ??= this.#reading.catch(() => {}).then(() => this.#startRead())
    return this.#nextRead
  }

  /** Clears the cache and removes every listener; safe to call twice. */
  destroy(): void {
    this.#destroyed.abort()
    this.#listeners.clear()
    this.#forget()
  }

  /** Forgets all apps, as another hub answers at the address. Listeners are told of it as `silent`. */
  reset(): void {
    const changes = [...this.#apps.values()].map((before) => ({ id: before.id, before, after: undefined }))
    this.#apply({ changes, silent: true, read: false })
    this.#forget()
  }

  #forget(): void {
    this.#apps.clear()
    this.#complete = false
    this.#live = false
  }

  #startRead(): Promise<void> {
    this.#nextRead = undefined
    this.#reading = this.#read().finally(() => {
      this.#reading = undefined
      this.#meanwhile = undefined
    })
    return this.#reading
  }

  /** Whether an app comes in only because configuration has shown it since. */
  #newlyShown(id: string): boolean {
    return this.#formerlyShown !== undefined && !this.#formerlyShown(id)
  }

  async #read(): Promise<void> {
    const shows = this.#shows
    this.#meanwhile = []
    let records = await this.#readList()
    if (records.size === 0 && this.#apps.size > 0) {
      // A hub that is just starting can answer an empty list; believed at once it would erase everything.
      await sleep(this.#clock, SECOND_LOOK_MS, this.#destroyed.signal)
      records = await this.#readList()
    }
    if (this.#destroyed.signal.aborted) return
    const silent = !this.#complete
    const meanwhile = this.#meanwhile.filter(({ id }) => this.#shows(id))
    const changes = reduce(this.#apps, { type: 'snapshot', records, meanwhile })
    this.#complete = true
    const shownAnew = changes.filter(({ id, before }) => before === undefined && this.#newlyShown(id))
    if (shownAnew.length > 0) this.#apply({ changes: shownAnew, silent: true, read: false })
    if (shows === this.#shows) this.#formerlyShown = undefined
    this.#apply({ changes: changes.filter((change) => !shownAnew.includes(change)), silent, read: true })
  }

  async #readList(): Promise<Map<string, AppPatch>> {
    const records = await this.#client.call('getApps', {})
    for (const id of records.keys()) if (!this.#shows(id)) records.delete(id)
    return records
  }

  #apply(news: AppsNews): void {
    for (const { id, after } of news.changes) {
      if (after === undefined) this.#apps.delete(id)
      else this.#apps.set(id, after)
    }
    for (const listener of this.#listeners) listener(news)
  }
}
