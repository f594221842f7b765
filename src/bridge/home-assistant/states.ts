/** The states that are made for Home Assistant alone: what it cannot read from the contract's other topics. */

import { tidy } from '../../base/text.ts'
import type { App } from '../../model/app.ts'
import type { Apps, Change } from '../../model/reduce.ts'

/**
 * State of an update entity: only keys that Home Assistant knows, and none that is unknown, else it drops the message.
 * Where the hub says only that there is an update, the newest version is shown as “newer than” the installed one: it
 * must differ, stay the same, and not look like a version, as such would be compared and found no newer.
 */
export function renderUpdate(app: App, installing: boolean): string {
  const { version, latest_version, update_available } = app
  const waiting = update_available === true
  const latest = waiting ? (latest_version ?? (version === null ? null : `newer than ${version}`)) : version
  return JSON.stringify({
    title: tidy(app.name),
    installed_version: version ?? undefined,
    latest_version: latest ?? undefined,
    in_progress: installing,
  })
}

/** Counts over all apps of a hub. */
export function renderSummary(apps: Apps): string {
  let apps_crashed = 0
  let updates_available = 0
  for (const { crashed, update_available } of apps.values()) {
    if (crashed === true) apps_crashed += 1
    if (update_available === true) updates_available += 1
  }
  return JSON.stringify({ apps: apps.size, apps_crashed, updates_available })
}

/** Whether a change may alter the counts; usage figures come by far more often. */
export function countsDiffer({ before, after }: Change): boolean {
  return before?.crashed !== after?.crashed || before?.update_available !== after?.update_available || !before || !after
}

/** Whether a change may alter the update entity's state. */
export function updateDiffers({ before, after }: Change): boolean {
  return (
    before?.name !== after?.name ||
    before?.version !== after?.version ||
    before?.latest_version !== after?.latest_version ||
    before?.update_available !== after?.update_available
  )
}

/** Whether a change alters the device itself. */
export function deviceDiffers({ before, after }: Change): boolean {
  return before?.name !== after?.name || before?.version !== after?.version || before?.author !== after?.author
}
