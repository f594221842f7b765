/** A template such as `{base}/{hub}/app/{app}` builds topics and filters, and parses topics into parameters. */

/** Levels that need no encoding. The levels `.` and `..` need encoding, because some tools interpret them as paths. */
const PLAIN = /^(?!\.\.?$)[A-Za-z0-9._-]+$/
/** Characters that `encodeURIComponent` does not encode. */
const UNCODED = /[!'()*~]/g

export type TemplateParameter<T extends string> = T extends `${string}{${infer Name}}${infer Rest}`
  ? Name | TemplateParameter<Rest>
  : never

export type Parameters = Readonly<Record<string, string>>

/** Encodes an id or name as one topic level, without `/ + # $` or NUL. Only an empty string becomes a single `%`. */
export function encodeLevel(text: string): string {
  if (PLAIN.test(text)) return text
  if (text === '') return '%'
  if (text === '.' || text === '..') return text.replaceAll('.', '%2E')
  return percentEncoded(text, UNCODED)
}

/** Like `encodeURIComponent`, but also encodes the ASCII characters in `others`. */
export function percentEncoded(text: string, others: RegExp): string {
  const toCode = (char: string) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`
  return encodeURIComponent(text.toWellFormed()).replace(others, toCode)
}

/** Accepts only the spelling that `encodeLevel` returns, because others could bypass the broker's access rules. */
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

/** A template of topics. The first parameter stands for all levels of the root, every other parameter for one level. */
export class Template {
  readonly #root: string
  readonly #levels: readonly { readonly name?: string; readonly text?: string }[]

  constructor(template: string, root: string) {
    const [, ...levels] = template.split('/')
    this.#root = root
    this.#levels = levels.map((level) => (level.startsWith('{') ? { name: level.slice(1, -1) } : { text: level }))
  }

  /** Returns the topic for these parameters. A missing parameter becomes `+`, so that the result is a filter. */
  fill(parameters: Parameters = {}): string {
    let topic = this.#root
    for (const { text, name = '' } of this.#levels) {
      const value = parameters[name]
      topic += `/${text ?? (value === undefined ? '+' : encodeLevel(value))}`
    }
    return topic
  }

  /** Returns the parameters of a topic, still encoded; `undefined` if the topic does not match. */
  match(topic: string): Parameters | undefined {
    const levels = levelsBelow(this.#root, topic)
    return levels && this.matchLevels(levels)
  }

  /** Like `match`, for the levels below the root. */
  matchLevels(levels: readonly string[]): Parameters | undefined {
    // Most topics do not match, so allocate nothing for them.
    if (levels.length !== this.#levels.length) return undefined
    if (!this.#levels.every(({ text }, i) => text === undefined || text === levels[i])) return undefined
    const found: Record<string, string> = {}
    for (const [i, { name }] of this.#levels.entries()) if (name !== undefined) found[name] = levels[i] ?? ''
    return found
  }
}

/** Returns the levels of a topic below the root; `undefined` if the topic is not below the root. */
export function levelsBelow(root: string, topic: string): string[] | undefined {
  return topic.startsWith(`${root}/`) ? topic.slice(root.length + 1).split('/') : undefined
}

/** Removes filters that another filter includes. */
export function widest(filters: readonly string[]): string[] {
  const includes = (wide: string, narrow: string) => {
    const [one, other] = [wide.split('/'), narrow.split('/')]
    return (
      wide !== narrow && one.length === other.length && one.every((level, i) => level === '+' || level === other[i])
    )
  }
  return [...new Set(filters)].filter((filter) => !filters.some((other) => includes(other, filter)))
}
