/**
 * Decides whether a write was done, based on the response or on a check on the hub. A check needs a valid response that
 * shows the requested state, because a 404 may come from a gateway, and a list may be incomplete while the hub is
 * starting.
 */
import { isRecord, isShallow, type Json, sameJson } from '../base/json.ts'
import { type Answer, isSuccess, parse, textOf } from './answer.ts'
import type { AppPatch } from './app.ts'
import { decodePatch, JSON_LEVELS } from './decode.ts'
import type { Endpoint } from './endpoints.ts'
import { HubError, unless } from './errors.ts'
import type { Hub } from './hub.ts'
import { type Body, OPERATIONS, type OperationName } from './operations.ts'
import { STAND_IN } from './refusal.ts'

/** The requested effect of a write, for comparison with the response and with a later check. */
export interface WriteEffect {
  /** `null` if the operation is not one of `OPERATIONS`. */
  readonly operation: OperationName | null
  readonly id?: string | undefined
  /** Values that the app's record should have afterwards; `undefined` if the response is not an app record. */
  readonly shows?: AppPatch | undefined
  /** A setting's name and value. */
  readonly name?: string | undefined
  readonly value?: Json | undefined
}

export function effectOf(operation: OperationName, parameters: object, body: Body | Json | undefined): WriteEffect {
  const given = new Map<string, unknown>(Object.entries(parameters))
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined)
  return {
    operation,
    id: text(given.get('id') ?? given.get('appId')),
    shows: OPERATIONS[operation].shows?.(body),
    name: text(given.get('name')),
    value: operation === 'setAppSetting' && isRecord(body) ? body['value'] : undefined,
  }
}

export function effectOfEndpoint({ operation, parameters, app, body }: Endpoint): WriteEffect {
  return operation === null
    ? { operation }
    : effectOf(operation, { ...parameters, ...(app !== null && { id: app }) }, body)
}

/**
 * Returns the data in the response to a write; `null` if there is none, or if it is too large or too deep to pass on.
 * @param effect `null` for a response from an app
 * @param isHubs whether the response is the hub's own; a 4xx is a refusal even if a gateway sent it
 * @throws the error of `refused` for a refusal
 * @throws HubError `no_answer` if the outcome is unknown, `nonsense` for a refusal with a success status
 */
export function checkResponse(
  answer: Answer,
  effect: WriteEffect | null,
  isHubs: boolean,
  refused: () => HubError,
): Json {
  const { status } = answer
  const isNoAnswer = status < 200 || (status >= 300 && status < 400)
  if (isNoAnswer || (!isHubs && !(status >= 400 && status < 500))) {
    throw new HubError('no_answer', `${STAND_IN} ${status}.`, { status })
  }
  if (!isSuccess('POST', status)) throw refused()
  const text = textOf(answer)
  const value = text.trim() === '' ? null : parse(answer)
  const data = value === undefined ? text : value
  if (!isShallow(data, JSON_LEVELS)) return null
  if (effect !== null) checkResponseData(data, effect)
  return data
}

function checkResponseData(data: Json, { id, shows, value }: WriteEffect): void {
  if (data === null) return
  const layers = layersOf(data)
  const isNo = layers.some(isNegative)
  const isEcho = value !== undefined && sameJson(data, value)
  if (isNo && !isEcho) throw new HubError('nonsense', 'The hub sent an error with a success status.')
  // `false`, 0 and an empty string may be the setting's value or a refusal, so they do not confirm the write.
  const isOther = value !== undefined && (!isEcho || isNo || !data)
  const records = shows === undefined ? [] : layers.flatMap((layer) => (isRecord(layer) ? [layer] : []))
  if (isOther || records.some((record) => isOfAnother(record, id) || !agrees(decodePatch(record), shows ?? {}))) {
    throw new HubError('no_answer', 'The hub answered, but not with what was requested.')
  }
}

/** Returns a response and the values that it wraps: `[record]`, `{"result": record}`. */
function layersOf(data: Json): Json[] {
  const layers = [data]
  for (const layer of layers) {
    const [inner] = Array.isArray(layer) && layer.length === 1 ? layer : isRecord(layer) ? [layer['result']] : []
    if (inner !== undefined) layers.push(inner)
  }
  return layers
}

