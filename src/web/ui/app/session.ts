/** The session with the daemon and its live channel. */
import { signal } from '@preact/signals'
import { Backoff } from '../../../base/backoff.ts'
import { readJson } from '../../../base/read-json.ts'
import { LIVE_FRAME, LIVE_INTERVAL_MS, LOGIN_DUE, type Session } from '../../server/api/protocol.ts'
import { api, apiUrl, type Result } from './api.ts'
import { Store } from './live/store.ts'
import { defineStrings, terms } from './terms.ts'

const text = defineStrings('session', { noLogin: 'You have no access to this page. Set http.password and log in.' })

export interface PageContext {
  readonly session: Session
  readonly store: Store
  readonly channel: Readonly<ReturnType<typeof openChannel>>
}

type Stage =
  | { readonly at: 'opening' | 'login' | 'setup' }
  /** `failed`: the daemon does not answer, or it refuses the request. */
  | { readonly at: 'failed'; readonly message: string }
  | ({ readonly at: 'open' } & PageContext)

export const stage = signal<Stage>({ at: 'opening' })

export function usePage(): PageContext {
  const page = stage.value
  if (page.at !== 'open') throw new Error('This part is only shown after the login.')
  return page
}

const RETRY_MS = 3_000

/** Returns `true` if the daemon does not answer, or if it or a proxy answers with a server error. */
const isAway = (result: Result<Session>): boolean => !result.ok && (result.status === 0 || result.status >= 500)

export async function open(): Promise<void> {
  const result = await api.session()
  if (result.ok) stage.value = stageOf(result.value)
  else {
    stage.value = { at: 'failed', message: result.message }
    if (isAway(result)) setTimeout(() => void open(), RETRY_MS)
  }
}

/** Waits until a daemon with a configured hub answers, and opens the page. Until then, the page stays as it is. */
export async function openAfterSetup(): Promise<void> {
  const result = await api.session()
  if (result.ok && !result.value.setup) stage.value = stageOf(result.value)
  else setTimeout(() => void openAfterSetup(), RETRY_MS)
}

function stageOf(session: Session): Stage {
  const { access, login, setup } = session
  if (access === null) return login === 'password' ? { at: 'login' } : { at: 'failed', message: text.noLogin }
  if (!setup) return connect(session)
  return access === 'full' ? { at: 'setup' } : { at: 'failed', message: terms.howToWrite }
}

function connect(session: Session): Stage {
  const store = new Store(session.base_topic, session.member)
  const url = apiUrl('live')
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  const channel = openChannel(url.href, store, () => isUnchanged(session))
  return { at: 'open', session, store, channel }
}

/** Whether the session is unchanged. Without an answer, resolves to `true`, and the next attempt checks again. */
async function isUnchanged(before: Session): Promise<boolean> {
  const result = await api.session()
  if (isAway(result)) return true
  const keys = ['access', 'base_topic', 'member', 'setup'] as const
  const same = result.ok && keys.every((key) => result.value[key] === before[key])
  // Reload the page, because a new version of the daemon serves a new page.
  if (same && result.value.version !== before.version) location.reload()
  if (!same) await open()
  return same
}

export async function logout(): Promise<void> {
  if (stage.value.at === 'open') stage.value.channel.end()
  await api.logout()
  await open()
}

const STALE_AFTER_MS = 2 * LIVE_INTERVAL_MS
/** Over a slow link, the snapshot takes long to arrive, and no other frame can arrive before it. */
const SNAPSHOT_MS = 60_000
const BACKOFF = { min: 1_000, max: 30_000, random: Math.random }

/** @param mayRetry called before each retry; `false` ends the channel, because the session has changed */
function openChannel(url: string, store: Store, mayRetry: () => Promise<boolean>) {
  /** `stale`: there is no connection, so the page shows old data or none. */
  const liveness = signal<'connecting' | 'live' | 'stale'>('connecting')
  /** When the next attempt starts, in epoch milliseconds; `undefined` while connected or connecting. */
  const retryAt = signal<number | undefined>(undefined)
  const backoff = new Backoff(BACKOFF)
  let socket: WebSocket | undefined
  let hasEnded = false
  let silence: ReturnType<typeof setTimeout> | undefined
  let retry: ReturnType<typeof setTimeout> | undefined

  const end = () => {
    hasEnded = true
    clearTimeout(retry)
    clearTimeout(silence)
    socket?.close()
  }
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
    opened.onopen = () => listen(SNAPSHOT_MS)
    opened.onmessage = ({ data }) => take(String(data))
    opened.onclose = ({ code }) => {
      lose(opened)
      if (code === LOGIN_DUE) void retryNow()
    }
    listen()
  }
  /** Restarts the timer that closes the connection if no frame arrives in time. */
  const listen = (ms = STALE_AFTER_MS) => {
    clearTimeout(silence)
    silence = setTimeout(() => {
      socket?.close()
      // Do not wait for the close event, because the server may never answer.
      if (socket !== undefined) lose(socket)
    }, ms)
  }
  const take = (text: string) => {
    const frame = readJson(LIVE_FRAME, text)
    if (frame === undefined) return
    listen()
    if (frame.type === 'changes') store.changes(frame)
    if (frame.type === 'snapshot') {
      store.snapshot(frame)
      backoff.reset()
      liveness.value = 'live'
    }
  }
  const lose = (lost: WebSocket) => {
    if (socket !== lost || hasEnded) return
    socket = undefined
    clearTimeout(silence)
    liveness.value = 'stale'
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
