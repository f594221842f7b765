/** A hub declared in a file, YAML or JSON: what it is, its keys, its apps and its store. */
import * as v from 'valibot'
import { isAlias, LineCounter, parseDocument, visit } from 'yaml'
import { isRecord } from '../base/json.ts'
import type { EmulatedHubOptions } from './options.ts'
import { FLAVOURS } from './records.ts'
import { EmulatorOptionError, isKnownScope, isUsableKey, scopeNames } from './scopes.ts'

export type HubFile = Pick<EmulatedHubOptions, 'id' | 'version' | 'flavour' | 'keys' | 'apps' | 'store'>

/** Both travel in a header. */
const HeaderText = v.pipe(v.string(), v.regex(/^[\x21-\x7e]+$/, 'has to be visible ASCII characters without spaces'))
/** Valibot takes a list for an object; a person who wrote one did not mean it. */
const mapping = v.custom<Record<string, unknown>>(isRecord, 'has to be an object')
const AnyObject = v.pipe(mapping, v.record(v.string(), v.unknown()))

const Seed = v.pipe(
  mapping,
  v.strictObject({
    id: v.pipe(v.string(), v.nonEmpty('has to be an app id')),
    name: v.optional(v.string()),
    version: v.optional(v.string()),
    author: v.optional(v.string()),
    enabled: v.optional(v.boolean()),
    autoupdate: v.optional(v.boolean()),
    channel: v.optional(v.string()),
    origin: v.optional(v.string()),
    update: v.optional(v.string()),
    crashed: v.optional(v.string()),
    settings: v.optional(AnyObject),
    usage: v.optional(v.pipe(mapping, v.strictObject({ cpu: v.number(), mem: v.number() }))),
    permissions: v.optional(v.array(v.string())),
    hasDrivers: v.optional(v.boolean()),
    color: v.optional(v.string()),
    record: v.optional(AnyObject),
  }),
)

const Seeds = v.pipe(
  v.array(Seed),
  v.check((seeds) => new Set(seeds.map(({ id }) => id)).size === seeds.length, 'has the same app id twice'),
)

const KnownScope = v.pipe(
  v.string(),
  v.check(isKnownScope, `has to be one of ${scopeNames().join(', ')} ("homey" in place of "hub" is the same)`),
)

const File = v.pipe(
  mapping,
  v.strictObject({
    id: v.optional(HeaderText),
    version: v.optional(HeaderText),
    flavour: v.optional(v.picklist(FLAVOURS, 'has to be "older", "newer" or "reference"')),
    keys: v.optional(
      v.pipe(
        mapping,
        v.record(
          v.pipe(v.string(), v.check(isUsableKey, 'a key is made of visible ASCII characters')),
          v.array(KnownScope),
        ),
      ),
    ),
    apps: v.optional(Seeds),
    store: v.optional(Seeds),
  }),
)

/** Reads a hub file; what is wrong with it is said per field, never quoting a key. */
export function loadHubFile(text: string, filename: string): HubFile {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const [broken] = document.errors
  if (broken !== undefined) {
    const { line, col } = lines.linePos(broken.pos[0])
    throw new EmulatorOptionError(`${filename}:${line}:${col}: not valid YAML or JSON (${broken.code})`)
  }
  // A file of this size needs no anchors, and without them none can explode.
  visit(document, {
    Node(_key, node) {
      if (isAlias(node)) throw new EmulatorOptionError(`${filename}: YAML aliases are not supported`)
    },
  })
  const parsed = v.safeParse(File, document.toJS() ?? {})
  if (parsed.success) return parsed.output
  throw new EmulatorOptionError(parsed.issues.map((issue) => `${filename}: ${explain(issue)}`).join('\n'))
}

function explain(issue: v.BaseIssue<unknown>): string {
  const path = (issue.path ?? []).map(({ key }) => key)
  const where = path[0] === 'keys' && path.length > 1 ? 'keys' : path.map(step).join('').replace(/^\./, '')
  const what = where === '' ? 'the file' : where
  if (issue.kind === 'validation' || OWN_WORDS.includes(issue.type)) return `${what}: ${issue.message}`
  if (issue.type === 'strict_object' && issue.expected === 'never') return `${where}: there is no such field`
  if (issue.expected !== null && issue.received === 'undefined') return `${where}: is missing`
  return `${what}: has to be ${wording(issue)}`
}

/** Schemas whose messages are written above. */
const OWN_WORDS = ['picklist', 'custom']

const step = (key: unknown) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)

function wording({ type, expected }: v.BaseIssue<unknown>): string {
  if (type === 'array') return 'a list'
  return `a ${expected ?? 'different value'}`
}
