/** Installs apps from the store. An install may take a long time and may change nothing, so its effect is checked. */
import { sleep } from '../base/clock.ts'
import { VERSION } from '../base/versions.ts'
import type { AppPatch } from '../hub/app.ts'
import { isNewer } from '../hub/greeting.ts'
import type { Hub } from '../hub/hub.ts'
import { listedApp } from '../hub/written.ts'
import type { Target } from './command.ts'
import { afterSteps, CommandError } from './errors.ts'
import { isUndecided, tried, undecided } from './writes.ts'

/** Increasing pauses between checks of an install, because each check reads the whole list from a busy hub. */
const PAUSES_MS = [1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]

interface StoreVersion {
  readonly channel?: string | undefined
  readonly version?: string | undefined
}

/** The app in the list before an install; `null` if it is missing, `undefined` if the list could not be read. */
type Before = AppPatch | null | undefined

export async function install(target: Target, id: string, wanted: StoreVersion): Promise<null> {
  if (!target.hub.apps.shows(id)) throw new CommandError('not_allowed', 'apps.include or apps.exclude hides the app.')
  return await installOver(await readListed(target.hub, id), target, id, wanted)
}

/** Updates an installed app; never installs a new app. */
export async function installUpdate(target: Target, wanted: StoreVersion): Promise<null> {
  return await installOver(await readInstalled(target), target, target.app, wanted)
}

/** Updates all apps. If an update fails, continues with the next app. */
export async function updateAll({ hub, send, signal }: Target): Promise<{ updated: string[] }> {
  const isWaiting = (id: string) => {
    const { update_available, version = null, latest_version } = hub.apps.all.get(id) ?? {}
    // Some hubs keep offering the installed version.
    return update_available === true && (version === null || version !== latest_version)
  }
  const waiting = [...hub.apps.all.keys()].filter(isWaiting)
  const updated: string[] = []
  const failed: { readonly id: string; readonly error: CommandError }[] = []
  for (const id of waiting) {
    if (signal.aborted || hub.apps.ended.aborted) failed.push({ id, error: new CommandError('expired') })
    // The update may have been installed, or the app removed, in the meantime.
    else if (isWaiting(id)) {
      const outcome = await send(id, 'install')
      if (outcome.ok) updated.push(id)
      else failed.push({ id, error: outcome.error })
    }
  }
  const [first] = failed
  if (first === undefined) return { updated }
  const message = `${failed.length} of ${waiting.length} updates failed; ${first.id}: ${first.error.message}`
  const { code, status } = first.error
  throw afterSteps(new CommandError(code, message, { status: status ?? undefined, cause: first.error }), updated)
}

/** Changes an app's channel by installing the app from the new channel, because hubs offer no other way. */
export async function changeChannel(target: Target, channel: string): Promise<null> {
  const before = await readInstalled(target)
  if (before?.channel === channel) return null
  return await installOver(before, target, target.app, { channel })
}

/** @throws CommandError `unknown_app` if the app is not installed, because an install would add it */
async function readInstalled({ hub, app }: Target): Promise<AppPatch | undefined> {
  const before = await readListed(hub, app)
  if (before === null || (before === undefined && !hub.apps.all.has(app))) throw new CommandError('unknown_app')
  return before
}

function readListed(hub: Hub, id: string): Promise<Before> {
  return tried(() => listedApp(hub, id))
}

async function installOver(before: Before, target: Target, id: string, wanted: StoreVersion): Promise<null> {
  const { hub, call } = target
  const isSpecific = wanted.channel !== undefined || wanted.version !== undefined
  try {
    await call('installFromAppStore', { appId: id, ...wanted, ...(isNewer(hub.status) && { waitForInstall: true }) })
  } catch (error) {
    if (!isUndecided(error)) throw error
    const lost = error.code === 'no_answer' && before !== undefined
    const done = await shows(target, id, (after) => has(after, wanted) && hasChanged(before, after), lost)
    if (done === true) return null
    throw undecided(error, done === false && before !== undefined)
  }
  // Some hubs report no channels or versions, so the list cannot contradict the answer.
  const agrees = ({ channel = null, version = null }: AppPatch) =>
    has({ channel: channel ?? wanted.channel, version: version ?? wanted.version }, wanted)
  const isDone = !isSpecific || (await shows(target, id, agrees, true))
  if (isDone === true) return null
  if (isDone === undefined) {
    throw new CommandError('outcome_unknown', 'The hub accepted the install, but its apps could not be read again.')
  }
  throw new CommandError('hub_failed', 'The hub accepted the install, but not the requested version or channel.')
}

/** Returns whether a list of apps proves the install within a minute; `undefined` if no list could be read. */
async function shows(
  { hub, clock, signal }: Target,
  id: string,
  proves: (after: AppPatch) => boolean,
  repeats: boolean,
): Promise<boolean | undefined> {
  const ended = AbortSignal.any([signal, hub.apps.ended])
  let found: false | undefined
  for (const pause of [0, ...(repeats ? PAUSES_MS : [])]) {
    await sleep(clock, pause, ended)
    if (ended.aborted) return found
    const after = await readListed(hub, id)
    if (after && proves(after)) return true
    if (after !== undefined) found = false
  }
  return found
}

function has(app: AppPatch | StoreVersion, { channel, version }: StoreVersion): boolean {
  return (channel === undefined || app.channel === channel) && (version === undefined || app.version === version)
}

function hasChanged(before: Before, after: AppPatch): boolean {
  const differs = (key: 'version' | 'channel') =>
    typeof before?.[key] === 'string' && typeof after[key] === 'string' && before[key] !== after[key]
  // Another text in place of a version, which a hub may send for a while, proves nothing.
  const areVersions = [before?.version, after.version].every((one) => VERSION.test(one ?? ''))
  return before === null || (areVersions && differs('version')) || differs('channel')
}
