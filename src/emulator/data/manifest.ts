/** `app.json`: the manifest of an app, validated before the app is run or copied. */
import { lstatSync, realpathSync, statSync } from 'node:fs'
import { isAbsolute, join, relative } from 'node:path'
import * as v from 'valibot'
import { UsageError } from '../../base/errors.ts'
import { DROPPED_KEYS, hasDroppedKey, isRecord, isShallow } from '../../base/json.ts'
import { MAX_BYTES, readPlainText } from '../../base/read-plain.ts'
import { listed } from '../../base/text.ts'
import { VERSION } from '../../base/versions.ts'
import { described, optional } from '../core/endpoint.ts'
import { explain, mapping } from '../hub-file.ts'
import { ScopeText } from '../scopes.ts'
import { MAX_SETTING_BYTES, MAX_SETTING_NAME, MAX_SETTINGS } from '../sdk/limits.js'

const MANIFEST_FILE = 'app.json'

/** Thrown if the folder contains no usable app; the message states the reason. */
export class ManifestError extends UsageError {
  override readonly name = 'ManifestError'
}

/** The channels of the store, from the most to the least stable. */
export const CHANNELS = ['stable', 'beta', 'alpha'] as const
export type Channel = (typeof CHANNELS)[number]

/** Maximum size of a manifest. Manifests of real apps, with their drivers and flows, have several hundred kilobytes. */
const MAX_FILE_BYTES = MAX_BYTES
const MAX_TEXT = 200
const MAX_LEVELS = 100
/** Maximum number of ignored fields in a warning. */
const MAX_IGNORED = 20
/** Maximum number of problems in an error message, and the maximum length of each problem. */
const MAX_MISTAKES = 20
const MAX_MISTAKE_LENGTH = 400

/** The format of app ids, which are used as folder names and in topics: at least two parts, separated by dots. */
const ID = /^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+$/
/** A relative path with `/` as the separator, in which no part begins with a dot. */
const MAIN = /^[A-Za-z0-9_@-][A-Za-z0-9_@.-]*(\/[A-Za-z0-9_@-][A-Za-z0-9_@.-]*)*$/
const COLOR = /^#[0-9A-Fa-f]{6}$/

const text = v.pipe(v.string(), v.nonEmpty('must not be empty'), v.maxLength(MAX_TEXT, 'is too long'))

const SettingName = v.pipe(
  v.string(),
  v.nonEmpty('the name must not be empty'),
  v.maxLength(MAX_SETTING_NAME, 'the name is too long'),
  v.check((name) => name.isWellFormed() && !name.includes('\0'), 'the name must be plain text'),
)
const Setting = v.pipe(
  v.unknown(),
  v.check(
    (value) => isShallow(value, MAX_LEVELS) && Buffer.byteLength(JSON.stringify(value)) <= MAX_SETTING_BYTES,
    'is too large or nested too deeply',
  ),
)

export const AppId = v.pipe(
  text,
  v.regex(ID, 'must be parts of letters, digits, "-" and "_", separated by dots, such as com.example.lights'),
)

/** The fields of a manifest. Their descriptions are part of the documentation and the JSON Schema. */
export const ManifestFields = {
  $schema: optional(v.string(), 'For editors.'),
  id: described(AppId, 'The id of the app, such as `com.example.lights`. Required.'),
  name: described(text, 'The name of the app. Required.'),
  version: described(
    v.pipe(text, v.regex(VERSION, 'must be a version such as 1.2.3 or 2.0.0-beta.1')),
    'The version of the app, such as 1.2.3 or 2.0.0-beta.1. Required.',
  ),
  author: optional(text, 'The author.'),
  description: optional(v.pipe(v.string(), v.maxLength(4000, 'is too long')), 'The purpose of the app.'),
  main: v.optional(
    described(
      v.pipe(text, v.regex(MAIN, 'must be the path of a file in the folder of the app, such as src/app.js')),
      'Path of the module that the hub starts; default app.js.',
    ),
    'app.js',
  ),
  permissions: v.optional(described(v.array(ScopeText), 'Permissions on the hub; default: none.'), []),
  settings: optional(
    v.pipe(
      mapping,
      v.check((settings) => !hasDroppedKey(settings), `has ${DROPPED_KEYS.join(' or ')}`),
      v.record(SettingName, Setting),
      v.maxEntries(MAX_SETTINGS, `has more than ${MAX_SETTINGS}`),
    ),
    'Initial values of the settings.',
  ),
  color: optional(v.pipe(v.string(), v.regex(COLOR, 'must be a colour such as #4A6572')), 'Brand colour.'),
  channel: v.optional(
    described(v.picklist(CHANNELS, 'must be "stable", "beta" or "alpha"'), 'Channel of the version; default stable.'),
    'stable',
  ),
  sdk: optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 'The required version of the SDK.'),
}

export const ManifestSchema = v.pipe(mapping, v.strictObject(ManifestFields))

