/** The page's session: the access of the user, and the connection. */
import { signal } from '@preact/signals'
import type { Session } from '../../server/api/protocol.ts'
import { api, apiUrl, type Result } from './api.ts'
import { type Channel, openChannel } from './live/channel.ts'
import { Store } from './live/store.ts'
import { defineStrings, terms } from './terms.ts'

const text = defineStrings('session', {
  noLogin: 'You have no access to this page. Set http.password and log in.',
})

/** The data that views need to show state and to send commands. */
export interface PageContext {
  readonly session: Session
  readonly store: Store
  readonly channel: Channel
}

/** The top-level state of the page. */
export type Stage =
  | { readonly at: 'opening' | 'login' | 'setup' }
  /** The daemon does not answer, or refuses the request. */
  | { readonly at: 'failed'; readonly message: string }
  | ({ readonly at: 'open' } & PageContext)

export const stage = signal<Stage>({ at: 'opening' })

export function usePage(): PageContext {
  const page = stage.value
  if (page.at !== 'open') throw new Error('This part is only shown after the login.')
  return page
}

const RETRY_MS = 3_000

/** Whether the daemon does not answer, or a proxy answers in its place. */
const isAway = (result: Result<Session>): boolean => !result.ok && (result.status === 0 || result.status >= 500)

/** Requests the session, and opens the matching view. */
export async function open(): Promise<void> {
  const result = await api.session()
  if (result.ok) stage.value = stageOf(result.value)
  else {
    stage.value = { at: 'failed', message: result.message }
    if (isAway(result)) setTimeout(() => void open(), RETRY_MS)
  }
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

/** Whether the session is unchanged; assumed if the daemon does not answer, because the next attempt checks again. */
async function isUnchanged(before: Session): Promise<boolean> {
  const result = await api.session()
  if (isAway(result)) return true
  const keys = ['access', 'base_topic', 'member', 'setup'] as const
  const same = result.ok && keys.every((key) => result.value[key] === before[key])
  // A new version of the daemon serves a new page.
  if (same && result.value.version !== before.version) location.reload()
  if (!same) await open()
  return same
}

export async function logout(): Promise<void> {
  if (stage.value.at === 'open') stage.value.channel.end()
  await api.logout()
  await open()
}
