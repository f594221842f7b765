/** Reports unknown and removed options in the environment and in the file. */
import { didYouMean } from '../base/nearest.ts'
import { type ConfigFile, example, type FileMap, isJson } from './file.ts'
import type { Mistakes } from './mistakes.ts'
import type { Reading } from './read.ts'
import { integer, label, list } from './schemas.ts'
import { type Environment, environmentSource, subjectOf, valueIn } from './sources.ts'
import { environmentName, type Table, VARIABLE_PREFIX } from './table.ts'

const NO_WEBSOCKET =
  'the embedded broker has not supported WebSocket since 0.3.0; remove the option; for MQTT over WebSocket, set mqtt.url to a broker that supports it, such as Mosquitto'

/** Removed options. `doc` explains what to do instead; `default` is the value that matches the current behaviour. */
const REMOVED: Table = {
  'mqtt.embedded.ws_port': { doc: NO_WEBSOCKET, schema: integer(0, 65_535), default: 0 },
  'mqtt.embedded.ws_origins': { doc: NO_WEBSOCKET, schema: list(label), default: null },
}
const REMOVED_VARIABLES = Object.keys(REMOVED).map(environmentName)

/** Reports removed options. An option that is set to its default only causes a warning. */
export function checkRemoved(file: ConfigFile, env: Environment, { mistakes, warnings }: Reading): void {
  for (const [path, { doc, default: harmless }] of Object.entries(REMOVED)) {
    for (const source of [file, environmentSource(env, REMOVED)]) {
      const value = valueIn(source, path)
      if (value === undefined) continue
      const subject = subjectOf(source, path.split('.'))
      if (value === harmless) warnings.push(`${subject}: ${doc}`)
      else mistakes.add(subject, doc)
    }
  }
}

/** Names that other programs use for an option, by the last part of the name. */
const ALIASES: Readonly<Record<string, string>> = {
  user: 'username',
  pass: 'password',
  server: 'url',
  host: 'url',
  broker: 'url',
  address: 'url',
  token: 'api_key',
  key: 'api_key',
  topic: 'base_topic',
}

/** Returns a hint such as `; did you mean url?`, based on similarity or on `ALIASES`; empty if there is none. */
function suggestion(name: string, known: readonly string[], prefix = ''): string {
  const hint = didYouMean(name, known, prefix)
  if (hint !== '') return hint
  const upper = name === name.toUpperCase()
  const start = 1 + Math.max(name.lastIndexOf('.'), name.lastIndexOf('_'))
  const last = name.slice(start).toLowerCase()
  const other = `${name.slice(0, start).toLowerCase()}${ALIASES[last] ?? ''}`
  const alias = upper ? other.toUpperCase() : other
  return ALIASES[last] !== undefined && known.includes(alias) ? `; did you mean ${alias}?` : ''
}

const UNKNOWN = 'there is no such option'
/** Messages repeat only unknown names of this form, because all other names may be misplaced secrets. */
const PLAIN_WORD = /^[a-z_]{1,32}$/

/** The variables that Kubernetes sets in each pod for a Service with the name hub2mqtt. */
const SERVICE = /^HUB2MQTT_(?:SERVICE_(?:HOST|PORT)|PORT_\d+_[A-Z]+)/
const isOfService = (name: string, text: string) =>
  SERVICE.test(name) || (name === 'HUB2MQTT_PORT' && text.includes('://'))

/** Docker's `--env-file` and Kubernetes keep quotes, which a shell removes. A secret may contain them, so only warn. */
const inQuotes = (text: string) => ['"', "'"].some((quote) => text.startsWith(quote) && text.endsWith(quote))

export function checkVariables(env: Environment, known: readonly string[], { mistakes, warnings }: Reading): void {
  for (const [name, text] of env) {
    if (known.includes(name)) {
      if (inQuotes(text)) warnings.push(`${name}: the quotes around the value are part of it; remove them`)
      continue
    }
    if (REMOVED_VARIABLES.includes(name) || isOfService(name, text)) continue
    const hint = suggestion(name, known, VARIABLE_PREFIX)
    const isPlain = hint !== '' || PLAIN_WORD.test(name.slice(VARIABLE_PREFIX.length).toLowerCase())
    const subject =
      (isPlain ? mistakes.name(name) : undefined) ?? `an environment variable that begins with ${VARIABLE_PREFIX}`
    mistakes.add(subject, `${UNKNOWN}${hint || '; unset it'}`)
  }
}

/** Checks the keys below the path `at` in the file (empty: the whole file). `allowed` are paths below `at`. */
export function checkKeys(file: ConfigFile, at: readonly string[], allowed: readonly string[], mistakes: Mistakes) {
  const walk = (node: FileMap, place: readonly string[], known: readonly string[]): void => {
    for (const [key, value] of node) {
      const keys = [...place, String(key)]
      if (Object.hasOwn(REMOVED, keys.join('.'))) continue
      const below = known.filter((path) => path.startsWith(`${key}.`)).map((path) => path.slice(String(key).length + 1))
      if (!isKnown(keys, known, file, mistakes) || below.length === 0 || value === null) continue
      if (value instanceof Map) walk(value, keys, below)
      else mistakes.add(subjectOf(file, keys), 'expected options with values below this key')
    }
  }
  const root = at.length === 0 ? file.root : valueIn(file, at.join('.'))
  if (root instanceof Map) walk(root, at, allowed)
}

/** Adds a mistake unless the last key is known at its place. */
function isKnown(keys: readonly string[], known: readonly string[], file: ConfigFile, mistakes: Mistakes): boolean {
  const written = keys.at(-1) ?? ''
  const above = keys.slice(0, -1).join('.')
  const add = (showsName: boolean, text: string) => {
    const hidden = `a key ${above === '' ? '' : `below ${above} `}(${file.where(keys)})`
    mistakes.add(showsName ? subjectOf(file, keys) : hidden, text)
    return false
  }
  if (written === '<<') return add(true, 'merge keys are not supported; write the options out')
  const isName = mistakes.name(written) !== undefined
  if (!isName && !isJson(file.path)) return add(false, `${UNKNOWN}; look for a missing space after a colon`)
  const names = [...new Set(known.map((path) => path.split('.')[0] ?? path))]
  if (names.includes(written)) return true
  if (known.includes(written)) {
    return add(true, `expected nested keys, such as ${example(file.path, ['mqtt', 'url'])}`)
  }
  const hint = isName ? suggestion(written, names) : ''
  const isShown = isName && (hint !== '' || PLAIN_WORD.test(written))
  return add(isShown, `${UNKNOWN}${hint || `; there are ${names.join(', ')}`}`)
}
