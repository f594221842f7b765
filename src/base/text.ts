const MAX_NAME = 100

/** Shortens a text to one line of at most `max` characters; returns `undefined` if the line would be empty. */
export function tidy(text: string | null | undefined, max = MAX_NAME): string | undefined {
  if (text === null || text === undefined) return undefined
  const line = text
    .toWellFormed()
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
  const cut = [...line].slice(0, max).join('')
  return cut === '' ? undefined : cut
}

type PathParameter<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathParameter<`/${Rest}`>
  : P extends `${string}:${infer Name}`
    ? Name
    : never
/** The parameters of a path such as `/app/:id`. */
export type PathInput<P extends string> = { readonly [K in PathParameter<P>]: string }

export function withoutSlashes(path: string): string {
  let end = path.length
  while (path[end - 1] === '/') end -= 1
  return path.slice(0, end)
}

const LONGEST_NAME = 60

/** Lists at most `max` names, followed by the number of omitted names. */
export function listed(names: readonly string[], max: number): string {
  const cut = (name: string) => (name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name)
  const more = names.length > max ? ` and ${names.length - max} more` : ''
  return names.slice(0, max).map(cut).join(', ') + more
}

export function columns(rows: readonly (readonly string[])[]): string[] {
  const widthOf = (at: number) => Math.max(...rows.map((row) => row[at]?.length ?? 0))
  const widths = rows[0]?.map((_, at) => widthOf(at)) ?? []
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

export function onceEach(report: (text: string) => void) {
  const reported = new Set<string>()
  return (text: string) => {
    if (!reported.has(text)) report(text)
    reported.add(text)
  }
}
