/**
 * Topics as templates: `{base}/{hub}/app/{app}`. A template gives a topic for its parameters, the filter of all of its
 * topics, and the parameters of a topic.
 */

/** Written as it is; a level that is one or two dots is part of a path to some. */
const PLAIN = /^(?!\.\.?$)[A-Za-z0-9._-]+$/
/** What `encodeURIComponent` leaves unencoded. */
const UNCODED = /[!'()*~]/g

/** Names of the `{parameters}` in a template. */
export type TemplateParameter<T extends string> = T extends `${string}{${infer Name}}${infer Rest}`
  ? Name | TemplateParameter<Rest>
  : never

export type Parameters = Readonly<Record<string, string>>

/**
 * An id or name as one topic level: reversible, and free of `/ + # $` and NUL. A level that would be empty is a lone
 * `%`, which no other text is written as.
 */
export function encodeLevel(text: string): string {
  if (PLAIN.test(text)) return text
  if (text === '') return '%'
  if (text === '.' || text === '..') return text.replaceAll('.', '%2E')
  const toCode = (char: string) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`
  return encodeURIComponent(text.toWellFormed()).replace(UNCODED, toCode)
}

/**
 * The id or name that a level stands for; `undefined` if it stands for none. Only the spelling of `encodeLevel` counts:
 * by another one a command would pass a broker's rules for the topic, and be another command than itself.
 */
export function decodeLevel(level: string): string | undefined {
  if (PLAIN.test(level)) return level
  if (level === '%') return ''
  try {
    const text = decodeURIComponent(level)
    return encodeLevel(text) === level ? text : undefined
  } catch {
    return undefined
  }
}

/** A template below one root: the first parameter stands for the root's levels, every other for one level. */
export class Template {
  readonly #root: string
  /** Each is a parameter or a text. */
  readonly #levels: readonly { readonly name?: string; readonly text?: string }[]

  constructor(template: string, root: string) {
    const [, ...levels] = template.split('/')
    this.#root = root
    this.#levels = levels.map((level) => (level.startsWith('{') ? { name: level.slice(1, -1) } : { text: level }))
  }

  /** The topic for these parameters; if some are missing, the filter that matches all topics with the others. */
  fill(parameters: Parameters = {}): string {
    let topic = this.#root
    for (const { text, name = '' } of this.#levels) {
      const value = parameters[name]
      topic += `/${text ?? (value === undefined ? '+' : encodeLevel(value))}`
    }
    return topic
  }

  /** The levels that stand for the parameters of a topic, still encoded; `undefined` for a topic of another template. */
  match(topic: string): Parameters | undefined {
    const levels = levelsBelow(this.#root, topic)
    return levels && this.matchLevels(levels)
  }

  /** The same for the levels below the root. */
  matchLevels(levels: readonly string[]): Parameters | undefined {
    // Most topics are of another template: those make nothing.
    if (levels.length !== this.#levels.length) return undefined
    if (!this.#levels.every(({ text }, i) => text === undefined || text === levels[i])) return undefined
    const found: Record<string, string> = {}
    for (const [i, { name }] of this.#levels.entries()) if (name !== undefined) found[name] = levels[i] ?? ''
    return found
  }
}

/** The levels of a topic below a root; `undefined` for a topic that is not there. */
export function levelsBelow(root: string, topic: string): string[] | undefined {
  return topic.startsWith(`${root}/`) ? topic.slice(root.length + 1).split('/') : undefined
}

/** Filters without those that another one of them includes. */
export function widest(filters: readonly string[]): string[] {
  const includes = (wide: string, narrow: string) => {
    const [one, other] = [wide.split('/'), narrow.split('/')]
    return (
      wide !== narrow && one.length === other.length && one.every((level, i) => level === '+' || level === other[i])
    )
  }
  return [...new Set(filters)].filter((filter) => !filters.some((other) => includes(other, filter)))
}
