import type { Clock } from '../../../base/clock.ts'
import { isRecord } from '../../../base/json.ts'
import { Limiter } from '../../../base/limiter.ts'
import type { Hub } from '../../../hub/hub.ts'

type Icon = { readonly type: string; readonly body: Buffer }

export type Hubs = ReadonlyMap<string, { readonly hub: Pick<Hub, 'apps' | 'call' | 'client'> }>

const MAX_ICON_BYTES = 256 * 1024
const MAX_BYTES = 8 * 1024 * 1024
/** The assumed size of a cache entry without its icon. */
const ENTRY_BYTES = 256
/** Maximum number of parallel icon requests, for all hubs together, so that commands need not wait for icons. */
const AT_ONCE = 2

export class Icons {
  readonly #hubs: Hubs
  readonly #limiter: Limiter
  readonly #cached = new Map<string, Icon | undefined>()
  #bytes = 0
  readonly #loading = new Map<string, Promise<Icon | undefined>>()

  constructor(hubs: Hubs, clock: Clock) {
    this.#hubs = hubs
    this.#limiter = new Limiter({ slots: AT_ONCE, clock })
  }

  /** Returns the icon of an app; `undefined` if the hub does not have the icon or the app. @throws HubError */
  async get(hubName: string, id: string): Promise<Icon | undefined> {
    const hub = this.#hubs.get(hubName)?.hub
    const app = hub?.apps.all.get(id)
    if (hub === undefined || app === undefined) return undefined
    // Include the version in the key, because a new version of an app may have a new icon.
    const key = JSON.stringify([hubName, id, app.version])
    if (this.#cached.has(key)) return this.#keep(key, this.#cached.get(key))
    const load = async () => this.#keep(key, await this.#limiter.run({}, () => fetchIcon(hub, id)))
    const loading = this.#loading.get(key) ?? load().finally(() => this.#loading.delete(key))
    this.#loading.set(key, loading)
    return await loading
  }

  /** Moves an entry to the end, as the most recently used one, and removes the oldest entries beyond the size limit. */
  #keep(key: string, icon: Icon | undefined): Icon | undefined {
    if (!this.#cached.delete(key)) this.#bytes += sizeOf(icon)
    this.#cached.set(key, icon)
    for (const [oldest, other] of this.#cached) {
      if (this.#bytes <= MAX_BYTES) break
      this.#cached.delete(oldest)
      this.#bytes -= sizeOf(other)
    }
    return icon
  }
}

const sizeOf = (icon: Icon | undefined) => ENTRY_BYTES + (icon?.body.length ?? 0)

async function fetchIcon(hub: Pick<Hub, 'call' | 'client'>, id: string): Promise<Icon | undefined> {
  const { iconObj, icon } = await hub.call('getAppRecord', { id })
  for (const path of [isRecord(iconObj) ? iconObj['url'] : undefined, icon]) {
    const body = typeof path === 'string' ? await hub.client.file(path, MAX_ICON_BYTES) : undefined
    const type = body && typeOf(body)
    if (body !== undefined && type !== undefined) return { type, body }
  }
  return undefined
}

/** What may precede `<svg` in an XML document: the start and the end of each part. */
const PROLOGUE: readonly (readonly [start: RegExp, end: string])[] = [
  [/^<\?xml\s/, '?>'],
  [/^<!--/, '-->'],
  [/^<!doctype\s+svg\b/, '>'],
]

/** Detects the media type, because the hub's header may be wrong. Returns `undefined` for an unknown type. */
export function typeOf(body: Buffer): string | undefined {
  const start = body.toString('latin1', 0, 12)
  if (start.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (start.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (start.startsWith('RIFF') && start.endsWith('WEBP')) return 'image/webp'
  return isSvg(body.toString('utf8', 0, 4096)) ? 'image/svg+xml' : undefined
}

function isSvg(text: string): boolean {
  // `trimStart` also removes a byte order mark.
  let rest = text.trimStart().toLowerCase()
  for (;;) {
    const [start, end] = PROLOGUE.find(([one]) => one.test(rest)) ?? []
    if (start === undefined || end === undefined) return /^<svg[\s/>]/.test(rest)
    const [{ length }] = start.exec(rest) ?? ['']
    const at = rest.indexOf(end, length)
    if (at === -1) return false
    rest = rest.slice(at + end.length).trimStart()
  }
}
