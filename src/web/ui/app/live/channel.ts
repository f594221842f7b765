/** The live channel: connects, reads frames, applies them once per animation frame, and reconnects. */
import { signal } from '@preact/signals'
import { Backoff } from '../../../../base/backoff.ts'
import { LIVE_FRAME, LIVE_INTERVAL_MS, type LiveFrame, LOGIN_DUE } from '../../../server/api/protocol.ts'
import { parseJson, read } from './payload.ts'
import type { Store } from './store.ts'

const STALE_AFTER_MS = 2 * LIVE_INTERVAL_MS
const BACKOFF = { min: 1_000, max: 30_000, random: Math.random }
/** Hidden pages have no animation frames. */
const HIDDEN_MS = 500

export type Channel = Readonly<ReturnType<typeof openChannel>>

/** @param mayRetry called before each retry; `false` ends the channel, because a login is required */
export function openChannel(url: string, store: Store, mayRetry: () => Promise<boolean>) {
  /** `stale`: the page is no longer updated. */
  const liveness = signal<'connecting' | 'live' | 'stale'>('connecting')
  /** Time of the next attempt in epoch milliseconds; `undefined` while connected or connecting. */
  const retryAt = signal<number | undefined>(undefined)
  const backoff = new Backoff(BACKOFF)
  let socket: WebSocket | undefined
  let frames: LiveFrame[] = []
  let isDrawing = false
  let hasEnded = false
  let silence: ReturnType<typeof setTimeout> | undefined
  let retry: ReturnType<typeof setTimeout> | undefined

  const end = () => {
    hasEnded = true
    clearTimeout(retry)
    clearTimeout(silence)
    socket?.close()
  }
  /** Makes the next attempt now, if one is planned. */
  const retryNow = async () => {
    if (retryAt.value === undefined || hasEnded) return
    clearTimeout(retry)
    retryAt.value = undefined
    if (!(await mayRetry())) end()
    else if (!hasEnded) connect()
  }
  const connect = () => {
    const opened = new WebSocket(url)
    socket = opened
    opened.onmessage = ({ data }) => {
      if (typeof data === 'string') take(data)
    }
    opened.onclose = ({ code }) => {
      lose(opened)
      if (code === LOGIN_DUE) void retryNow()
    }
    listen()
  }
  /** Closes a connection that is silent for too long. */
  const listen = () => {
    clearTimeout(silence)
    silence = setTimeout(() => {
      socket?.close()
      // Do not wait for the close event: the other side may never answer.
      if (socket !== undefined) lose(socket)
    }, STALE_AFTER_MS)
  }
  const take = (text: string) => {
    const frame = read(LIVE_FRAME, parseJson(text))
    if (frame === undefined) return
    listen()
    frames.push(frame)
    if (isDrawing) return
    isDrawing = true
    if (document.hidden) setTimeout(draw, HIDDEN_MS)
    else requestAnimationFrame(draw)
  }
  const draw = () => {
    isDrawing = false
    const drawn = frames
    frames = []
    const last = drawn.findLastIndex(({ type }) => type === 'snapshot')
    const snapshot = drawn[last]
    if (snapshot?.type === 'snapshot') {
      store.snapshot(snapshot)
      backoff.reset()
    }
    store.changes(drawn.slice(last + 1).filter((frame) => frame.type === 'changes'))
    if (store.complete.value && socket?.readyState === WebSocket.OPEN) liveness.value = 'live'
  }
  const lose = (lost: WebSocket) => {
    if (socket !== lost || hasEnded) return
    socket = undefined
    frames = []
    clearTimeout(silence)
    liveness.value = store.complete.value ? 'stale' : 'connecting'
    const wait = backoff.next()
    retryAt.value = Date.now() + wait
    retry = setTimeout(() => void retryNow(), wait)
  }

  const wake = () => {
    if (!document.hidden) void retryNow()
  }
  addEventListener('online', wake)
  document.addEventListener('visibilitychange', wake)
  connect()
  return { liveness, retryAt, retryNow, end }
}
