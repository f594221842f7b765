/** The state of an update entity, and reading it back. */
import { readJson } from '../base/read-json.ts'
import { tidy } from '../base/text.ts'
import type { App } from '../hub/app.ts'
import type { Facts } from './publications.ts'
import { APP_UPDATE, type AppUpdate } from './schemas.ts'

/** What is shown in place of an unknown version, around the time when the update was found. */
const FOUND = ['newer version, found ', ' UTC'] as const

/**
 * State of an update entity: only keys that Home Assistant knows, and none that is unknown, else it drops the message.
 * Where the hub says only that there is an update, the newest version is shown by when it was found: it must differ
 * from the one before, which a person may have skipped, stay the same while it waits, and not look like a version, as
 * such would be compared and found no newer.
 */
export function updateOf({ app, installing, foundAt = '', release }: Facts['app']): AppUpdate {
  const { version, latest_version, update_available } = app
  const title = tidy(app.name)
  const newer = latest_version ?? (version === null ? null : FOUND.join(foundAt))
  const latest = update_available === true ? newer : version
  const summary = update_available === true && release?.version === latest ? release.changelog : null
  return {
    ...(title !== undefined && { title }),
    ...(version !== null && { installed_version: version }),
    ...(latest !== null && { latest_version: latest }),
    ...(summary !== null && { release_summary: summary }),
    ...(app.origin === 'appstore' && { release_url: storePage(app.id) }),
    in_progress: installing,
    update_percentage: installing ? progressOf(app) : null,
  }
}

/** Of an app in the public store. */
const storePage = (id: string) => `https://homey.app/a/${encodeURIComponent(id)}`

/** How far an install is, as the app shows it: asked for, stopped for it, there in its new version, and running. */
function progressOf({ update_available, state }: App): number {
  const isReplaced = update_available !== true
  if (isReplaced) return state === 'running' ? 90 : 70
  return state === 'running' || state === 'starting' || state === null ? 10 : 40
}

/** Reads from the state of an update entity when an update without a version was found; `undefined` if it does not say. */
export function foundIn(payload: string): FoundUpdate | undefined {
  if (!payload.includes(FOUND[0])) return undefined
  const { installed_version, latest_version: latest = '' } = readJson(APP_UPDATE, payload) ?? {}
  const foundAt = latest.slice(FOUND[0].length, -FOUND[1].length)
  const isTime = foundAt.length === TIME_LENGTH && latest === FOUND.join(foundAt)
  return installed_version === undefined || !isTime ? undefined : { version: installed_version, foundAt }
}

/** An update without a version. */
export interface FoundUpdate {
  /** The one that is installed. */
  readonly version: string
  readonly foundAt: string
}

const TIME_LENGTH = '2026-11-23 13:05'.length

/** A time as it stands in the state of an update entity. */
export function shownTime(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, TIME_LENGTH).replace('T', ' ')
}
