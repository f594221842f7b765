/** The live channel: connects, reads frames, applies them once per animation frame, and reconnects. */
import { signal } from '@preact/signals'
import { Backoff } from '../../../../base/backoff.ts'
import { LIVE_FRAME, LIVE_INTERVAL_MS, type LiveFrame, LOGIN_DUE } from '../../../server/api/protocol.ts'
import { parseJson, read } from './payload.ts'
import type { Store } from './store.ts'

type Liveness =
  /** Not connected yet. */
  | 'connecting'
  | 'live'
  /** The page is no longer updated. */
  | 'stale'

const STALE_AFTER_MS = 2 * LIVE_INTERVAL_MS
const BACKOFF = { min: 1_000, max: 30_000, random: Math.random }
/** Hidden pages have no animation frames. */
const HIDDEN_MS = 500

export class Channel {
  readonly liveness = signal<Liveness>('connecting')
  /** Time of the next attempt in epoch milliseconds; `undefined` while connected or connecting. */
  readonly retryAt = signal<number | undefined>(undefined)
  readonly #url: string
  readonly #store: Store
  readonly #mayRetry: () => Promise<boolean>
  readonly #backoff = new Backoff(BACKOFF)
  #socket: WebSocket | undefined
  #frames: LiveFrame[] = []
  #drawing = false
  #silence: ReturnType<typeof setTimeout> | undefined
  #retry: ReturnType<typeof setTimeout> | undefined
  #ended = false

  /** @param mayRetry called before each further attempt; `false` ends the channel, because a login is needed */
  constructor(url: string, store: Store, mayRetry: () => Promise<boolean>) {
    this.#url = url
    this.#store = store
    this.#mayRetry = mayRetry
  }

  start(): void {
    const wake = () => {
      if (!document.hidden) this.retryNow()
    }
    addEventListener('online', wake)
    document.addEventListener('visibilitychange', wake)
    this.#connect()
  }

  end(): void {
    this.#ended = true
    clearTimeout(this.#retry)
    clearTimeout(this.#silence)
    this.#socket?.close()
  }

  /** Ends the wait for the next attempt, if there is one. */
  retryNow(): void {
    if (this.retryAt.value === undefined || this.#ended) return
    clearTimeout(this.#retry)
    this.retryAt.value = undefined
    void this.#again()
  }

  #connect(): void {
    const socket = new WebSocket(this.#url)
    this.#socket = socket
    socket.onmessage = ({ data }) => {
      if (typeof data === 'string') this.#take(data)
    }
    socket.onclose = ({ code }) => {
      this.#lost(socket)
      if (code === LOGIN_DUE) this.retryNow()
    }
    this.#listen()
  }

  /** Closes a connection that is silent for too long. */
  #listen(): void {
    clearTimeout(this.#silence)
    this.#silence = setTimeout(() => {
      const silent = this.#socket
      silent?.close()
      // Closing waits for the other side, which may be gone.
      if (silent !== undefined) this.#lost(silent)
    }, STALE_AFTER_MS)
  }

  #take(text: string): void {
    const frame = read(LIVE_FRAME, parseJson(text))
    if (frame === undefined) return
    this.#listen()
    this.#frames.push(frame)
    if (this.#drawing) return
    this.#drawing = true
    if (document.hidden) setTimeout(() => this.#draw(), HIDDEN_MS)
    else requestAnimationFrame(() => this.#draw())
  }

  #draw(): void {
    this.#drawing = false
    const frames = this.#frames
    this.#frames = []
    const store = this.#store
    const last = frames.findLastIndex(({ type }) => type === 'snapshot')
    const snapshot = frames[last]
    if (snapshot?.type === 'snapshot') {
      store.snapshot(snapshot)
      this.#backoff.reset()
    }
    store.changes(frames.slice(last + 1).filter((frame) => frame.type === 'changes'))
    if (store.complete.value && this.#socket?.readyState === WebSocket.OPEN) this.liveness.value = 'live'
  }

  #lost(socket: WebSocket): void {
    if (this.#socket !== socket || this.#ended) return
    this.#socket = undefined
    this.#frames = []
    clearTimeout(this.#silence)
    this.liveness.value = this.#store.complete.value ? 'stale' : 'connecting'
    const wait = this.#backoff.next()
    this.retryAt.value = Date.now() + wait
    this.#retry = setTimeout(() => this.retryNow(), wait)
  }

  async #again(): Promise<void> {
    if (await this.#mayRetry()) {
      if (!this.#ended) this.#connect()
    } else this.end()
  }
}
