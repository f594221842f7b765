import { readJson } from '../base/read-json.ts'
import { tidy } from '../base/text.ts'
import type { App } from '../hub/app.ts'
import type { Facts } from './publications.ts'
import { APP_UPDATE, type AppUpdate } from './schemas.ts'

/** The text around the time at which an update was found; shown instead of an unknown version. */
const FOUND = ['newer version, found ', ' UTC'] as const

/**
 * Home Assistant drops a message with an unknown key or a `null` value. For an update without a version,
 * `latest_version` contains the time at which the update was found. This text must differ from the text of an earlier
 * update, which a user may have skipped, must not change while the update waits, and must not look like a version,
 * which Home Assistant would compare.
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

export const storePage = (id: string) => `https://homey.app/a/${encodeURIComponent(id)}`

/** Estimates the progress of an install: requested, app stopped, new version present, app running again. */
function progressOf({ update_available, state }: App): number {
  const isReplaced = update_available !== true
  if (isReplaced) return state === 'running' ? 90 : 70
  return state === 'running' || state === 'starting' || state === null ? 10 : 40
}

/** Reads the time at which an update without a version was found; `undefined` if the payload contains no such time. */
export function foundIn(payload: string): FoundUpdate | undefined {
  if (!payload.includes(FOUND[0])) return undefined
  const { installed_version, latest_version: latest = '' } = readJson(APP_UPDATE, payload) ?? {}
  const foundAt = latest.slice(FOUND[0].length, -FOUND[1].length)
  const isTime = foundAt.length === TIME_LENGTH && latest === FOUND.join(foundAt)
  return installed_version === undefined || !isTime ? undefined : { version: installed_version, foundAt }
}

/** An update of an app to an unknown version. */
export interface FoundUpdate {
  /** The installed version. */
  readonly version: string
  readonly foundAt: string
}

const TIME_LENGTH = '2026-11-23 13:05'.length

export function shownTime(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, TIME_LENGTH).replace('T', ' ')
}
