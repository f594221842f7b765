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
  /** Nothing happened to the apps: they became known, or configuration shows others. No events follow. */
  readonly silent: boolean
  /** The whole list has just been read. */
  readonly read: boolean
}

export type AppsListener = (news: AppsNews) => void

export class AppManager {
  readonly #client: Pick<HubClient, 'call'>
  readonly #clock: Clock
  #shows: (id: string) => boolean
  /** What was shown before configuration changed that, until the list has been read since. */
  #showed: ((id: string) => boolean) | undefined
  readonly #apps = new Map<string, App>()
  readonly #listeners = new Set<AppsListener>()
  readonly #destroyed = new AbortController()
  /** Whether the list has been read at all. */
  #complete = false
  /** Whether the realtime channel keeps the list true. */
  #live = false
  /** Events of the read under way. */
  #meanwhile: AppEvent[] | undefined
  #reading: Promise<void> | undefined
  #waiting: Promise<void> | undefined

  constructor(client: Pick<HubClient, 'call'>, clock: Clock, shows: (id: string) => boolean) {
    this.#client = client
    this.#clock = clock
    this.#shows = shows
  }

  get all(): Apps {
    return this.#apps
  }

  /** Whether `all` is the hub's list: before the first good read nothing may be concluded from what is missing. */
  get complete(): boolean {
    return this.#complete
  }

  /** Whether configuration leaves an app to be seen; one that is left out does not exist for anybody here. */
  shows(id: string): boolean {
    return this.#shows(id)
  }

  /**
   * Shows other apps from now on. Those left out are gone at once; those that come in arrive with the next read of the
   * list. Neither is news: nothing happened to the app.
   */
  setFilter(shows: (id: string) => boolean): void {
    this.#showed ??= this.#shows
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
   * Reads the list anew. A call during a read waits for the next one, which begins after the call: what the caller
   * knows of (a session that just came up, a command just done) is then in it.
   */
  refresh(): Promise<void> {
    if (this.#reading === undefined) return this.#startRead()
    this.#waiting ??= this.#reading.catch(() => {}).then(() => this.#startRead())
    return this.#waiting
  }

  /** Clears the cache and removes every listener; safe to call twice. */
  destroy(): void {
    this.#destroyed.abort()
    this.#listeners.clear()
    this.#forget()
  }

  /** Starts over, as another hub answers at the address: its apps are facts, not news. */
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
    this.#waiting = undefined
    this.#reading = this.#read().finally(() => {
      this.#reading = undefined
      this.#meanwhile = undefined
    })
    return this.#reading
  }

  #newlyShown(id: string): boolean {
    return this.#showed !== undefined && !this.#showed(id)
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
    const facts = changes.filter(({ id, before }) => before === undefined && this.#newlyShown(id))
    if (facts.length > 0) this.#apply({ changes: facts, silent: true, read: false })
    if (shows === this.#shows) this.#showed = undefined
    this.#apply({ changes: changes.filter((change) => !facts.includes(change)), silent, read: true })
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
