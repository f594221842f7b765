import * as v from 'valibot'
import { isAlias, LineCounter, parseDocument, visit } from 'yaml'
import { isRecord } from '../base/json.ts'
import { described, optional } from './core/endpoint.ts'
import { FLAVOURS } from './records.ts'
import { EmulatorOptionError, ScopeText, VISIBLE } from './scopes.ts'

/** A text that the hub sends in a header, such as its id. */
export const HeaderText = v.pipe(v.string(), v.regex(VISIBLE, 'must be visible ASCII characters without spaces'))
const Key = v.pipe(v.string(), v.regex(VISIBLE, 'a key must be visible ASCII characters'))
/** The schema of an object. It rejects lists, which Valibot would accept as objects. */
export const mapping = v.custom<Record<string, unknown>>(isRecord, 'must be an object')

/** The fields of an app in a hub file, which are the same for all flavours. `recordOf` converts them to a record. */
export const AppFields = {
  id: described(v.pipe(v.string(), v.nonEmpty('must be an app id')), 'The id of the app. Required.'),
  name: optional(v.string(), 'The name of the app; default: the id.'),
  version: optional(v.string(), 'The version of the app; default 1.0.0.'),
  author: optional(v.string(), 'The author.'),
  enabled: optional(v.boolean(), 'Whether the app is enabled; default true.'),
  autoupdate: optional(v.boolean(), 'Whether the hub updates the app automatically; default true.'),
  channel: optional(v.string(), "The channel of the app's updates; default: stable on older hubs, live on newer ones."),
  origin: optional(v.string(), 'Source of the app; default appstore.'),
  update: optional(v.string(), 'The newer version in the store; default: none.'),
  crashed: optional(v.string(), "The message of the app's crash; default: the app has not crashed."),
  settings: optional(mapping, 'The settings of the app: any JSON value by name.'),
  usage: optional(
    v.pipe(mapping, v.strictObject({ cpu: v.number(), mem: v.number() })),
    'The usage of the app: cpu as a fraction of one core, mem in bytes.',
  ),
  permissions: optional(v.array(v.string()), 'Permissions on the hub; default: none.'),
  hasDrivers: optional(v.boolean(), 'Whether the app has devices; reported by older hubs.'),
  color: optional(v.string(), 'Brand colour, such as #4A6572.'),
  record: optional(mapping, "Fields that override the hub's record of the app, to imitate a firmware."),
}

const App = v.pipe(mapping, v.strictObject(AppFields))
export type AppSeed = v.InferOutput<typeof App>
const Apps = v.pipe(
  v.array(App),
  v.check((apps) => new Set(apps.map(({ id }) => id)).size === apps.length, 'contains an app id twice'),
)

export const HubFields = {
  id: optional(HeaderText, 'The id of the hub.'),
  version: optional(HeaderText, "The hub's firmware; default: a typical one of the flavour."),
  flavour: optional(v.picklist(FLAVOURS, `must be one of ${FLAVOURS.join(', ')}`), 'Kind of hub; default newer.'),
  keys: optional(
    v.pipe(mapping, v.record(Key, v.array(ScopeText))),
    'The accepted API keys with their scopes. If there are none, the hub refuses all requests.',
  ),
  apps: optional(Apps, 'The installed apps; default: a few sample apps.'),
  store: optional(Apps, 'The apps that can be installed; default: a few sample apps.'),
}

export const HubFileSchema = v.pipe(mapping, v.strictObject(HubFields))
export type HubFile = v.InferOutput<typeof HubFileSchema>

/** Parses a hub file. Error messages name the field and never contain an API key. */
export function loadHubFile(text: string, filename: string): HubFile {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const [broken] = document.errors
  if (broken !== undefined) {
    const { line, col } = lines.linePos(broken.pos[0])
    throw new EmulatorOptionError(`${filename}:${line}:${col}: not valid YAML or JSON (${broken.code})`)
  }
  // Reject aliases, which could expand without limit.
  visit(document, {
    Node(_key, node) {
      if (isAlias(node)) throw new EmulatorOptionError(`${filename}: YAML aliases are not supported`)
    },
  })
  const parsed = v.safeParse(HubFileSchema, document.toJS() ?? {})
  if (parsed.success) return parsed.output
  throw new EmulatorOptionError(parsed.issues.map((issue) => `${filename}: ${explain(issue)}`).join('\n'))
}

/** Describes a problem of a hub file without quoting an API key. */
export function explain(issue: v.BaseIssue<unknown>): string {
  const path = (issue.path ?? []).map(({ key }) => key)
  const where = path[0] === 'keys' && path.length > 1 ? 'keys' : path.map(step).join('').replace(/^\./, '')
  const what = where === '' ? 'the file' : where
  if (issue.kind === 'validation' || OWN_WORDS.includes(issue.type)) return `${what}: ${issue.message}`
  if (issue.type === 'strict_object' && issue.expected === 'never') return `${where}: unknown field`
  if (issue.expected !== null && issue.received === 'undefined') return `${where}: is missing`
  const wanted = issue.type === 'array' ? 'list' : (issue.expected ?? 'different value')
  return `${what}: must be a ${wanted}`
}

/** The types of schemas whose messages are written for users. */
const OWN_WORDS = ['picklist', 'custom']

const step = (key: unknown) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)