/** Returns whether a response with a success status is a refusal. */
export const isRefusal = (data: Json | undefined): boolean => data !== undefined && layersOf(data).some(isNegative)

/** The values of `status` in a response that reports a failure. */
const REFUSED: ReadonlySet<unknown> = new Set(['error', 'fail', 'failed'])

function isNegative(layer: Json): boolean {
  if (!isRecord(layer)) return layer === false
  const { ok, success, error, status } = layer
  return ok === false || success === false || Boolean(error) || REFUSED.has(status)
}

function isOfAnother({ id }: Record<string, unknown>, wanted: string | undefined): boolean {
  return typeof id === 'string' && wanted !== undefined && id !== wanted
}

/** Returns whether the keys that a hub sent have the requested values. */
export function agrees(received: AppPatch, wanted: AppPatch): boolean {
  const found = new Map<string, unknown>(Object.entries(received))
  return Object.entries(wanted).every(([key, value]) => (found.get(key) ?? value) === value)
}

const ERROR_KEYS: ReadonlySet<string> = new Set(['error', 'error_description', 'stack', 'code', 'statusCode'])

/** Returns whether a value is only the body of a refusal, which a gateway may send with status 200. */
export function isErrorBody(value: unknown): boolean {
  return isRecord(value) && value['error'] !== undefined && Object.keys(value).every((key) => ERROR_KEYS.has(key))
}

/** Returns a function that checks on the hub whether a write was done; `undefined` if no check is possible. */
export function writeCheck(hub: Hub, { operation, id, name, shows = {}, value }: WriteEffect) {
  if (id === undefined) return undefined
  if (operation === 'uninstallApp') return () => appIsRemoved(hub, id)
  if (operation === 'unsetAppSetting' && name !== undefined) return () => settingIsRemoved(hub, id, name)
  if (name !== undefined && value !== undefined) return () => settingIs(hub, id, name, value)
  return Object.keys(shows).length > 0 ? () => appIs(hub, id, shows) : undefined
}

/** Returns whether an app has the expected values on the hub, not just in this process. */
async function appIs(hub: Hub, id: string, wanted: AppPatch): Promise<boolean> {
  const found = new Map<string, unknown>(Object.entries(await hub.client.readVerified('getApp', { id })))
  return Object.entries(wanted).every(([key, value]) => found.get(key) === value)
}

/** Reads an app from a new list; `null` if it is known to be uninstalled, `undefined` if the list proves nothing. */
export async function listedApp(hub: Hub, id: string): Promise<AppPatch | null | undefined> {
  const list = await hub.client.readVerified('getApps', {})
  if (list.has(id)) return list.get(id)
  const others = [...hub.apps.all.keys()].filter((other) => other !== id)
  return list.size > 0 && others.every((other) => list.has(other)) ? null : undefined
}

/** Returns whether the list contains all other apps but not this app, and reading the app fails too. */
async function appIsRemoved(hub: Hub, id: string): Promise<boolean> {
  if ((await listedApp(hub, id)) !== null) return false
  return (await unless(['unknown_app'], hub.client.readVerified('getApp', { id }))) === undefined
}

/** Reads all settings, because an empty response for a single setting would be read as `null`. */
async function settingIs(hub: Hub, id: string, name: string, value: Json): Promise<boolean> {
  const found = new Map(Object.entries(await hub.client.readVerified('getAppSettings', { id }))).get(name)
  return found !== undefined && sameJson(found, value)
}

/** Returns whether the list of settings does not contain this setting, and reading the setting by name fails too. */
async function settingIsRemoved(hub: Hub, id: string, name: string): Promise<boolean> {
  const all = await hub.client.readVerified('getAppSettings', { id })
  if (isErrorBody(all) || Object.hasOwn(all, name)) return false
  return ((await unless(['unknown_setting'], hub.client.readVerified('getAppSetting', { id, name }))) ?? null) === null
}
