/** The icons of apps, from the hub: checked by what they are, and kept in memory within bounds. */
import { isRecord } from '../../../base/json.ts'
import type { Hub } from '../../../hub/hub.ts'

export interface Icon {
  readonly type: string
  readonly body: Buffer
}

export type Hubs = ReadonlyMap<string, { readonly hub: Pick<Hub, 'apps' | 'call' | 'file'> }>

const MAX_ICON_BYTES = 256 * 1024
/** All together. */
const MAX_BYTES = 8 * 1024 * 1024
/** What an entry without an icon counts. */
const ENTRY_BYTES = 256
/** At once, so that commands need not wait for pictures. */
const AT_ONCE = 2

export class Icons {
  readonly #hubs: Hubs
  /** The longest unused first. */
  readonly #kept = new Map<string, Icon | undefined>()
  #bytes = 0
  readonly #loading = new Map<string, Promise<Icon | undefined>>()
  readonly #waiting: (() => void)[] = []
  #active = 0

  constructor(hubs: Hubs) {
    this.#hubs = hubs
  }

  /** `undefined`: the hub has none, or there is no such app. @throws HubError */
  async get(hubName: string, id: string): Promise<Icon | undefined> {
    const hub = this.#hubs.get(hubName)?.hub
    const app = hub?.apps.all.get(id)
    if (hub === undefined || app === undefined) return undefined
    // Another version may have another one.
    const key = JSON.stringify([hubName, id, app.version])
    if (this.#kept.has(key)) return this.#use(key)
    const loading = this.#loading.get(key) ?? this.#load(hub, id, key).finally(() => this.#loading.delete(key))
    this.#loading.set(key, loading)
    return await loading
  }

  #use(key: string): Icon | undefined {
    const icon = this.#kept.get(key)
    this.#kept.delete(key)
    this.#kept.set(key, icon)
    return icon
  }

  async #load(hub: Pick<Hub, 'call' | 'file'>, id: string, key: string): Promise<Icon | undefined> {
    await this.#turn()
    try {
      const icon = await fetchIcon(hub, id)
      this.#keep(key, icon)
      return icon
    } finally {
      this.#active -= 1
      this.#waiting.shift()?.()
    }
  }

  async #turn(): Promise<void> {
    if (this.#active >= AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#active += 1
  }

  #keep(key: string, icon: Icon | undefined): void {
    this.#kept.set(key, icon)
    this.#bytes += sizeOf(icon)
    for (const [oldest, other] of this.#kept) {
      if (this.#bytes <= MAX_BYTES) return
      this.#kept.delete(oldest)
      this.#bytes -= sizeOf(other)
    }
  }
}

const sizeOf = (icon: Icon | undefined) => ENTRY_BYTES + (icon?.body.length ?? 0)

async function fetchIcon(hub: Pick<Hub, 'call' | 'file'>, id: string): Promise<Icon | undefined> {
  const record = await hub.call('getAppRecord', { id })
  const { iconObj, icon } = record
  const paths = [isRecord(iconObj) ? iconObj['url'] : undefined, icon]
  for (const path of paths) {
    const body = typeof path === 'string' ? await hub.file(path, MAX_ICON_BYTES) : undefined
    const type = body && typeOf(body)
    if (body !== undefined && type !== undefined) return { type, body }
  }
  return undefined
}

/** What may stand before `<svg`: how it begins and ends. */
const PROLOGUE: readonly (readonly [start: RegExp, end: string])[] = [
  [/^<\?xml\s/, '?>'],
  [/^<!--/, '-->'],
  [/^<!doctype\s+svg\b/, '>'],
]

/** By its content: what the hub calls it does not matter. `undefined` for what is no picture. */
export function typeOf(body: Buffer): string | undefined {
  const start = body.toString('latin1', 0, 12)
  if (start.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (start.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (start.startsWith('RIFF') && start.endsWith('WEBP')) return 'image/webp'
  return isSvg(body.toString('utf8', 0, 4096)) ? 'image/svg+xml' : undefined
}

function isSvg(text: string): boolean {
  // A byte order mark counts as white space.
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
