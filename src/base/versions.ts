/** Compares versions according to semantic versioning. Missing parts count as 0. */

/** Matches versions such as `1.2`, `1.2.3`, `2.0.0-beta.1` and `1.0.0+7`. */
export const VERSION =
  /^\d{1,9}(\.\d{1,9}){0,3}(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?(\+[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?$/

/**
 * Returns a negative number if `one` is older than `other`, a positive number if `one` is newer, otherwise 0. Ignores
 * build metadata (after a `+`).
 */
export function compareVersions(one: string, other: string): number {
  const [a, b] = [parse(one), parse(other)]
  const length = Math.max(a.numbers.length, b.numbers.length)
  for (let index = 0; index < length; index++) {
    const difference = (a.numbers[index] ?? 0) - (b.numbers[index] ?? 0)
    if (difference !== 0) return difference
  }
  return compareMarks(a.marks, b.marks)
}

export const SEVERITIES = ['none', 'patch', 'minor', 'major'] as const
/** The size of the step between two versions, from small to large. */
export type Severity = (typeof SEVERITIES)[number]

/**
 * Returns the leftmost number that an update raises; `none` if `to` is not newer, `null` if a version is unknown or
 * invalid. An update that raises no number, such as from a pre-release to its release, is a patch.
 */
export function severityOf(from: string | null, to: string | null): Severity | null {
  if (from === null || to === null || !VERSION.test(from) || !VERSION.test(to)) return null
  if (compareVersions(from, to) >= 0) return 'none'
  const [before, after] = [parse(from).numbers, parse(to).numbers]
  if (before[0] !== after[0]) return 'major'
  return (before[1] ?? 0) === (after[1] ?? 0) ? 'patch' : 'minor'
}

function parse(version: string): { numbers: number[]; marks: string[] } {
  const [core = ''] = version.split('+')
  const dash = core.indexOf('-')
  const numbers = (dash < 0 ? core : core.slice(0, dash)).split('.').map(Number)
  return { numbers, marks: dash < 0 ? [] : core.slice(dash + 1).split('.') }
}

/** Compares pre-release identifiers; a version without such identifiers is newer. */
function compareMarks(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 || b.length === 0) return b.length - a.length
  for (const [index, mark] of a.entries()) {
    const other = b[index]
    if (other === undefined) return 1
    const difference = compareMark(mark, other)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

const NUMBER = /^\d+$/

/** Compares two identifiers; numeric identifiers are older than alphanumeric identifiers. */
function compareMark(a: string, b: string): number {
  const [isNumber, otherIs] = [NUMBER.test(a), NUMBER.test(b)]
  if (isNumber && otherIs) return Number(BigInt(a) - BigInt(b))
  if (isNumber !== otherIs) return isNumber ? -1 : 1
  return a < b ? -1 : Number(a > b)
}
