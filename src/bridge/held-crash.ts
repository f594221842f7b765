/** The broker's data about the latest crash of an app, and whether the bridge still needs evidence of the crash. */
import * as v from 'valibot'
import { readJson } from '../base/read-json.ts'
import { type Crash, MAX_CRASH_BYTES, shortOrNull } from '../contract/crash.ts'
import { crashedAgain } from '../contract/events.ts'
import { APP } from '../contract/schemas.ts'
import type { App } from '../hub/app.ts'

const { crashed, crash_count, crash_message, version } = APP.entries
/** The schema accepts unknown keys, because other versions of the bridge may add some. */
const CRASH_STATE = v.object({ crashed, crash_count, crash_message, version })

/** The part of an app's retained state that distinguishes one crash from another. */
type CrashState = v.InferOutput<typeof CRASH_STATE>

/** What the broker's messages about an app's crashes contained when they were last read. */
export interface HeldCrash {
  /** `undefined` if the app has never crashed. */
  readonly state?: CrashState | undefined
  /** `undefined` if there is no evidence, `null` if the evidence could not be read. */
  readonly crash?: Crash | null | undefined
}

/** Returns an app's crash state; `undefined` if it has never crashed. Does not parse payloads without a crash. */
export function crashStateOf(payload: string): CrashState | undefined {
  const hasCrashed =
    payload.length <= MAX_CRASH_BYTES && /"crashed":true|"crash_count":[1-9]|"crash_message":"/.test(payload)
  return hasCrashed ? readJson(CRASH_STATE, payload) : undefined
}

/** Returns whether the bridge that published this data had noticed the latest crash of the app. */
export function knowsCrash({ state, crash }: HeldCrash, app: App): boolean {
  if (app.crashed !== true) return state !== undefined && (app.crash_count ?? 0) <= (state.crash_count ?? 0)
  if (state !== undefined && crashedAgain(state, app)) return false
  // Compare the message and the version too, because the hub may have reset its count.
  const { message, version } = crash ?? { message: state?.crash_message, version: state?.version ?? null }
  return message === app.crash_message && shortOrNull(version) === shortOrNull(app.version)
}
