/** Who looks at the page, and what it is connected to. */
import { effect, signal } from '@preact/signals'
import type { Session } from '../../server/api/protocol.ts'
import { api, apiUrl } from './api.ts'
import { Channel } from './live/channel.ts'
import { Store } from './live/store.ts'
import { S } from './strings.ts'

/** What the page shows as a whole. */
export type Stage =
  | { readonly at: 'opening' }
  /** The daemon does not answer, or refuses; told as a text. */
  | { readonly at: 'failed'; readonly message: string }
  | { readonly at: 'login' }
  | { readonly at: 'setup' }
  | { readonly at: 'open'; readonly session: Session; readonly store: Store; readonly channel: Channel }

export const stage = signal<Stage>({ at: 'opening' })

const RETRY_MS = 3_000

/** Asks who we are, and opens what follows from the answer. */
export async function open(): Promise<void> {
  const asked = await api.session()
  if (!asked.ok) {
    stage.value = { at: 'failed', message: asked.message }
    if (asked.status === 0) setTimeout(() => void open(), RETRY_MS)
    return
  }
  const session = asked.value
  if (session.access === null) stage.value = session.login === 'password' ? { at: 'login' } : closed()
  else if (session.setup)
    stage.value = session.access === 'full' ? { at: 'setup' } : { at: 'failed', message: S.howToWrite }
  else stage.value = connect(session)
}

function closed(): Stage {
  return { at: 'failed', message: S.errors.noLogin }
}

function connect(session: Session): Stage {
  const store = new Store(session.base_topic, session.member)
  const url = apiUrl('live')
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  const channel = new Channel(url.href, store, () => stillMay(session))
  channel.start()
  return { at: 'open', session, store, channel }
}

/** Whether the session is as it was; where the daemon does not answer, that is for the next try to find out. */
async function stillMay(before: Session): Promise<boolean> {
  const asked = await api.session()
  if (!asked.ok && asked.status === 0) return true
  const same =
    asked.ok &&
    asked.value.access === before.access &&
    asked.value.base_topic === before.base_topic &&
    asked.value.member === before.member &&
    asked.value.setup === before.setup
  // Another version brings another page.
  if (same && asked.value.version !== before.version) location.reload()
  if (!same) await open()
  return same
}

export async function logout(): Promise<void> {
  if (stage.value.at === 'open') stage.value.channel.end()
  await api.logout()
  await open()
}

effect(() => {
  document.documentElement.dataset['stage'] = stage.value.at
})
