/** `app.json`: what an app says of itself, checked before anything of it is run or copied. */
import { lstatSync, realpathSync, statSync } from 'node:fs'
import { isAbsolute, join, relative } from 'node:path'
import * as v from 'valibot'
import { isRecord } from '../../base/json.ts'
import { readPlainText } from '../../base/read-plain.ts'
import { VERSION } from '../../base/versions.ts'
import { explain } from '../hub-file.ts'
import { normaliseScope, scopeNames } from '../scopes.ts'
import { MAX_SETTING_NAME, MAX_SETTINGS } from './limits.ts'

export const MANIFEST_FILE = 'app.json'

/** A folder holds no usable app; the message says what is wrong with it. */
export class ManifestError extends Error {
  override readonly name = 'ManifestError'
}

/** From the most to the least tried. */
export const CHANNELS = ['stable', 'beta', 'alpha'] as const
export type Channel = (typeof CHANNELS)[number]

const MAX_FILE_BYTES = 256 * 1024
const MAX_TEXT = 200

/** The id names a folder and stands in addresses and topics: letters, digits, `-` and `_`, two parts or more. */
const ID = /^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+$/
/** Relative, with `/`, and no part of it begins with a dot. */
const MAIN = /^[A-Za-z0-9_@-][A-Za-z0-9_@.-]*(\/[A-Za-z0-9_@-][A-Za-z0-9_@.-]*)*$/
const COLOR = /^#[0-9A-Fa-f]{6}$/

const text = v.pipe(v.string(), v.nonEmpty('must not be empty'), v.maxLength(MAX_TEXT, 'is too long'))
const spellings = scopeNames().flatMap((scope) => [scope, normaliseScope(scope)])
const scope = v.picklist(spellings, `has to be one of ${scopeNames().join(', ')}`)
const mapping = v.custom<Record<string, unknown>>(isRecord, 'has to be an object')

const described = <const S extends v.GenericSchema>(schema: S, description: string) =>
  v.pipe(schema, v.description(description))

const SettingName = v.pipe(
  v.string(),
  v.nonEmpty('the name must not be empty'),
  v.maxLength(MAX_SETTING_NAME, 'the name is too long'),
)

export const AppId = v.pipe(
  text,
  v.regex(ID, 'has to be parts of letters, digits, "-" and "_", divided by dots, such as com.example.lights'),
)

/** The descriptions are what the documentation and the JSON Schema say. */
export const ManifestFields = {
  $schema: v.optional(described(v.string(), 'For editors.')),
  id: described(AppId, 'The id of the app, such as `com.example.lights`. Required.'),
  name: described(text, 'Its name. Required.'),
  version: described(
    v.pipe(text, v.regex(VERSION, 'has to be a version such as 1.2.3 or 2.0.0-beta.1')),
    'Its version, such as 1.2.3 or 2.0.0-beta.1. Required.',
  ),
  author: v.optional(described(text, 'Who made it.')),
  description: v.optional(described(v.pipe(v.string(), v.maxLength(4000, 'is too long')), 'What it is for.')),
  main: v.optional(
    described(
      v.pipe(text, v.regex(MAIN, 'has to be the path of a file in the folder of the app, such as src/app.js')),
      'The module that the hub starts, by its path in the folder; default app.js.',
    ),
    'app.js',
  ),
  permissions: v.optional(described(v.array(scope), 'What it may do on the hub; default: nothing.'), []),
  settings: v.optional(
    described(
      v.pipe(mapping, v.record(SettingName, v.unknown()), v.maxEntries(MAX_SETTINGS, `has more than ${MAX_SETTINGS}`)),
      'The values that its settings have at first.',
    ),
  ),
  color: v.optional(described(v.pipe(v.string(), v.regex(COLOR, 'has to be such as #4A6572')), 'Of its brand.')),
  channel: v.optional(
    described(
      v.picklist(CHANNELS, 'has to be "stable", "beta" or "alpha"'),
      'How far it has been tried, which decides who is offered it; default stable.',
    ),
    'stable',
  ),
  sdk: v.optional(described(v.pipe(v.number(), v.integer(), v.minValue(1)), 'The version of the interface it needs.')),
}

export const ManifestSchema = v.pipe(mapping, v.strictObject(ManifestFields))

export type Manifest = Readonly<v.InferOutput<typeof ManifestSchema>>

/** The manifest of the app in a folder. @throws ManifestError where there is none, or the app cannot be what it says */
export function readManifest(folder: string): Manifest {
  const path = join(folder, MANIFEST_FILE)
  const manifest = parseManifest(readText(path), path)
  // A link can lead anywhere, whatever its name looks like.
  const main = real(join(folder, manifest.main))
  if (main === undefined || !statSync(main).isFile()) throw new ManifestError(`${path}: main: there is no such file`)
  if (!isBelow(real(folder) ?? folder, main)) throw new ManifestError(`${path}: main: leads out of the app's folder`)
  return manifest
}

/** What a manifest says. `name` stands before each mistake. @throws ManifestError */
export function parseManifest(json: string, name: string): Manifest {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (cause) {
    throw new ManifestError(`${name}: is not valid JSON`, { cause })
  }
  const parsed = v.safeParse(ManifestSchema, value)
  if (parsed.success) return parsed.output
  throw new ManifestError(parsed.issues.map((issue) => `${name}: ${explain(issue)}`).join('\n'))
}

/** Whether a path lies in a folder, by their names alone. */
export function isBelow(folder: string, path: string): boolean {
  const below = relative(folder, path)
  return below !== '' && below !== '..' && !below.startsWith('../') && !below.startsWith('..\\') && !isAbsolute(below)
}

function readText(path: string): string {
  try {
    // A link, a pipe or a device could be anything; so could a file that is read without a look at its size.
    const found = lstatSync(path)
    if (!found.isFile()) throw new ManifestError(`${path}: is no ordinary file`)
    if (found.size > MAX_FILE_BYTES) throw new ManifestError(`${path}: is larger than ${MAX_FILE_BYTES} bytes`)
    return readPlainText(path)
  } catch (cause) {
    if (cause instanceof ManifestError) throw cause
    throw new ManifestError(`${path}: cannot be read`, { cause })
  }
}

function real(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
