/** Names that no option has: in the environment, and as keys of the file. */

import { didYouMean } from '../base/nearest.ts'
import type { ConfigFile, FileMap } from './file.ts'
import type { Mistakes } from './mistakes.ts'
import { type Environment, fileSubject } from './sources.ts'
import { fileKeys, type Table, VARIABLE_PREFIX } from './table.ts'

/** What other programs call an option, by its last part. */
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

/** `; did you mean url?`: the name that is nearest, or what others call by this one. */
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

/** Complains about every variable that no option has. */
export function checkVariables(env: Environment, known: readonly string[], mistakes: Mistakes): void {
  for (const name of env.keys()) {
    if (known.includes(name)) continue
    const shown = mistakes.name(name)
    const subject = shown ?? `an environment variable that begins with ${VARIABLE_PREFIX}`
    mistakes.add(subject, `there is no such option${meant(name, known, VARIABLE_PREFIX) || '; unset it'}`)
  }
}

export interface KeyCheck {
  readonly file: ConfigFile
  readonly table: Table
  /** Where the table's options stand in the file. */
  readonly at: readonly string[]
  /** Keys beside the table's that somebody else reads. */
  readonly also?: readonly string[]
  readonly mistakes: Mistakes
}

/** Complains about every key of `root` that `table` does not have. */
export function checkKeys(root: FileMap, { file, table, at, also = [], mistakes }: KeyCheck): void {
  const walk = (node: FileMap, place: readonly string[], known: readonly string[]): void => {
    for (const [key, value] of node) {
      const written = String(key)
      const keys = [...place, written]
      const problem = problemOf(written, known, mistakes)
      const below = known.filter((path) => path.startsWith(`${written}.`)).map((path) => path.slice(written.length + 1))
      if (problem !== undefined) {
        mistakes.add(subjectOf(file, keys, mistakes), problem)
      } else if (value instanceof Map && below.length > 0) {
        walk(value, keys, below)
      } else if (value !== null && below.length > 0) {
        mistakes.add(fileSubject(file, keys), 'expected options with their values below it')
      }
    }
  }
  walk(root, at, [...fileKeys(table), ...also])
}

/** A key that is no plain name is not repeated, only where it stands. */
function subjectOf(file: ConfigFile, keys: readonly string[], mistakes: Mistakes): string {
  if (mistakes.name(keys.at(-1) ?? '') !== undefined) return fileSubject(file, keys)
  const above = keys.slice(0, -1).join('.')
  return `a key ${above === '' ? '' : `below ${above} `}(${file.where(keys)})`
}

/** What is wrong with a key among `known`, which are the paths of options from where it stands. */
function problemOf(written: string, known: readonly string[], mistakes: Mistakes): string | undefined {
  if (mistakes.name(written) === undefined) return 'there is no such option; look for a missing space after a colon'
  const names = [...new Set(known.map((path) => path.split('.')[0] ?? path))]
  if (names.includes(written)) return undefined
  if (known.includes(written)) return 'expected its parts one below the other, such as mqtt: { url: … }'
  return `there is no such option${meant(written, names) || `; there are ${names.join(', ')}`}`
}
