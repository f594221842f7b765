/** Formats of many values: lists and maps. */
import { accept, type Format, refuse } from './format.ts'

/** A list; in the environment its items are separated by commas. */
export function list<T>(item: Format<T>): Format<readonly T[]> {
  const expected = `a list, each item ${item.expected}`
  return {
    name: `list of ${item.name}`,
    expected,
    quotable: false,
    schema: { type: 'array', items: item.schema },
    parse: (raw, context) => {
      if (!Array.isArray(raw)) return refuse(expected)
      const values: T[] = []
      for (const entry of raw) {
        const parsed = item.parse(entry, context)
        if (!parsed.ok) return refuse(`a list, each item ${parsed.expected}`)
        values.push(parsed.value)
      }
      return accept(values)
    },
    fromText: (value) =>
      value
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== '')
        .map((part) => item.fromText(part)),
    show: (values) => values.map((value) => item.show(value)),
  }
}

/** Names of one's own choice with a value each; in the environment a JSON object. */
export function map<T>(item: Format<T>): Format<ReadonlyMap<string, T>> {
  const expected = `a mapping of names, each to ${item.expected}`
  return {
    name: `map to ${item.name}`,
    expected,
    quotable: false,
    schema: { type: 'object', additionalProperties: item.schema },
    parse: (raw, context) => {
      if (!(raw instanceof Map)) return refuse(expected)
      const values = new Map<string, T>()
      for (const [key, entry] of raw) {
        const parsed = item.parse(entry, context)
        if (!parsed.ok) return refuse(`a mapping of names, each to ${parsed.expected}`)
        values.set(String(key), parsed.value)
      }
      return accept(values)
    },
    fromText: (value) => jsonAsMap(value),
    show: (values) => new Map([...values].map(([key, value]) => [key, item.show(value)])),
  }
}

function jsonAsMap(value: string): unknown {
  const toMap = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(toMap)
    if (typeof part !== 'object' || part === null) return part
    return new Map(Object.entries(part).map(([key, entry]) => [key, toMap(entry)]))
  }
  try {
    return toMap(JSON.parse(value))
  } catch {
    return value
  }
}