export type Manifest = Readonly<v.InferOutput<typeof ManifestSchema>>

/** Called with the manifest's fields that this hub ignores. */
type Warn = (warning: string) => void

/** Reads a manifest. @throws ManifestError if it is missing or invalid, or if `main` is not a file in the folder */
export function readManifest(folder: string, warn?: Warn): Manifest {
  const path = join(folder, MANIFEST_FILE)
  const manifest = parseManifest(readText(path), path, warn)
  // Resolve links, because `main` may be a link out of the folder.
  const main = real(join(folder, manifest.main))
  if (main === undefined || !statSync(main).isFile()) throw new ManifestError(`${path}: main: there is no such file`)
  if (!isBelow(real(folder) ?? folder, main)) throw new ManifestError(`${path}: main: leads out of the app's folder`)
  return manifest
}

/** Parses a manifest in the format of this hub or of real apps. Errors start with `name`. @throws ManifestError */
export function parseManifest(json: string, name: string, warn: Warn = () => {}): Manifest {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (cause) {
    throw new ManifestError(`${name}: is not valid JSON`, { cause })
  }
  const { manifest, ignored } = isRecord(value) ? adapted(value) : { manifest: value, ignored: [] }
  const { success, output, issues } = v.safeParse(ManifestSchema, manifest)
  if (!success) throw new ManifestError(wording(issues, name))
  if (ignored.length > 0) {
    // Name the app by id and version, not by folder, so that a copy of the app causes no second warning.
    warn(`${output.id} ${output.version}: ignored fields in ${MANIFEST_FILE}: ${listed(ignored, MAX_IGNORED)}`)
  }
  return output
}

const isField = (field: string) => Object.hasOwn(ManifestFields, field)
const isColor = (value: unknown) => v.is(ManifestFields.color.wrapped, value)

/**
 * Converts a real app's manifest. Keeps values that are invalid in both formats, so that the validation rejects them.
 */
function adapted(given: Readonly<Record<string, unknown>>) {
  const own = new Map(Object.entries(given).filter(([field]) => isField(field)))
  const ignored = Object.keys(given).filter((field) => !isField(field))
  for (const [field, adapt] of FORMS) if (own.has(field)) own.set(field, adapt(own.get(field)))

  const permissions = own.get('permissions')
  if (Array.isArray(permissions)) {
    const known = permissions.filter((permission) => !isForeign(permission))
    own.set('permissions', known)
    ignored.push(...permissions.filter(isForeign).map((permission) => `permission ${permission}`))
  }
  const { brandColor } = given
  if (!isColor(brandColor)) return { manifest: Object.fromEntries(own), ignored }
  return {
    manifest: { color: brandColor, ...Object.fromEntries(own) },
    ignored: ignored.filter((field) => field !== 'brandColor'),
  }
}

/** Returns the text of a translated value, preferably the English one. */
function textOf(value: unknown): unknown {
  if (!isRecord(value)) return value
  const [, text] = Object.entries(value).find(([language, one]) => language === 'en' && isText(one)) ?? []
  return text ?? Object.values(value).find(isText) ?? value
}

const nameOf = (value: unknown): unknown => (isRecord(value) && Object.hasOwn(value, 'name') ? value['name'] : value)

const FORMS: readonly (readonly [field: string, adapt: (value: unknown) => unknown])[] = [
  ['name', textOf],
  ['description', textOf],
  ['author', nameOf],
]

const isText = (value: unknown): value is string => typeof value === 'string'

/** Whether a permission, such as `homey:manager:api`, is not a scope of this hub. */
const isForeign = (permission: unknown): permission is string => isText(permission) && permission.includes(':')

function wording(issues: readonly v.BaseIssue<unknown>[], name: string): string {
  const lines = issues.slice(0, MAX_MISTAKES).map((issue) => `${name}: ${explain(issue).slice(0, MAX_MISTAKE_LENGTH)}`)
  if (issues.length > lines.length) lines.push(`${name}: and ${issues.length - lines.length} more mistakes`)
  return lines.join('\n')
}

/** Whether a path is inside a folder. Compares only the paths and does not resolve links. */
export function isBelow(folder: string, path: string): boolean {
  const below = relative(folder, path)
  return below !== '' && below !== '..' && !below.startsWith('../') && !below.startsWith('..\\') && !isAbsolute(below)
}

function readText(path: string): string {
  try {
    // Check the type and the size before reading, because the file may be a link, a pipe or a device.
    const found = lstatSync(path)
    if (!found.isFile()) throw new ManifestError(`${path}: is not a plain file`)
    if (found.size > MAX_FILE_BYTES) throw new ManifestError(`${path}: is larger than ${MAX_FILE_BYTES} bytes`)
    return readPlainText(path)
  } catch (cause) {
    if (cause instanceof ManifestError) throw cause
    throw new ManifestError(`${path}: cannot be read`, { cause })
  }
}

/** Resolves all links in a path. Returns `undefined` if the target does not exist. */
export function real(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
