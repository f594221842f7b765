/** Decodes the hub's data, which is untrusted and depends on the firmware. */
import { isRecord, isShallow, type Json } from '../base/json.ts'
import { APP_STATES, type AppEvent, type AppPatch, type AppState, EXIT, MAX_APPS } from './app.ts'
import { HubError } from './errors.ts'

/** Removes the API key from a string. */
export type Clean = (text: string) => string

export const asItIs: Clean = (text) => text

/**
 * Truncates to `length` UTF-16 code units. Removes the API key first, because part of a key would not be recognised.
 * Replaces lone surrogates, because Home Assistant rejects a message that contains one.
 */
export function shortText(text: string, length: number, clean: Clean): string {
  const whole = clean(text).toWellFormed()
  if (whole.length <= length) return whole
  const short = whole.slice(0, length)
  // Do not end with half a surrogate pair.
  return /[\uD800-\uDBFF]$/.test(short) ? short.slice(0, -1) : short
}

const CRASH_MESSAGE_LENGTH = 1024
/** Maximum length of a name, version or author, which limits how much a hub can make the broker store. */
const TEXT_LENGTH = 1024

const boolean = (value: unknown) => (typeof value === 'boolean' ? value : null)
const finite = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : null)
const count = (value: unknown) => (typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : null)
/** @param units the factor that converts the hub's unit to the result's unit */
const amount = (value: unknown, units = 1) =>
  typeof value === 'number' && value >= 0 && value * units <= Number.MAX_SAFE_INTEGER ? Math.round(value * units) : null
const text = (value: unknown, clean: Clean, length = TEXT_LENGTH) =>
  typeof value === 'string' ? shortText(value, length, clean) : null

const STATES: ReadonlyMap<unknown, AppState> = new Map(APP_STATES.map((state) => [state, state]))

type Writable<T> = { -readonly [Key in keyof T]: T[Key] }

/** Decodes an app's record, and ignores unknown fields. `exitCount` is the older name of `crashedCount`. */
export function decodePatch(record: Record<string, unknown>, clean = asItIs): AppPatch {
  const { name, version, channel, origin, author, compatibility, sdk, autoupdate, settings } = record
  const { crashed, crashedCount } = record
  const patch: Writable<AppPatch> = decodeState(record, clean)
  if (crashed !== undefined) patch.crashed = boolean(crashed)
  // Some newer hubs send only the state, not `crashed`. On older hubs, the state never shows a crash.
  const isNewer = patch.state === 'crashed' || crashedCount !== undefined
  if ((crashed ?? null) === null && (patch.state ?? null) !== null && isNewer) patch.crashed = patch.state === 'crashed'
  if (name !== undefined) patch.name = text(name, clean)
  if (version !== undefined) patch.version = text(version, clean)
  if (channel !== undefined) patch.channel = text(channel, clean)
  if (origin !== undefined) patch.origin = text(origin, clean)
  if (author !== undefined) patch.author = text(isRecord(author) ? author['name'] : author, clean)
  if (compatibility !== undefined) patch.compatibility = text(compatibility, clean)
  if (sdk !== undefined) patch.sdk = finite(sdk)
  if (autoupdate !== undefined) patch.autoupdate = boolean(autoupdate)
  if (settings !== undefined) patch.has_settings = boolean(settings)
  return patch
}

function decodeState(record: Record<string, unknown>, clean: Clean): Writable<AppPatch> {
  const { enabled, state, crashedMessage, crashedCount, exitCount, updateAvailable, usage } = record
  const { exitCode, exitSignal } = record
  const patch: Writable<AppPatch> = {}
  if (enabled !== undefined) patch.enabled = boolean(enabled)
  if (state !== undefined) patch.state = STATES.get(state) ?? null
  if (crashedMessage !== undefined) patch.crash_message = text(crashedMessage, clean, CRASH_MESSAGE_LENGTH)
  if ((crashedCount ?? exitCount) !== undefined) patch.crash_count = count(crashedCount ?? exitCount)
  if (exitCode !== undefined || exitSignal !== undefined) {
    const isKnown = typeof exitCode === 'number' || typeof exitSignal === 'string'
    patch[EXIT] = isKnown ? { code: finite(exitCode), signal: signalOf(exitSignal) } : undefined
  }
  if (updateAvailable !== undefined) Object.assign(patch, decodeOffer(updateAvailable, clean))
  if (usage !== undefined) {
    const { cpu, mem }: Record<string, unknown> = isRecord(usage) ? usage : {}
    const perMille = amount(cpu, 1000)
    patch.cpu_percent = perMille === null ? null : perMille / 10
    patch.memory_bytes = amount(mem)
  }
  return patch
}

