/** Writes that are `ok` only if the hub confirms them: by its answer, or else by what a look at it shows. */
import type { Json } from '../base/json.ts'
import { HubError } from '../hub/errors.ts'
import { appIs, appIsGone, settingIs, settingIsGone } from '../hub/verify.ts'
import { expectApp, expectValue } from '../hub/written.ts'
import { CommandError } from './errors.ts'
import type { Target } from './target.ts'

/**
 * Resolves to `null` when the write is confirmed. Where its answer got lost or is not one to this write, `look` decides.
 * @throws CommandError `outcome_unknown`, or the HubError of the write
 */
async function confirmed(write: Promise<unknown>, look: () => Promise<boolean>): Promise<null> {
  try {
    await write
    return null
  } catch (error) {
    if (!isUndecided(error)) throw error
    const done = await tried(look)
    if (done === true) return null
    throw undecided(error, done === false)
  }
}

export function setEnabled(target: Target, enabled: boolean): Promise<null> {
  const { hub, call, app } = target
  const write = call(enabled ? 'enableApp' : 'disableApp', { id: app })
  return confirmed(
    write.then((answer) => expectApp(answer, { enabled })),
    () => appIs(hub, app, { enabled }),
  )
}

export function setAutoupdate({ hub, call, app }: Target, autoupdate: boolean): Promise<null> {
  const write = call('updateApp', { id: app, update: { autoupdate } })
  return confirmed(
    write.then((answer) => expectApp(answer, { autoupdate })),
    () => appIs(hub, app, { autoupdate }),
  )
}

export function setSetting({ hub, call, app }: Target, name: string, value: Json): Promise<null> {
  const write = call('setAppSetting', { id: app, name, value })
  return confirmed(
    write.then((answer) => expectValue(answer, value)),
    () => settingIs(hub, app, name, value),
  )
}

export function unsetSetting({ hub, call, app }: Target, name: string): Promise<null> {
  return confirmed(call('unsetAppSetting', { id: app, name }), () => settingIsGone(hub, app, name))
}

export async function uninstall({ hub, call, app }: Target, purgeSettings: boolean | undefined): Promise<null> {
  await confirmed(call('uninstallApp', { id: app, purgeSettings }), () => appIsGone(hub, app))
  hub.apps.expectGone(app)
  return null
}

/** What a look finds; `undefined` if it fails. */
export async function tried<T>(look: () => Promise<T>): Promise<T | undefined> {
  try {
    return await look()
  } catch (error) {
    if (error instanceof HubError) return undefined
    throw error
  }
}

/** Whether a write may have been carried out although it failed. */
export function isUndecided(error: unknown): error is HubError {
  return error instanceof HubError && (error.code === 'no_answer' || error.code === 'nonsense')
}

export function undecided(error: HubError, seen: boolean): Error {
  if (error.code === 'nonsense') return error
  const found = seen ? `${error.message} A look at the hub finds it not done so far.` : error.message
  return new CommandError('outcome_unknown', found, { cause: error })
}
