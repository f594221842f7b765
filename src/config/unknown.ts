/** Names in the environment and in the file that are no options, or not any more. */
import * as v from 'valibot'
import { didYouMean } from '../base/nearest.ts'
import { type ConfigFile, example, type FileMap, isJson } from './file.ts'
import type { Mistakes } from './mistakes.ts'
import { type Reading, subjectOf } from './read.ts'
import { type Environment, fileSubject, type Source } from './sources.ts'
import { environmentName, fileKeys, type Table, VARIABLE_PREFIX } from './table.ts'

/** Names of other programs for an option, by its last part. */
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

/** `; did you mean url?`: the most similar name, or the option that other programs call so. */
function meant(name: string, known: readonly string[], prefix = ''): string {
  const hint = didYouMean(name, known, prefix)
  if (hint !== '') return hint
  const upper = name === name.toUpperCase()
  const start = 1 + Math.max(name.lastIndexOf('.'), name.lastIndexOf('_'))
  const last = name.slice(start).toLowerCase()
  const other = `${name.slice(0, start).toLowerCase()}${ALIASES[last] ?? ''}`
  const alias = upper ? other.toUpperCase() : other
  return ALIASES[last] !== undefined && known.includes(alias) ? `; did you mean ${alias}?` : ''
}

/** Anything else that resembles no option may be a secret in the wrong place, and is not repeated. */
const PLAIN_WORD = /^[a-z_]{1,32}$/

/** Adds a mistake for every unknown variable. */
export function checkVariables(env: Environment, known: readonly string[], mistakes: Mistakes): void {
  for (const name of env.keys()) {
    if (known.includes(name) || isRemovedVariable(name)) continue
    const hint = meant(name, known, VARIABLE_PREFIX)
    const isPlain = hint !== '' || PLAIN_WORD.test(name.slice(VARIABLE_PREFIX.length).toLowerCase())
    const subject =
      (isPlain ? mistakes.name(name) : undefined) ?? `an environment variable that begins with ${VARIABLE_PREFIX}`
    mistakes.add(subject, `there is no such option${hint || '; unset it'}`)
  }
}

export interface KeyCheck {
  readonly file: ConfigFile
  readonly table: Table
  /** Where the table's options stand in the file. */
  readonly at: readonly string[]
  /** Keys beside the table's that other code reads. */
  readonly also?: readonly string[]
  readonly mistakes: Mistakes
}

/** Adds a mistake for every key of `root` that `table` does not have. */
export function checkKeys(root: FileMap, { file, table, at, also = [], mistakes }: KeyCheck): void {
  const walk = (node: FileMap, place: readonly string[], known: readonly string[]): void => {
    for (const [key, value] of node) {
      const written = String(key)
      const keys = [...place, written]
      if (isRemoved(keys.join('.'))) continue
      const problem = problemOf(written, { known, file, mistakes })
      const below = known.filter((path) => path.startsWith(`${written}.`)).map((path) => path.slice(written.length + 1))
      if (problem !== undefined) {
        mistakes.add(problem.showsName ? fileSubject(file, keys) : hiddenSubject(file, keys), problem.text)
      } else if (value instanceof Map && below.length > 0) {
        walk(value, keys, below)
      } else if (value !== null && below.length > 0) {
        mistakes.add(fileSubject(file, keys), 'expected options with their values below it')
      }
    }
  }
  walk(root, at, [...fileKeys(table), ...also])
}

/** The place of a key that is not repeated. */
function hiddenSubject(file: ConfigFile, keys: readonly string[]): string {
  const above = keys.slice(0, -1).join('.')
  return `a key ${above === '' ? '' : `below ${above} `}(${file.where(keys)})`
}

/** What is wrong with a key, and whether it may be repeated. */
function problemOf(
  written: string,
  {
    known,
    file,
    mistakes,
  }: {
    /** Paths of options from where the key stands. */
    readonly known: readonly string[]
    readonly file: ConfigFile
    readonly mistakes: Mistakes
  },
) {
  const isName = mistakes.name(written) !== undefined
  if (!isName && !isJson(file.path)) {
    return { showsName: false, text: 'there is no such option; look for a missing space after a colon' }
  }
  const names = [...new Set(known.map((path) => path.split('.')[0] ?? path))]
  if (names.includes(written)) return undefined
  if (known.includes(written)) {
    const such = example(file.path, ['mqtt', 'url'])
    return { showsName: true, text: `expected its parts one below the other, such as ${such}` }
  }
  const hint = isName ? meant(written, names) : ''
  const text = `there is no such option${hint || `; there are ${names.join(', ')}`}`
  return { showsName: isName && (hint !== '' || PLAIN_WORD.test(written)), text }
}

interface Removed {
  readonly schema: v.GenericSchema
  /** A value that asked for what is so now: it gets a warning only. */
  readonly harmless?: unknown
  /** Since when the option is gone, and what to do instead. */
  readonly text: string
}

const NO_WEBSOCKET = 'the embedded broker has no WebSocket since 0.3.0'
const REMEDY = 'remove the option; for MQTT over WebSocket, set mqtt.url to a broker that has it, such as Mosquitto'

const REMOVED: Readonly<Record<string, Removed>> = {
  'mqtt.embedded.ws_port': { schema: v.number(), harmless: 0, text: `${NO_WEBSOCKET}; ${REMEDY}` },
  'mqtt.embedded.ws_origins': { schema: v.array(v.string()), text: `${NO_WEBSOCKET}; ${REMEDY}` },
}

const VARIABLES = Object.keys(REMOVED).map(environmentName)

export const isRemoved = (path: string): boolean => Object.hasOwn(REMOVED, path)
export const isRemovedVariable = (name: string): boolean => VARIABLES.includes(name)

/** Refuses the options of former versions, in the file and in the environment. */
export function checkRemoved(sources: readonly Source[], { mistakes, warnings }: Reading): void {
  for (const [path, { schema, harmless, text }] of Object.entries(REMOVED)) {
    for (const source of sources) {
      const found = source.find(path, schema)
      if (found === undefined) continue
      if (harmless !== undefined && found.raw === harmless) warnings.push(`${subjectOf(found)}: ${text}`)
      else mistakes.add(subjectOf(found), text)
    }
  }
}