const signalOf = (value: unknown) => (typeof value === 'string' && /^SIG[A-Z0-9]{2,8}$/.test(value) ? value : null)

/** Decodes an update. Older hubs send an object or `null`, newer hubs a boolean, and some hubs only the version. */
function decodeOffer(value: unknown, clean: Clean): Pick<AppPatch, 'update_available' | 'latest_version'> {
  const isVersion = typeof value === 'string' && /^\d+(\.\d+)+([-+][\w.+-]*)?$/.test(value)
  const offer = isVersion ? { version: value } : value
  if (isRecord(offer)) return { update_available: true, latest_version: text(offer['version'], clean) }
  return { update_available: offer === null ? false : boolean(offer), latest_version: null }
}

/**
 * Decodes the list of apps, with `undefined` for unreadable apps.
 * @throws HubError `nonsense` if most entries are unreadable
 */
export function decodeApps(value: unknown, _: unknown = {}, clean = asItIs): Map<string, AppPatch | undefined> {
  const nonsense = () => new HubError('nonsense', 'The hub answered with something that is not a list of apps.')
  if (!isRecord(value)) throw nonsense()
  const records = Object.entries(value)
  if (records.length > MAX_APPS) throw new HubError('nonsense', `The hub listed more than ${MAX_APPS} apps.`)
  const apps = new Map<string, AppPatch | undefined>()
  let unreadable = 0
  for (const [key, record] of records) {
    const patch = isRecord(record) && idOf(record) === key ? decodePatch(record, clean) : undefined
    if (patch === undefined) unreadable += 1
    apps.set(key, patch)
  }
  if (unreadable * 2 > apps.size) throw nonsense()
  return apps
}

/** Rejects ids that are not well-formed Unicode, because different ids could produce the same topic. */
function idOf(record: Record<string, unknown>): string | undefined {
  const id = record['id']
  return typeof id === 'string' && id !== '' && id.isWellFormed() ? id : undefined
}

export function decodeApp(value: unknown, { id }: { readonly id: string }, clean = asItIs): AppPatch {
  checkApp(value, id)
  return decodePatch(value, clean)
}

/** Returns the app's record as the hub sent it. */
export function decodeRecord(value: Json, { id }: { readonly id: string }): { [key: string]: Json } {
  const record = decodeJson(value)
  checkApp(record, id)
  return record
}

function checkApp(value: unknown, id: string): asserts value is Record<string, unknown> {
  if (isRecord(value) && idOf(value) === id) return
  throw new HubError('nonsense', 'The hub answered with something that is not the app.')
}

const EVENTS = new Map<unknown, AppEvent['type']>([
  ['app.create', 'create'],
  ['app.update', 'update'],
  ['app.delete', 'delete'],
])

/** Decodes a realtime message. Returns `undefined` if the message is not about an app. */
export function decodeEvent(name: unknown, payload: unknown, clean = asItIs): AppEvent | undefined {
  const type = EVENTS.get(name)
  if (type === undefined || !isRecord(payload)) return undefined
  const id = idOf(payload)
  if (id === undefined) return undefined
  return type === 'delete' ? { type, id } : { type, id, patch: decodePatch(payload, clean) }
}

/** Limits for the scopes of a key, which are published. */
const MAX_SCOPES = 500
const MAX_SCOPE_LENGTH = 100

/** Returns the effective scopes, with `hub` in place of `homey`; `undefined` if the hub does not report them. */
export function decodeScopes(value: unknown): readonly string[] | undefined {
  if (!isRecord(value)) return undefined
  const list = value['intersectedScopes'] ?? value['scopes']
  if (!Array.isArray(list)) return undefined
  const scopes = list.filter((scope) => typeof scope === 'string' && scope.length <= MAX_SCOPE_LENGTH)
  return scopes.slice(0, MAX_SCOPES).map((scope) => scope.replace(/^homey(?=\.|$)/, 'hub'))
}

/** Maximum depth of JSON from a hub. No setting or translation is nested so deeply. */
export const JSON_LEVELS = 64

export function decodeJson(value: Json): Json {
  if (!isShallow(value, JSON_LEVELS)) {
    throw new HubError('nonsense', `The hub answered with JSON of more than ${JSON_LEVELS} levels.`)
  }
  return value
}

export function decodeSettings(value: Json): { [key: string]: Json } {
  const settings = decodeJson(value)
  if (!isRecord(settings)) throw new HubError('nonsense', 'The hub answered without a settings object.')
  return settings
}
