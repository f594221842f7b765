/** What a hub answers to a write: nothing, or more than was asked for, which must not contradict it. */
import { isRecord, type Json, sameJson } from '../base/json.ts'
import type { AppPatch } from '../model/app.ts'
import { decodeJson, decodePatch } from './decode.ts'
import { HubError } from './errors.ts'

/** What an app shall be; `undefined` matches anything. */
export type WantedApp = { readonly [K in keyof AppPatch]: AppPatch[K] | undefined }

const ERROR_KEYS: ReadonlySet<string> = new Set(['error', 'error_description', 'stack', 'code', 'statusCode'])

/** Whether a value is the body of a refusal and nothing else: a gateway may send it under status 200. */
export function isErrorBody(value: unknown): boolean {
  return isRecord(value) && value['error'] !== undefined && Object.keys(value).every((key) => ERROR_KEYS.has(key))
}

/** The answer to a write that has content of its own; `null` is nothing. */
export function decodeWritten(value: unknown): Json {
  if (isErrorBody(value)) throw new HubError('nonsense', 'The hub answered with an error and called it a success.')
  return decodeJson(value ?? null)
}

/**
 * The answer to a write that has nothing to tell. `null` is nothing, in any of the forms in which hubs say so.
 * @throws HubError `nonsense` for anything else: it may as well say that nothing was done
 */
export function decodeDone(value: unknown): null {
  const done = decodeWritten(value)
  if (done === null || done === true || (isRecord(done) && Object.keys(done).length === 0)) return null
  throw contradiction()
}

/** The same of a write on an app, which a hub may also answer with the app's record: that is what it says of the app. */
export function decodeDoneTo(value: unknown, { id }: { readonly id: string }): AppPatch | null {
  return isRecord(value) && value['id'] === id && !saysNo(value) ? decodePatch(value) : decodeDone(value)
}

/** The same of an install. */
export function decodeInstalled(value: unknown, { appId }: { readonly appId: string }): AppPatch | null {
  return decodeDoneTo(value, { id: appId })
}

function saysNo({ error, success, ok }: Record<string, unknown>): boolean {
  return (error ?? null) !== null || success === false || ok === false
}

/** @throws HubError `nonsense` if the answer to a write on an app does not show the app as it was `wanted` */
export function expectApp(answer: AppPatch | null, wanted: WantedApp): void {
  if (answer !== null && !agrees(answer, wanted)) throw contradiction()
}

/**
 * @throws HubError `nonsense` if the answer to a write of a setting is anything but its value, or nothing; also for
 * `false`, 0 and an empty text, which may be the value or a no
 */
export function expectValue(answer: Json, value: Json): void {
  if (answer !== null && (!answer || !sameJson(answer, value))) throw contradiction()
}

/** Whether the keys that a hub spoke of have the values wanted. */
export function agrees(said: AppPatch, wanted: WantedApp): boolean {
  const found = new Map<string, unknown>(Object.entries(said))
  return Object.entries(wanted).every(([key, value]) => value === undefined || (found.get(key) ?? value) === value)
}

function contradiction(): HubError {
  return new HubError('nonsense', 'The hub answered, but not with what was asked for.')
}
