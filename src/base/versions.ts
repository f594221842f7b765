/** The order of versions: that of semantic versioning; missing parts count as 0. */

/** As text of a version may be: `1.2`, `1.2.3`, `2.0.0-beta.1`, `1.0.0+7`. */
export const VERSION =
  /^\d{1,9}(\.\d{1,9}){0,3}(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?(\+[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?$/

/** Negative if `one` is older than `other`, 0 if neither is. What follows a `+` is ignored. */
export function compareVersions(one: string, other: string): number {
  const [a, b] = [parse(one), parse(other)]
  const length = Math.max(a.numbers.length, b.numbers.length)
  for (let index = 0; index < length; index++) {
    const difference = (a.numbers[index] ?? 0) - (b.numbers[index] ?? 0)
    if (difference !== 0) return difference
  }
  return compareMarks(a.marks, b.marks)
}

function parse(version: string): { numbers: number[]; marks: string[] } {
  const [core = ''] = version.split('+')
  const dash = core.indexOf('-')
  const numbers = (dash < 0 ? core : core.slice(0, dash)).split('.').map(Number)
  return { numbers, marks: dash < 0 ? [] : core.slice(dash + 1).split('.') }
}

/** Of pre-releases. A version with none is newer than one with some. */
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

/** Numbers are older than words. */
function compareMark(a: string, b: string): number {
  const [isNumber, otherIs] = [NUMBER.test(a), NUMBER.test(b)]
  if (isNumber && otherIs) return Number(a) - Number(b)
  if (isNumber !== otherIs) return isNumber ? -1 : 1
  return a < b ? -1 : Number(a > b)
}
