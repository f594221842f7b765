/** Finds the route of a path in the table. */
import { ROUTES, type Route } from './api/routes.ts'

export interface Match {
  readonly route: Route
  readonly parameters: Readonly<Record<string, string>>
  readonly rest: readonly string[]
}

const TABLE = ROUTES.map((route) => ({ route, levels: route.path.split('/') }))

/** The routes of a path without its first slash, one for each method that it has. */
export function routesOf(path: string): Match[] {
  const segments = path.split('/')
  return TABLE.flatMap(({ route, levels }) => {
    const found = match(levels, segments)
    return found === undefined ? [] : [{ route, ...found }]
  })
}

function match(levels: readonly string[], segments: readonly string[]): Omit<Match, 'route'> | undefined {
  const isOpen = levels.at(-1)?.endsWith('…}') === true
  const fixed = isOpen ? levels.slice(0, -1) : levels
  if (isOpen ? segments.length <= fixed.length : segments.length !== fixed.length) return undefined
  const parameters: Record<string, string> = {}
  for (const [i, level] of fixed.entries()) {
    const segment = segments[i] ?? ''
    if (!level.startsWith('{')) {
      if (level !== segment) return undefined
      continue
    }
    const value = decoded(segment)
    if (value === undefined || value === '') return undefined
    parameters[level.slice(1, -1)] = value
  }
  return { parameters, rest: segments.slice(fixed.length) }
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
